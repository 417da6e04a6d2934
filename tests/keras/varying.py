#!/usr/bin/env python3
"""Prints what test_varying.c expects: Keras's losses where batches of 32 are followed by batches of 64. Needs keras and TensorFlow."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
import keras

x = np.arange(1000, dtype="float32").reshape(-1, 1)
parts = [tf.data.Dataset.from_tensor_slices((x, x)).batch(size) for size in (32, 64)]
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
unit = np.arange(64, dtype="float32")
model.set_weights([((unit - 20) / 64).reshape(1, 64), unit / 640, ((63 - unit) / 1280).reshape(64, 1), np.zeros(1)])
model.compile("adam", "mse")
history = model.fit(parts[0].concatenate(parts[1]), epochs=10, verbose=0, shuffle=False)
print("    " + ", ".join(f"{loss:.9g}" for loss in history.history["loss"]))
print("    " + ", ".join(f"{value:.9g}" for value in model.get_weights()[2].ravel()[:4]))
