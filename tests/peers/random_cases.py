#!/usr/bin/env python3
"""Random models that the real Keras trains for a while, trained on by `batchwise train` from Keras's file, and compared.

  random_cases.py --batchwise build/batchwise [--first 1] [--count 40] [--keep FOLDER]

Of each seed: a model of random layers, an optimizer, a loss, samples. Keras trains it for an epoch and saves it, so that the file has
the optimizer's state; then both train two more epochs without shuffling. What counts is the error of all weights over the way that
they went (at most 1 percent) and the losses of the epochs (within 0.1 percent). Then the file that batchwise wrote is trained on by
Keras for another epoch, beside Keras's own. Needs keras and jax.
"""
import argparse, json, os, random, shutil, subprocess, sys, tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import keras
from keras import layers as L, optimizers as O

ACTIVATIONS = "relu tanh sigmoid elu selu softplus softsign silu gelu leaky_relu linear".split()


def image_layer(r, h):
    """One layer that keeps an image an image of at least 2x2."""
    channels, side = h.shape[-1], min(h.shape[1:3])
    choice = r.randrange(11)
    if choice == 0 and side >= 4:
        return r.choice([L.MaxPooling2D, L.AveragePooling2D])(2, strides=r.choice([1, 2]), padding=r.choice(["valid", "same"]))(h)
    if choice == 1:
        return L.DepthwiseConv2D(3, padding="same", depth_multiplier=r.choice([1, 2]), activation=r.choice(ACTIVATIONS))(h)
    if choice == 2:
        return L.BatchNormalization(momentum=r.choice([0.9, 0.99]), center=r.random() < 0.8, scale=r.random() < 0.8)(h)
    if choice == 3:
        return L.LayerNormalization(axis=r.choice([-1, [1, 2, 3]]))(h)
    if choice == 4:
        return L.Add()([h, L.Conv2D(channels, 3, padding="same", activation=r.choice(ACTIVATIONS))(h)])
    if choice == 5:
        return L.Concatenate()([h, L.Conv2D(2, 1)(h)])
    if choice == 6 and side <= 8:
        return L.UpSampling2D(2, interpolation=r.choice(["nearest", "bilinear"]))(h)
    if choice == 7:
        return L.ZeroPadding2D(((1, 0), (2, 1)))(h)
    if choice == 8 and side >= 5:
        return L.Cropping2D(((1, 0), (0, 1)))(h)
    if choice == 9:
        return r.choice([L.PReLU(shared_axes=[1, 2]), L.ELU(0.7), L.LeakyReLU(0.1), L.ReLU(4.0, negative_slope=0.1)])(h)
    return L.Conv2D(r.choice([4, 6]), r.choice([1, 3]), strides=r.choice([1, 1, 2]) if side >= 6 else 1, padding="same", groups=2 if channels % 2 == 0 and r.random() < 0.3 else 1,
                    activation=r.choice(ACTIVATIONS), kernel_regularizer=r.choice([None, None, "l2"]))(h)


def line_layer(r, h):
    if h.shape[1] >= 4 and r.random() < 0.4:
        return r.choice([L.MaxPooling1D, L.AveragePooling1D])(2)(h)
    if r.random() < 0.2:
        return L.Multiply()([h, L.Dense(h.shape[-1], "sigmoid")(h)])
    return L.Conv1D(r.choice([3, 5]), 3, padding=r.choice(["same", "causal"]), activation=r.choice(ACTIVATIONS))(h)


def body(r, n, g):
    kind = r.choice(["image", "line", "words", "table"])
    if kind == "image":
        x = g.randn(n, 8, 9, r.choice([1, 3])).astype("float32")
        i = h = keras.Input(x.shape[1:])
        for _ in range(r.randint(1, 4)):
            h = image_layer(r, h)
        return i, r.choice([L.Flatten, L.GlobalAveragePooling2D, L.GlobalMaxPooling2D])()(h), x
    if kind == "line":
        x = g.randn(n, 12, 3).astype("float32")
        i = h = keras.Input(x.shape[1:])
        for _ in range(r.randint(1, 3)):
            h = line_layer(r, h)
        return i, r.choice([L.Flatten, L.GlobalAveragePooling1D, L.GlobalMaxPooling1D])()(h), x
    if kind == "words":
        x = g.randint(0, 30, (n, 7)).astype("int32")
        i = keras.Input((7,), dtype="int32")
        masked = r.random() < 0.5
        h = L.Embedding(30, 5, mask_zero=masked)(i)
        return i, (L.GlobalAveragePooling1D() if masked else r.choice([L.Flatten(), L.GlobalMaxPooling1D()]))(h), x
    x = (g.randn(n, 6) * 2 + 1).astype("float32")
    i = keras.Input((6,))
    h = L.Rescaling(0.5, -0.2)(i) if r.random() < 0.5 else i
    a = L.Dense(5, r.choice(ACTIVATIONS))(h)
    return i, r.choice([lambda: L.Subtract()([a, L.Dense(5)(h)]), lambda: L.Average()([a, L.Dense(5)(h), L.Dense(1)(h)]), lambda: L.Dot(axes=1)([a, L.Dense(5)(h)]), lambda: a])(), x


def optimizer(r):
    rate = r.choice([0.003, 0.01, O.schedules.ExponentialDecay(0.01, 4, 0.8), O.schedules.CosineDecay(0.01, 40), O.schedules.PiecewiseConstantDecay([5], [0.01, 0.004])])
    more = r.choice([{}, {}, {"clipnorm": 0.5}, {"clipvalue": 0.1}, {"global_clipnorm": 1.0}, {"weight_decay": 0.01}])
    return r.choice([lambda: O.SGD(rate, **more), lambda: O.SGD(rate, momentum=0.9, nesterov=r.random() < 0.5, **more), lambda: O.Adam(rate, amsgrad=r.random() < 0.3, **more), lambda: O.RMSprop(rate, momentum=r.choice([0.0, 0.5]), **more),
                     lambda: O.AdamW(rate), lambda: O.Nadam(rate, **more), lambda: O.Adagrad(rate, **more), lambda: O.Adamax(rate, **more)])()


def build(seed):
    r, g = random.Random(seed), np.random.RandomState(seed)
    keras.utils.set_random_seed(seed)
    n = r.choice([30, 64, 75])
    i, h, x = body(r, n, g)
    h = L.Dense(r.choice([4, 9]), r.choice(ACTIVATIONS), use_bias=r.random() < 0.8)(h)
    classes = r.choice([2, 5])
    task = r.choice(["sparse", "onehot", "binary", "real"])
    if task == "sparse":
        o, loss, y = L.Dense(classes, "softmax")(h), "sparse_categorical_crossentropy", g.randint(0, classes, n).astype("int32")
    elif task == "onehot":
        o, loss, y = L.Dense(classes, "softmax")(h), keras.losses.CategoricalCrossentropy(label_smoothing=r.choice([0.0, 0.1])), np.eye(classes, dtype="float32")[g.randint(0, classes, n)]
    elif task == "binary":
        o, loss, y = L.Dense(1, "sigmoid")(h), "binary_crossentropy", g.randint(0, 2, (n, 1)).astype("float32")
    else:
        o, loss, y = L.Dense(2)(h), r.choice(["mse", "mae", "huber", "log_cosh"]), g.randn(n, 2).astype("float32")
    m = keras.Model(i, o)
    m.compile(optimizer(r), loss, metrics=["accuracy"] if task != "real" else ["mae"])
    w = g.rand(n).astype("float32") if r.random() < 0.3 else None
    return m, x, y, w, r.choice([7, 16, 32])


def way(before, a, b):
    """The error of b beside a, over the way that a went."""
    went = sum(((p - q) ** 2).sum() for p, q in zip(a, before)) ** 0.5
    return sum(((p - q) ** 2).sum() for p, q in zip(a, b)) ** 0.5 / max(went, 1e-6)


def weights(model):
    return [np.asarray(v, "float64") for v in model.get_weights()]


def steep(m, before, x, y, w, batch):
    """Does the training by itself turn the smallest disturbance into another result? Then nothing can be compared."""
    m.set_weights([v * (1 + 1e-6) for v in m.get_weights()])
    m.fit(x, y, sample_weight=w, batch_size=batch, epochs=2, shuffle=False, verbose=0)
    return weights(m)


def check(seed, batchwise, folder):
    keras.backend.clear_session()
    m, x, y, w, batch = build(seed)
    fit = dict(sample_weight=w, batch_size=batch, shuffle=False, verbose=0)
    begun, done, data, history = (os.path.join(folder, f"{seed}-{n}") for n in ("begun.keras", "done.keras", "data.npz", "history.json"))
    m.fit(x, y, epochs=1, **fit)
    m.save(begun)
    np.savez(data, x=x, y=y, **({} if w is None else {"w": w}))
    run = subprocess.run([batchwise, "train", "--model", begun, "--data", data, "--batch", str(batch), "--epochs", "2", "--no-shuffle", "--quiet",
                          "--save-model", done, "--history", history], capture_output=True, text=True)
    if run.returncode:
        return f"exit {run.returncode}: {run.stderr.strip()[-200:]}"
    before = weights(m)
    disturbed = keras.models.load_model(begun)
    losses = m.fit(x, y, epochs=2, **fit).history["loss"]
    theirs, ours = weights(m), keras.models.load_model(done)
    off = way(before, theirs, weights(ours))
    got = json.load(open(history))["loss"]
    loss = max(abs(p - q) / max(abs(p), 1e-3) for p, q in zip(losses, got))
    if not off < 1e-2 or not loss < 1e-3:
        chaos = way(before, theirs, steep(disturbed, before, x, y, w, batch))
        return f"error of the weights {off:.1e}, of the loss {loss:.1e}" if chaos < 1e-3 else None
    m.fit(x, y, epochs=1, **fit)
    ours.fit(x, y, epochs=1, **fit)
    off = way(theirs, weights(m), weights(ours))
    return None if off < 2e-2 else f"trained on by Keras: error of the weights {off:.1e}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--keep")
    a = p.parse_args()
    folder = a.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    failures = 0
    for seed in range(a.first, a.first + a.count):
        why = check(seed, a.batchwise, folder)
        failures += why is not None
        if why:
            print(f"seed {seed}: {why}", flush=True)
    if not a.keep:
        shutil.rmtree(folder)
    print(f"{a.count} random cases, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
