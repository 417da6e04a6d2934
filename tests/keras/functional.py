#!/usr/bin/env python3
"""Functional models recorded from the real Keras: shared layers, several outputs, losses and metrics by output, masks, callbacks.

  functional.py make [NAME ...]     records the functions below (all, or those named)

Needs keras with JAX. A case is two files in functional/. NAME.keras is the compiled model as Keras saved it before training. NAME.npz
has the members
  x..., y..., w...     the fields of the training data, and val_x..., val_y..., val_w... those of a validation
  history_COLUMN       what Keras's history says of each epoch (float64)
  final_0 ...          every variable after model.fit(shuffle=False)
  case                 UTF-8 text, one key=value on each line: batch, epochs, early_stopping, reduce_lr_on_plateau, and variable_0 ...:
                       the names of the variables
"""
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
import numpy as np, keras
from keras import layers as L

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "functional")
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def rounded(values):
    """Multiples of 1/256 are exact in float32 and pack well."""
    return (np.round(np.asarray(values) * 256) / 256).astype("f4")


class Run:
    """What a function below gives: the compiled model, and what Keras and the file get."""
    def __init__(self, model, x, y, w=None, fields=None, validation=None, batch=8, epochs=2, **callbacks):
        self.model, self.x, self.y, self.w, self.fields, self.validation = model, x, y, w, fields, validation
        self.batch, self.epochs, self.callbacks = batch, epochs, callbacks


def numbers(r, *shape):
    return rounded(r.standard_normal(shape))


@case
def shared_batchnorm(r):
    """Used three times at two depths: moving statistics move once per use, the deepest first."""
    i, j = keras.Input((4,), name="i"), keras.Input((5,), name="j")
    bn = L.BatchNormalization(name="bn", momentum=0.8)
    a, c = L.Dense(6, "relu", name="a")(i), L.Dense(6, name="c")(j)
    late = bn(L.Dense(6, "tanh", name="d")(bn(a)))
    out = L.Dense(3, activation="softmax", name="o")(L.Concatenate(name="cat")([bn(c), late, L.Dense(2, name="e")(bn(c))]))
    m = keras.Model([i, j], out)
    m.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy")
    x, z, y = numbers(r, 44, 4), numbers(r, 44, 5) + 1, r.integers(0, 3, 44).astype("i4")
    return Run(m, [x, z], y, fields={"x_i": x, "x_j": z, "y": y}, batch=16)


def deflate(path):
    """The same members, compressed: most of them are zeros between HDF5's tables."""
    import zipfile
    with zipfile.ZipFile(path) as z:
        members = [(i.filename, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for member, data in members:
            z.writestr(zipfile.ZipInfo(member, (2000, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def record(name):
    import zlib
    keras.utils.set_random_seed(zlib.crc32(name.encode()) & 0x7fffffff)
    run = CASES[name](np.random.default_rng(zlib.crc32(name.encode())))
    m, calls = run.model, []
    m.save(os.path.join(HERE, name + ".keras"))
    deflate(os.path.join(HERE, name + ".keras"))
    text = [f"batch={run.batch}", f"epochs={run.epochs}"]
    for option, kind in (("early_stopping", "EarlyStopping"), ("reduce_lr_on_plateau", "ReduceLROnPlateau")):
        if option in run.callbacks:
            calls.append(getattr(keras.callbacks, kind)(**run.callbacks[option]))
            shown = {k: str(v).lower() if isinstance(v, bool) else v for k, v in run.callbacks[option].items()}
            text.append(option + "=" + ",".join(f"{k}={v}" for k, v in shown.items()))
    arrays = dict(run.fields)
    validation = None
    if run.validation:
        validation, fields = run.validation
        arrays |= {"val_" + k: v for k, v in fields.items()}
    history = m.fit(run.x, run.y, sample_weight=run.w, batch_size=run.batch, epochs=run.epochs, shuffle=False, verbose=0,
                    validation_data=validation, validation_batch_size=10**6 if validation else None, callbacks=calls).history
    arrays |= {"history_" + k: np.array(v, "f8") for k, v in history.items()}
    for i, v in enumerate(m.weights):
        text.append(f"variable_{i}={v.path}")
        arrays[f"final_{i}"] = keras.ops.convert_to_numpy(v).astype("f4")
    arrays["case"] = np.frombuffer("\n".join(text).encode(), "u1")
    np.savez_compressed(os.path.join(HERE, name + ".npz"), **arrays)
    print(name, {k: [round(float(x), 6) for x in v] for k, v in history.items()})


if __name__ == "__main__":
    if sys.argv[1:2] != ["make"] or set(sys.argv[2:]) - set(CASES):
        sys.exit(__doc__)
    os.makedirs(HERE, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        record(name)
