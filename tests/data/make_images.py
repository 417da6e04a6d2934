#!/usr/bin/env python3
"""Makes the images that tests/unit/format and tests/unit/data read, with the real Pillow, and expected.npz with what must be found
in them: decoded by Pillow, resized by TensorFlow."""
import io
import os
import struct
import zlib

import numpy as np
import tensorflow as tf
from PIL import Image

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")
os.makedirs(here, exist_ok=True)
random = np.random.default_rng(3)
expected = {}


def place(name):
    return os.path.join(here, name)


def smooth(height, width, channels):
    """A picture that JPEG can hold: waves, and a little noise."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(x / (3 + c) + c) * np.cos(y / (4 + c)) for c in range(channels)]
    return np.clip(np.stack(waves, -1) + random.normal(0, 3, (height, width, channels)), 0, 255).astype(np.uint8)


def save(name, image, **options):
    """Writes the file, and keeps what Pillow reads in it as RGB and as gray."""
    image.save(place(name), **options)
    keep(name, Image.open(place(name)))


def keep(name, image):
    key = name.replace(".", "_")
    expected["x_" + key + "_rgb"] = np.asarray(image.convert("RGB"))[None]
    expected["x_" + key + "_gray"] = np.asarray(image.convert("L"))[None, ..., None]


noise = random.integers(0, 256, (13, 17, 3), dtype=np.uint8)
save("rgb.png", Image.fromarray(noise))
save("gray.png", Image.fromarray(noise[..., 0]))
save("bits.png", Image.fromarray(noise[..., 0] > 127))
save("palette.png", Image.fromarray(noise).quantize(20))

# Transparency is left out: what counts is the colour below it.
Image.fromarray(np.concatenate([noise, noise[..., :1]], -1)).save(place("rgba.png"))
keep("rgba.png", Image.fromarray(noise))
Image.merge("LA", [Image.fromarray(noise[..., 1]), Image.fromarray(noise[..., 0])]).save(place("gray_alpha.png"))
keep("gray_alpha.png", Image.fromarray(noise[..., 1]))

# 16 bits: value * 255 / 65535, rounded.
deep = random.integers(0, 65536, (13, 17), dtype=np.uint16)
Image.fromarray(deep).save(place("deep.png"))
keep("deep.png", Image.fromarray(((deep.astype(np.int64) * 255 + 32767) // 65535).astype(np.uint8)))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color, raw, interlace=0):
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def put(name, data):
    with open(place(name), "wb") as file:
        file.write(data)


# Interlaced, which Pillow reads and does not write.
raw = b""
for x0, y0, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
    for row in noise[y0::dy, x0::dx]:
        if len(row):
            raw += b"\0" + row.tobytes()
put("interlaced.png", png(17, 13, 8, 2, raw, 1))
keep("interlaced.png", Image.open(place("interlaced.png")))

photo = Image.fromarray(smooth(61, 83, 3))
save("photo.jpg", photo, quality=90)
save("full.jpg", photo, quality=95, subsampling=0)
save("progressive.jpg", photo, quality=90, progressive=True)
save("photo_gray.jpg", Image.fromarray(smooth(61, 83, 1)[..., 0]), quality=90)
save("inks.jpg", photo.convert("CMYK"), quality=95)

# Pillow's draft decodes at a scale of 1/2, 1/4, 1/8.
for part in (2, 4, 8):
    image = Image.open(place("photo.jpg"))
    image.draft("RGB", (83 // part, 61 // part))
    expected[f"x_draft{part}"] = np.asarray(image)[None]


def resize(image, height, width):
    """Each axis by itself: areas if it shrinks, lines between pixels if it grows."""
    for size in [(height, image.shape[1]), (height, width)]:
        area = size[0] < image.shape[0] or size[1] < image.shape[1]
        image = tf.image.resize(image, size, method="area" if area else "bilinear").numpy()
    return np.floor(image + 0.5).astype(np.uint8)


for height, width in [(7, 5), (30, 40), (5, 40), (29, 6), (1, 1), (13, 18), (12, 17)]:
    expected[f"x_resize_{height}_{width}"] = resize(noise.astype(np.float32), height, width)[None]

# Files that lie or are damaged.
put("huge.png", png(60000, 60000, 8, 2, b"\0" * 1000))
put("widest.png", png(2**31 - 1, 2**31 - 1, 1, 0, b"\0"))
put("empty_claim.png", png(8000, 8000, 8, 2, b"\0" * 100))
put("short_rows.png", png(100, 100, 8, 2, b"\0" * 100))
put("no_width.png", png(0, 5, 8, 2, b"\0"))
whole = open(place("photo.jpg"), "rb").read()
at = whole.index(b"\xff\xc0")
put("huge.jpg", whole[:at + 5] + struct.pack(">HH", 60000, 60000) + whole[at + 9:])
put("empty_claim.jpg", whole[:at + 5] + struct.pack(">HH", 4000, 4000) + whole[at + 9:])
scans = open(place("progressive.jpg"), "rb").read()
at = scans.index(b"\xff\xc2")
put("large_progressive.jpg", scans[:at + 5] + struct.pack(">HH", 6000, 6000) + scans[at + 9:] + b"\0" * 80000)
last = scans.rindex(b"\xff\xda")
put("scans.jpg", scans[:-2] + scans[last:-2] * 40 + scans[-2:])
bad = bytearray(whole)
bad[len(whole) // 2:len(whole) // 2 + 40] = b"\xff" * 40
put("damaged.jpg", bytes(bad))
put("text.png", b"this is text\n")
put("nothing.png", b"")

np.savez_compressed(place("expected.npz"), **expected)

# Two classes of small pictures; classes.npz holds all of them in the order of their names, at 8 x 10.
pictures, labels = [], []
for label, name in enumerate(["cat", "dog"]):
    os.makedirs(place(os.path.join("classes", name)), exist_ok=True)
    for i in range(3):
        values = random.integers(0, 256, (8, 10, 3), dtype=np.uint8)
        Image.fromarray(values).save(place(os.path.join("classes", name, f"{i}.png")))
        pictures.append(values)
        labels.append(label)
np.savez_compressed(place("classes.npz"), x=np.stack(pictures), y=np.array(labels, np.int32))
print(sum(os.path.getsize(os.path.join(r, f)) for r, _, n in os.walk(here) for f in n), "bytes")
