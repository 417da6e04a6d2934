#!/usr/bin/env python3
"""Makes the npz files that tests/unit/data reads, with the real NumPy, beside this script.

Every array holds values that the tests compute again by a formula:
  value k (row-major) of x is k % 101 - 50 for signed types and floats (halves added for floats), k % 101 for unsigned
  ones, k % 3 == 0 for bool; y is s % 7; w is s / 4.
"""
import io
import os
import zipfile

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
SHAPE = (5, 3, 4, 2)


def place(name):
    return os.path.join(here, name)


def values(dtype, shape=SHAPE):
    k = np.arange(np.prod(shape)).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return k % 3 == 0
    if dtype.kind == "u":
        return (k % 101).astype(dtype)
    if dtype.kind == "i":
        return (k % 101 - 50).astype(dtype)
    return (k % 101 - 50 + 0.5).astype(dtype)


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version, allow_pickle=True)
    return stream.getvalue()


def write(name, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(place(name), "w", method) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data, method)


y = (np.arange(5) % 7).astype(np.int64)
w = (np.arange(5) / 4).astype(np.float32)

for dtype in ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]:
    name = np.dtype(dtype).name
    little = values(np.dtype(dtype).newbyteorder("<"))
    big = values(np.dtype(dtype)).astype(np.dtype(dtype).newbyteorder(">"))
    np.savez(place(f"{name}_stored.npz"), x=little, y=y, w=w)
    np.savez_compressed(place(f"{name}_deflated.npz"), x=np.asfortranarray(little), y=y, w=w)
    np.savez(place(f"{name}_big.npz"), x=big, y=y, w=w)
    np.savez_compressed(place(f"{name}_big_fortran.npz"), x=np.asfortranarray(big), y=y, w=w)

x = values("f4")
for version in (1, 2, 3):
    write(f"version{version}.npz", {"x.npy": npy(x, (version, 0)), "y.npy": npy(y, (version, 0)), "w.npy": npy(w, (version, 0))})

np.savez(place("named.npz"), x_left=x, x_right=values("u1", (5, 6)), y_age=y, y_kind=values("f4", (5, 2)), w_age=w, other=w)
np.savez(place("only_x.npz"), x=values("f4", (3, 2)))
np.savez(place("no_x.npz"), images=x, y=y)
np.savez(place("counts.npz"), x=x, y=y[:4])
np.savez(place("empty.npz"), x=x[:0], y=y[:0])
np.savez(place("objects.npz"), x=np.array([{}, []], dtype=object))
np.savez(place("complex.npz"), x=np.zeros(3, np.complex64))
np.savez(place("text.npz"), x=np.array(["a", "b"]))
np.savez(place("records.npz"), x=np.zeros(3, [("a", "f4"), ("b", "i4")]))
np.savez(place("scalar.npz"), x=np.float32(1))
np.savez(place("mixed.npz"), x=x, x_a=x)

# Hostile files: each must be refused within a second and 64 MiB.
CENTRAL, LOCAL, END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"


def read(name):
    with open(place(name), "rb") as file:
        return bytearray(file.read())


def save(name, data):
    with open(place(name), "wb") as file:
        file.write(data)


def number(value, size):
    return value.to_bytes(size, "little")


def header(shape, descr="|u1"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


np.savez_compressed(place("bomb_zeros.npz"), x=np.zeros(40 << 20, np.uint8))
write("bomb_shape.npz", {"x.npy": header((1 << 40,)) + bytes(10)}, zipfile.ZIP_DEFLATED)

# A size that 200 packed bytes cannot have, in agreement with the header.
write("bomb_size.npz", {"x.npy": header(((1 << 31) - 128,)) + bytes(70)}, zipfile.ZIP_DEFLATED)
data = read("bomb_size.npz")
for signature, at in ((CENTRAL, 24), (LOCAL, 22)):
    start = data.index(signature) + at
    data[start : start + 4] = number(1 << 31, 4)
save("bomb_size.npz", data)

# 60 members that are all the same bytes of the file.
packed = np.random.default_rng(1).integers(0, 256, 4096).astype(np.uint8)
write("bomb_overlap.npz", {"x_00.npy": npy(packed)})
data = read("bomb_overlap.npz")
start, end = data.index(CENTRAL), data.index(END)
entry = data[start:end]
entries = b"".join(entry.replace(b"x_00", b"x_%02d" % i) for i in range(60))
tail = END + number(0, 4) + number(60, 2) * 2 + number(len(entries), 4) + number(start, 4) + number(0, 2)
save("bomb_overlap.npz", data[:start] + entries + tail)

# An end of zip64 that claims 2^40 members.
data = read("only_x.npz")
start, end = data.index(CENTRAL), data.index(END)
end64 = (
    b"PK\x06\x06" + number(44, 8) + number(45, 2) * 2 + number(0, 8) + number(1 << 40, 8) * 2 + number(end - start, 8) + number(start, 8)
)
locator = b"PK\x06\x07" + number(0, 4) + number(end, 8) + number(1, 4)
tail = END + number(0, 4) + number(0xFFFF, 2) * 2 + number(0xFFFFFFFF, 4) * 2 + number(0, 2)
save("bomb_members.npz", data[:end] + end64 + locator + tail)

write("packed_bzip2.npz", {"x.npy": npy(x)}, zipfile.ZIP_BZIP2)
write("encrypted.npz", {"x.npy": npy(x)})
data = read("encrypted.npz")
for signature, at in ((CENTRAL, 8), (LOCAL, 6)):
    data[data.index(signature) + at] |= 1
save("encrypted.npz", data)

write("twice.npz", {"x.npy": npy(x), "y.npy": npy(y)})
save("twice.npz", read("twice.npz").replace(b"y.npy", b"x.npy"))

# Place and sizes in zip64's extra field of the central directory, as files beyond 4 GiB have them.
write("zip64.npz", {"pad.txt": b"?" * 21, "x.npy": npy(x)})
data = read("zip64.npz")
start, end = data.index(CENTRAL), data.index(END)
first = data[start : data.index(CENTRAL, start + 4)]
second = data[start + len(first) : end]
extra = number(1, 2) + number(24, 2) + second[24:28] + bytes(4) + second[20:24] + bytes(4) + second[42:46] + bytes(4)
second[20:28] = number(0xFFFFFFFF, 4) * 2
second[30:32] = number(len(extra), 2)
second[42:46] = number(0xFFFFFFFF, 4)
entries = first + second + extra
tail = END + number(0, 4) + number(2, 2) * 2 + number(len(entries), 4) + number(start, 4) + number(0, 2)
save("zip64.npz", data[:start] + entries + tail)
