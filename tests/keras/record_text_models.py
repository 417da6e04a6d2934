#!/usr/bin/env python3
"""Records models of Keras that begin with text or categories, and what they predict, for tests/keras/test_text_models.c.

Usage: KERAS_BACKEND=tensorflow python3 record_text_models.py FOLDER    # FOLDER is tests/keras/text

Beside NAME.keras, NAME.samples has a line for each sample, its inputs (texts in hexadecimal) and the prediction, by name:
  review=74686520636174 nums=0.5,-1.25 code=4 = 0.123
"""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

L = keras.layers
folder = sys.argv[1]
keras.utils.set_random_seed(11)
rng = np.random.default_rng(5)
TEXTS = ["The cat sat.", "the dog, the cat", "naïve ÉCOLE é", "", "!!!", "A dog? A DOG! a dog", "unknown words only", "e-mail don't 日本語 🎉 the",
         " spaces\tand\nlines ", "cat " * 40]
CITIES = ["x", "y", "z", "", "Zürich"]


def write(name, model, samples, shapes):
    """Samples are dictionaries by input; shapes say which inputs have an axis of their own."""
    model.save(f"{folder}/{name}.keras")
    batch = {}
    for key in shapes:
        values = [sample[key] for sample in samples]
        array = np.array(values, dtype=object if isinstance(values[0], str) else None)
        batch[key] = tf.constant(array if shapes[key] == () else array.reshape((len(samples),) + shapes[key]))
    outputs = np.asarray(model(batch if len(shapes) > 1 else batch[next(iter(shapes))])).reshape(len(samples), -1)
    with open(f"{folder}/{name}.samples", "w") as file:
        for sample, output in zip(samples, outputs):
            parts = []
            for key in shapes:
                value = sample[key]
                shown = (value.encode().hex() or "-") if isinstance(value, str) else ",".join(repr(float(v)) for v in np.ravel(value))
                parts.append(f"{key}={shown}")
            file.write(" ".join(parts) + " = " + " ".join(repr(float(v)) for v in output) + "\n")


def text_samples(key):
    return [{key: t} for t in TEXTS]


layer = L.TextVectorization(50, output_sequence_length=6)
layer.adapt(TEXTS[:6])
model = keras.Sequential([keras.Input((1,), dtype="string", name="review"), layer, L.Embedding(50, 4, mask_zero=True), L.LSTM(3), L.Dense(1, activation="sigmoid")])
write("sequential", model, text_samples("review"), {"review": (1,)})

layer = L.TextVectorization(output_mode="multi_hot", standardize="lower")
layer.adapt(TEXTS)
model = keras.Sequential([keras.Input((), dtype="string", name="review"), layer, L.Dense(2)])
write("multi_hot", model, text_samples("review"), {"review": ()})

model = keras.Sequential([keras.Input((1,), dtype="string", name="city"), L.StringLookup(vocabulary=["x", "y", "Zürich"], num_oov_indices=3), L.Embedding(6, 3), L.Flatten(), L.Dense(2)])
write("lookup", model, [{"city": c} for c in CITIES], {"city": (1,)})

text = L.TextVectorization(output_mode="tf_idf", ngrams=2)
text.adapt(TEXTS)
city = L.StringLookup(output_mode="one_hot")
city.adapt(["x", "y", "x", "Zürich"])
normal = L.Normalization()
numbers = rng.normal(1, 3, (60, 2)).astype("float32")
normal.adapt(numbers)
code = L.IntegerLookup(num_oov_indices=2, output_mode="one_hot")
code.adapt(np.array([3, 4, 4, 9]))
bins = L.Discretization(num_bins=3, output_mode="one_hot")
bins.adapt(numbers)
a = keras.Input((), dtype="string", name="review")
b = keras.Input((1,), dtype="string", name="city")
c = keras.Input((2,), name="nums")
d = keras.Input((1,), dtype="int64", name="code")
x = L.Concatenate()([text(a), city(b), normal(c), code(d), L.Flatten()(bins(c)),
                     L.CategoryEncoding(3, output_mode="one_hot")(L.StringLookup(vocabulary=["p", "x"])(b)),
                     L.Hashing(4, output_mode="one_hot")(b), L.HashedCrossing(7, output_mode="one_hot")((b, d))])
model = keras.Model([a, b, c, d], L.Dense(2, activation="softmax")(x))
samples = [{"review": TEXTS[i % len(TEXTS)], "city": CITIES[i % len(CITIES)], "nums": rng.normal(1, 3, 2).astype("float32"), "code": int(i % 11)} for i in range(20)]
write("functional", model, samples, {"review": (), "city": (1,), "nums": (2,), "code": (1,)})
