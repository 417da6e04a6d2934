#!/usr/bin/env python3
"""Makes npy, IDX and LibSVM files that tests/unit/data reads, with the real NumPy and scikit-learn's form of LibSVM.

Values are those of make_npz.py: value k (row-major) of x is k % 101 - 50 (+ 0.5 for floats), y is s % 7, w is s / 4.
"""
import gzip
import os
import struct

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(here, "files")
os.makedirs(os.path.join(folder, "mnist"), exist_ok=True)


def place(name):
    return os.path.join(folder, name)


k = np.arange(5 * 3 * 4 * 2).reshape(5, 3, 4, 2)
x = (k % 101 - 50 + 0.5).astype(np.float32)
np.save(place("x.npy"), x)
np.save(place("x_fortran.npy"), np.asfortranarray(x.astype(">f8")))
np.save(place("y.npy"), (np.arange(5) % 7).astype(np.int64))
np.save(place("w.npy"), (np.arange(5) / 4).astype(np.float64))
np.save(place("y_short.npy"), np.arange(4))

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array, code):
    return struct.pack(">BBBB", 0, 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + \
        array.astype(array.dtype.newbyteorder(">")).tobytes()


images = (np.arange(5 * 4 * 3) % 101).astype(np.uint8).reshape(5, 4, 3)
labels = (np.arange(5) % 7).astype(np.uint8)
for name, data in (("images-idx3-ubyte", idx(images, 8)), ("labels-idx1-ubyte", idx(labels, 8))):
    with open(place("mnist/train-" + name), "wb") as file:
        file.write(data)
    with open(place("t10k-" + name + ".gz"), "wb") as file:
        file.write(gzip.compress(data, mtime=0))
for code in CODES:
    array = (np.arange(5 * 4) % 101 - (0 if code == "u1" else 50)).astype(code).reshape(5, 4)
    with open(place(f"{code}.idx"), "wb") as file:
        file.write(idx(array, CODES[code]))

with open(place("rows.libsvm"), "w") as file:
    file.write("# a comment\n+1 1:0.5 3:-2e1 # the end\n\n-1 2:7\n1.5 qid:3 1:9 4:1\n-1\n")
