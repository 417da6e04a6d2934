#!/usr/bin/env python3
"""Makes the HDF5 files of samples that tests/unit/data reads, with the real h5py, and beside them an npz with what must be found."""
import os

import h5py
import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")
os.makedirs(here, exist_ok=True)
random = np.random.default_rng(17)


def write(name, **datasets):
    with h5py.File(os.path.join(here, name), "w") as file:
        for key, (values, options) in datasets.items():
            file.create_dataset(key, data=values, **options)


x = random.standard_normal((6, 3, 2)).astype(np.float32)
y = random.integers(0, 100, 6)
w = random.random(6)
np.savez(os.path.join(here, "samples.npz"), x=x, y=y, w=w.astype(np.float32))

write("plain.h5", x=(x, {}), y=(y, {}), w=(w, {}))
write("chunks.h5", x=(x, {"chunks": (2, 3, 1)}), y=(y.astype(np.int16), {"chunks": (4,)}), w=(w.astype(np.float32), {}))
write("big.h5", x=(x.astype(">f4"), {}), y=(y.astype(">i8"), {}), w=(w.astype(">f8"), {}))
write("bytes.h5", x=((x * 30).astype(np.int8), {}), y=(y.astype(np.uint8), {}))
write("named.h5", x_left=(x, {}), x_right=(x[:, 0], {}), y_out=(y, {}))
write("others.h5", pixels=(x, {}), label=(y, {}), **{"deep/x": (x, {})})
with h5py.File(os.path.join(here, "block.h5"), "w", userblock_size=512) as file:
    file["x"], file["y"], file["w"] = x, y, w

# In chunks, some of them at an edge; each filter by itself and all together.
write("filters.h5", x=(x, {"chunks": (4, 2, 2), "compression": "gzip", "shuffle": True, "fletcher32": True}),
      y=(y, {"chunks": (4,), "shuffle": True}), w=(w.astype(np.float32), {"chunks": (5,), "fletcher32": True}))
write("packed.h5", x=(x, {"compression": "gzip"}), y=(y.astype(">i4"), {"compression": "gzip", "chunks": (6,)}),
      w=(w, {"chunks": (4,), "compression": "gzip", "compression_opts": 9}))
write("odd.h5", x=(x.astype(np.uint8), {"chunks": (5, 3, 1), "fletcher32": True}))
# More chunks than one node of the index holds.
many = random.integers(0, 255, (300, 2)).astype(np.uint8)
write("many.h5", x=(many, {"chunks": (1, 2), "compression": "gzip"}), y=(np.arange(300), {"chunks": (2,)}))
np.savez(os.path.join(here, "many.npz"), x=many, y=np.arange(300))
np.savez(os.path.join(here, "odd.npz"), x=x.astype(np.uint8))
write("lzf.h5", x=(x, {"compression": "lzf"}))
write("scaleoffset.h5", x=(y, {"scaleoffset": 0}))
with h5py.File(os.path.join(here, "latest.h5"), "w", libver="latest") as file:
    file.create_dataset("x", data=x, chunks=(2, 3, 2), maxshape=(None, 3, 2))
with h5py.File(os.path.join(here, "partly.h5"), "w") as file:
    file.create_dataset("x", (6, 3), "f4", chunks=(2, 3))[:4] = 1
write("counts.h5", x=(x, {}), y=(y[:5], {}))
write("both.h5", x=(x, {}), x_left=(x, {}))
write("scalar.h5", x=(np.float32(1), {}))
write("text.h5", x=(np.array([b"a", b"b"]), {}))
with h5py.File(os.path.join(here, "unwritten.h5"), "w") as file:
    file.create_dataset("x", (1 << 40,), "f4")
with h5py.File(os.path.join(here, "link.h5"), "w") as file:
    file["x"] = h5py.ExternalLink("plain.h5", "x")
# 40 KB that unpack to 40 MiB: nobody has asked for that.
write("bomb.h5", x=(np.zeros(10 << 20, "f4"), {"chunks": (5 << 20,), "compression": 9}))
