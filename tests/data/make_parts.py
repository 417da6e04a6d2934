#!/usr/bin/env python3
"""Makes files with parts, as Keras's own data sets are laid out, that tests/unit/data and tests/cli read: value k of x_train is k, of
x_test 100 + k, of x_val 200 + k; y is the sample's number modulo 2."""
import os

import h5py
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))


def part(samples, first):
    return np.arange(first, first + samples * 4, dtype=np.uint8).reshape(samples, 2, 2), np.arange(samples, dtype=np.uint8) % 2


arrays = {}
for name, samples, first in (("train", 6, 0), ("test", 3, 100)):
    arrays["x_" + name], arrays["y_" + name] = part(samples, first)
np.savez(os.path.join(here, "parts.npz"), **arrays)
with h5py.File(os.path.join(here, "parts.h5"), "w") as file:
    for name, values in arrays.items():
        file[name] = values
arrays["x_val"], arrays["y_val"] = part(2, 200)
np.savez_compressed(os.path.join(here, "three_parts.npz"), **arrays)
np.savez(os.path.join(here, "one_part.npz"), x_train=arrays["x_train"], y_train=arrays["y_train"])

# Arrays that are no samples, which readers name: weights under Keras's name, and a target of no part.
plain = {"x": arrays["x_train"], "y": arrays["y_train"], "sample_weight": np.ones(6, np.float32), "classes": np.arange(2)}
np.savez(os.path.join(here, "unread.npz"), **plain)
np.savez(os.path.join(here, "unread_part.npz"), y_extra=arrays["y_train"], x_train=arrays["x_train"], y_train=arrays["y_train"])
with h5py.File(os.path.join(here, "unread.h5"), "w") as file:
    for name, values in plain.items():
        file[name] = values
    file["group/more"] = plain["classes"]
