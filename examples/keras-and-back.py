"""Keras's side of keras-and-back.c.

    python3 keras-and-back.py begin DIGITS.npz BEGUN.keras         trains for five epochs, and saves
    python3 keras-and-back.py compare DIGITS.npz BEGUN.keras CONTINUED.keras

The second trains the first file for five more epochs in Keras and evaluates it beside the file that the C program has written, which then
goes on for an epoch in Keras.
"""
import sys

import keras
import numpy

digits = numpy.load(sys.argv[2])
x, y = digits["x"].astype("float32"), digits["y"]

if sys.argv[1] == "begin":
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input(x.shape[1:]),
        keras.layers.Rescaling(1 / 16),
        keras.layers.Flatten(),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5, shuffle=False, verbose=0)
    model.save(sys.argv[3])
    print("begun in Keras: loss %.4f, accuracy %.4f" % tuple(model.evaluate(x, y, verbose=0)))
else:
    begun, continued = keras.models.load_model(sys.argv[3]), keras.models.load_model(sys.argv[4])
    begun.fit(x, y, epochs=5, shuffle=False, verbose=0)
    print("continued in Keras: loss %.4f, accuracy %.4f" % tuple(begun.evaluate(x, y, verbose=0)))
    print("come back: loss %.4f, accuracy %.4f" % tuple(continued.evaluate(x, y, verbose=0)))
    print("updates by the optimizers: %d, %d" % (int(begun.optimizer.iterations), int(continued.optimizer.iterations)))
    continued.fit(x, y, epochs=1, verbose=0)
    print("one more epoch in Keras: loss %.4f, accuracy %.4f" % tuple(continued.evaluate(x, y, verbose=0)))
