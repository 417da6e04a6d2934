#!/usr/bin/env python3
"""make_hdf5.py: small HDF5 files for tests/unit/format/test_hdf5.c, made by h5py. Run in this folder."""
import h5py, numpy as np

with h5py.File("plain.h5", "w") as f:
    for name in ("f2", "f4", "f8", ">f4", "i1", "u2", "i4", ">i8", "u8"):
        f["types/" + name.replace(">", "big_")] = np.array([[1, 2, 3], [4, 5, 100]], name)
    f["scalar"] = np.float32(7.5)
    f["empty"] = np.zeros((0, 4), "f4")
    f["deep/a/b/c"] = np.arange(24, dtype="f4").reshape(2, 3, 4)
    f.create_dataset("chunks", data=np.arange(100, dtype="f4").reshape(10, 10), chunks=(3, 4))
    f["text"] = "no numbers"
    f["flags"] = np.array([True, False])
    f.attrs["model_config"] = '{"class_name": "Sequential"}'
    f.attrs["layer_names"] = np.array([b"dense", b"dense_1"])
    f.attrs["variable"] = np.array(["a", "long text", ""], dtype=h5py.string_dtype())
    f.attrs["number"] = 3
    f.attrs["empty"] = np.zeros(0)
    f["deep"].attrs["name"] = "of a group"

with h5py.File("soft.h5", "w") as f:
    f["a"] = np.zeros(3, "f4")
    f["b"] = h5py.SoftLink("/a")
with h5py.File("external_link.h5", "w") as f:
    f["a"] = h5py.ExternalLink("plain.h5", "/scalar")
with h5py.File("external_data.h5", "w") as f:
    f.create_dataset("a", (3,), "f4", external=[("/etc/passwd", 0, 12)])
with h5py.File("virtual.h5", "w") as f:
    layout = h5py.VirtualLayout((3,), "f4")
    layout[:] = h5py.VirtualSource("plain.h5", "scalar", (3,))
    f.create_virtual_dataset("a", layout)
with h5py.File("gzip.h5", "w") as f:
    f.create_dataset("a", data=np.zeros(100000, "f4"), compression="gzip")
with h5py.File("claims.h5", "w") as f:
    f.create_dataset("a", (1 << 40,), "f4")  # never written: nothing is stored
with h5py.File("circle.h5", "w") as f:
    f.create_group("a")
    f["a/again"] = f["a"]
with h5py.File("datatype.h5", "w") as f:
    f["a"] = np.dtype("f4")
# What newer versions of the library write. Values are 0, 1, 2, ... everywhere.
with h5py.File("dense.h5", "w", libver="latest", track_order=True) as f:
    group = f.create_group("layers", track_order=True)
    for i in range(300):
        group[f"v{i}"] = np.arange(i % 3 + 1, dtype="f4")
    for i in range(40):
        group.attrs[f"text{i}"] = "t" * i
    f["few/a"] = np.arange(3, dtype="f4")
with h5py.File("latest.h5", "w", libver="latest") as f:
    numbers = np.arange(2100, dtype="f4")
    f.create_dataset("single", data=numbers, chunks=(2100,))
    f.create_dataset("single_packed", data=numbers, chunks=(2100,), compression="gzip", shuffle=True)
    f.create_dataset("array", data=numbers[:99].reshape(9, 11), chunks=(4, 4))
    f.create_dataset("array_packed", data=numbers[:99].reshape(9, 11), chunks=(4, 4), compression="gzip", fletcher32=True)
    f.create_dataset("array_pages", data=numbers, chunks=(2,))
    f.create_dataset("tree", data=numbers[:99].reshape(9, 11), chunks=(4, 4), maxshape=(None, None))
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_chunk((4, 4))
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    made = h5py.h5d.create(f.id, b"implicit", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((9, 11)), early)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers[:99].reshape(9, 11))
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    made = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32BE, h5py.h5s.create_simple((7,)), compact)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers[:7])
