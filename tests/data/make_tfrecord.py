#!/usr/bin/env python3
"""Makes the TFRecord files that tests/unit reads, with the real TensorFlow, and beside them an npz with what must be found in them."""
import io
import os

import numpy as np
import tensorflow as tf
from PIL import Image

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tfrecord")
os.makedirs(here, exist_ok=True)
random = np.random.default_rng(11)


def place(name):
    return os.path.join(here, name)


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=np.ravel(values)))


def whole(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=np.ravel(values)))


def text(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def write(name, examples, options=None):
    with tf.io.TFRecordWriter(place(name), options) as writer:
        for features in examples:
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True))


def encode(values):
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


x = random.standard_normal((7, 6)).astype(np.float32)
y = np.array([0, 1, 2, -3, 2**40, 5, 6])
w = random.random(7).astype(np.float32)
rows = [{"x": floats(x[i]), "y": whole(y[i]), "w": floats(w[i]), "name": text(b"row %d" % i)} for i in range(7)]
write("numbers.tfrecord", rows)
write("first.tfrecord", rows[:3])
write("second.tfrecord", rows[3:])
write("numbers.tfrecord.gz", rows, tf.io.TFRecordOptions(compression_type="GZIP"))
write("shards.tfrecord-00000-of-00002", rows[:5])
write("shards.tfrecord-00001-of-00002", rows[5:])
np.savez(place("numbers.npz"), x=x, y=y.astype(np.float32), w=w)

pixels = random.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
write("images.tfrecord", [{"image": text(encode(p)), "label": whole(i)} for i, p in enumerate(pixels)])
write("raw.tfrecord", [{"pixels": text(p.tobytes()), "class": whole([i, -i])} for i, p in enumerate(pixels)])
np.savez(place("images.npz"), x=pixels, y=np.arange(4))

# Records that do not fit together.
write("ragged.tfrecord", [{"x": floats([1, 2])}, {"x": floats([1, 2, 3])}])
write("types.tfrecord", [{"x": floats([1, 2])}, {"x": whole([1, 2])}])
write("missing.tfrecord", [{"x": floats([1, 2])}, {"z": floats([1, 2])}])
write("bad_image.tfrecord", [{"image": text(encode(pixels[0]))}, {"image": text(b"no image")}])
write("no_values.tfrecord", [{"x": floats([])}])
write("text_label.tfrecord", [{"x": floats([1]), "y": text(b"cat")}])
with tf.io.TFRecordWriter(place("no_example.tfrecord")) as writer:
    writer.write(b"\x0a\xff\xff\xff\xff\x0f")
with tf.io.TFRecordWriter(place("none.tfrecord")):
    pass
