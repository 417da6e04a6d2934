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
