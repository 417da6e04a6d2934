#!/usr/bin/env python3
"""Models of the real Keras, for tests/unit/file: small, trained for a few steps, with what they predict.

  make_keras.py make [NAME ...|ends] writes NAME.keras (or .h5, .json) and NAME.npz in this folder; needs keras and jax
  make_keras.py make bomb           writes bomb.keras: a small model whose weights are 40 MiB of packed zeros
  make_keras.py make tensors        writes untrained_F32.safetensors and those of other types: the weights of untrained.keras by the
                                    real package; needs safetensors and ml_dtypes
  make_keras.py check FOLDER        loads every NAME.keras that the C test wrote to FOLDER (BW_KERAS_OUT=FOLDER) on the backend at
                                    hand: no warning, the predictions of NAME.npz within 1e-5, and it goes on training;
                                    NAME_h5.keras, made from NAME.h5, must have the layers of NAME.keras by their names, too

MAKE_KERAS_IN=FOLDER: there in place of this folder.

NAME.npz has x (x_<input> if there are several), y (y_<output>), p0, p1, ... (predictions of the file, one for each output), and
q0, ... (those after one more epoch without shuffling, batches of 8) where training is not random.
"""
import os, shutil, sys, warnings

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import keras
from keras import layers as L, optimizers as O, initializers as I, regularizers as R

HERE = os.environ.get("MAKE_KERAS_IN", os.path.dirname(os.path.abspath(__file__)))
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


def data(shape, n=24, outputs=1, kind="number", seed=1):
    r = np.random.RandomState(seed)
    x = r.randint(0, 9, (n,) + shape).astype("int32") if kind == "words" else r.randn(n, *shape).astype("float32")
    y = r.randint(0, outputs, n).astype("int32") if kind == "classes" else r.randn(n, outputs).astype("float32")
    return x, y


def compiled(model, optimizer="adam", loss="mse", metrics=("mae",), **more):
    model.compile(optimizer=optimizer, loss=loss, metrics=list(metrics), **more)
    return model


@row
def dense():
    m = keras.Sequential([keras.Input((5,))] + [
        L.Dense(6, a, kernel_initializer=i, kernel_regularizer=r, use_bias=b, name=n) for a, i, r, b, n in (
            ("relu", "he_normal", None, True, "first"), ("tanh", I.VarianceScaling(2.0, "fan_out", "uniform", seed=3), "l2", False, "second"),
            ("sigmoid", I.RandomNormal(0.1, 0.3), R.L1(0.001), True, "third"), ("elu", I.Orthogonal(0.7), R.L1L2(0.001, 0.002), True, "a"),
            ("selu", I.TruncatedNormal(stddev=0.2), R.L2(0.003), True, "b"), ("softplus", I.RandomUniform(-0.2, 0.3), None, True, "c"),
            ("softsign", I.Constant(0.1), None, True, "d"), ("silu", "lecun_uniform", None, True, "e"), ("gelu", "ones", None, True, "f"),
            ("leaky_relu", "identity", None, True, "g"), ("hard_sigmoid", "glorot_normal", None, True, "h"),
            ("exponential", "zeros", None, True, "i"), (None, "glorot_uniform", None, True, "j"))] + [L.Dense(2)])
    return compiled(m, O.SGD(0.01, momentum=0.9, nesterov=True)), *data((5,), outputs=2)


@row
def cnn():
    m = keras.Sequential([keras.Input((12, 12, 3)), L.ZeroPadding2D(((1, 2), (0, 1))), L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
                          L.BatchNormalization(momentum=0.8, epsilon=0.01), L.ReLU(6, negative_slope=0.1, threshold=0.05),
                          L.Conv2D(6, (2, 3), dilation_rate=(1, 2), padding="same", use_bias=False), L.LeakyReLU(0.2), L.AveragePooling2D(2, 1, "same"),
                          L.Conv2D(6, 3, groups=2, padding="same"), L.PReLU(shared_axes=[1, 2]), L.Cropping2D(1), L.MaxPooling2D(2, padding="same"),
                          L.BatchNormalization(center=False, trainable=False), L.Flatten(), L.Dense(3, "softmax")])
    return compiled(m, loss="sparse_categorical_crossentropy", metrics=["accuracy"]), *data((12, 12, 3), outputs=3, kind="classes")


@row
def line():
    m = keras.Sequential([keras.Input((10, 3)), L.Conv1D(4, 3, padding="causal", activation="tanh"), L.MaxPooling1D(2), L.Conv1D(5, 2, strides=1),
                          L.AveragePooling1D(2, padding="same"), L.ELU(0.7), L.GlobalMaxPooling1D(), L.Dense(1)])
    return compiled(m, O.RMSprop(0.003, momentum=0.5, centered=True), "huber", []), *data((10, 3))


@row
def shapes():
    m = keras.Sequential([keras.Input((6, 4, 2)), L.Rescaling(0.5, offset=0.1), L.UpSampling2D((2, 1)), L.UpSampling2D(2, interpolation="bilinear"),
                          L.Permute((2, 1, 3)), L.LayerNormalization(axis=[-2, -1], epsilon=0.01), L.SpatialDropout2D(0.0), L.Reshape((-1, 6)),
                          L.LayerNormalization(scale=False), L.GlobalAveragePooling1D(keepdims=True), L.Reshape((6,)), L.Activation("tanh"),
                          L.Dropout(0.0), L.GaussianNoise(0.0), L.Dense(2)])
    return compiled(m, O.Adagrad(0.05)), *data((6, 4, 2), outputs=2)


@row
def normalization():
    x, y = data((7,))
    n = L.Normalization(); n.adapt(x * 3 + 2)
    m = keras.Sequential([keras.Input((7,)), n, L.Dense(3), L.Softmax(), L.Dense(1)])
    return compiled(m), x, y


@row
def random():
    m = keras.Sequential([keras.Input((8, 8, 2)), L.SpatialDropout2D(0.3, seed=7), L.Conv2D(3, 3), L.GaussianNoise(0.2), L.Flatten(), L.Dropout(0.4), L.Dense(2)])
    return compiled(m), *data((8, 8, 2), outputs=2), "random"


@row
def residual():
    i = keras.Input((8, 8, 3), name="picture")
    a = L.Conv2D(6, 3, padding="same", activation="relu", name="stem")(i)
    b = L.Conv2D(6, 3, padding="same")(a)
    h = L.Activation("relu")(L.Add()([a, b]))
    h = L.DepthwiseConv2D(3, depth_multiplier=2, padding="same")(h)
    h = L.Concatenate()([h, a, L.Conv2D(2, 1)(i)])
    o = L.Dense(3, "softmax")(L.GlobalAveragePooling2D()(h))
    return compiled(keras.Model(i, o), O.AdamW(0.002, weight_decay=0.01), "sparse_categorical_crossentropy", ["accuracy"]), *data((8, 8, 3), outputs=3, kind="classes")


@row
def merges():
    i, j = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    a, b = L.Dense(4, name="z")(i), L.Dense(4, name="y")(j)
    t = [L.Subtract()([a, b]), L.Multiply()([a, b]), L.Average()([a, b, i]), L.Maximum()([b, a]), L.Minimum()([a, b]), L.Dot(axes=1)([a, b])]
    o = L.Dense(2)(L.Concatenate(axis=-1)(t))
    m = compiled(keras.Model([i, j], o), O.Adamax(0.01))
    x, y = data((4,), outputs=2)
    return m, [x, x[::-1].copy()], y


@row
def order():
    """Keras's order of layers is neither that of their making nor of their names: depth decides, then the walk from the output."""
    i = keras.Input((3,))
    late = L.Dense(4, name="late")(i)
    a = L.Dense(4, name="m1")(i)
    b = L.Dense(4, name="m2")(L.Dense(4, name="m3")(a))
    c = L.Add()([L.Dense(4, name="m0")(b), late])
    d = L.Concatenate()([L.Dense(2, name="q")(late), c, L.Dense(3, name="p")(a)])
    return compiled(keras.Model(i, L.Dense(1)(d)), O.SGD(0.02, momentum=0.8)), *data((3,))


@row
def shared():
    i, j = keras.Input((4,), name="one"), keras.Input((4,), name="two")
    twin, up = L.Dense(5, "tanh", name="twin"), L.Dense(4, name="up")
    a, b = twin(i), twin(j)
    c = twin(up(a))
    o, p = L.Dense(3, "softmax", name="kind")(L.Concatenate()([a, b])), L.Dense(1, name="size")(L.Add()([b, c]))
    m = keras.Model([i, j], [o, p])
    m.compile(O.Nadam(0.004), loss={"kind": "sparse_categorical_crossentropy", "size": keras.losses.Huber(0.7)},
              metrics={"kind": ["accuracy"], "size": ["mae", keras.metrics.RootMeanSquaredError(name="root")]})
    x, y = data((4,), outputs=3, kind="classes")
    return m, [x, x[::-1].copy()], [y, data((4,))[1]]


@row
def text():
    i = keras.Input((6,), dtype="int32")
    h = L.GlobalAveragePooling1D()(L.Embedding(9, 4, mask_zero=True, embeddings_initializer=I.RandomUniform(-0.5, 0.5))(i))
    return compiled(keras.Model(i, L.Dense(1, "sigmoid")(h)), loss="binary_crossentropy", metrics=["accuracy"]), data((6,), kind="words")[0], (data((6,))[1] > 0).astype("float32")


@row
def words():
    m = keras.Sequential([keras.Input((5,)), L.Embedding(9, 3), L.Flatten(), L.Dense(2)])  # a float input that holds indices
    return compiled(m), data((5,), kind="words")[0], data((5,), outputs=2)[1]


@row
def frozen():
    m = keras.Sequential([keras.Input((4,)), L.Dense(5, "relu", trainable=False), L.BatchNormalization(), L.Dense(3, trainable=False), L.Dense(2)])
    return compiled(m), *data((4,), outputs=2)


@row
def constraints():
    C, R = keras.constraints, keras.regularizers
    m = keras.Sequential([keras.Input((6, 3)), L.Conv1D(4, 2, kernel_constraint=C.MinMaxNorm(0.2, 0.9, 0.5, axis=[0, 1]), bias_constraint=C.NonNeg()),
                          L.LSTM(3, recurrent_constraint=C.UnitNorm(axis=0), activity_regularizer=R.L2(0.01)), L.ActivityRegularization(l1=0.01),
                          L.Dense(2, kernel_constraint=C.MaxNorm(0.7), kernel_regularizer=R.OrthogonalRegularizer(0.1, mode="columns"))])
    return compiled(m), *data((6, 3), outputs=2)


@row
def nested():
    """A shared list, a shared functional model of two inputs and outputs, one within another, and names that appear on each level."""
    make = lambda norm: keras.Sequential([keras.Input((4,)), L.Dense(3, "tanh", name="dense"), norm], name="inner")
    a, b = keras.Input((4,)), keras.Input((3,))
    two = keras.Model([a, b], [L.Dense(2, name="dense")(a), L.Dense(2, name="other")(L.Add()([make(L.LayerNormalization())(a), b]))], name="two")
    i, inner = keras.Input((4,), name="i"), make(L.BatchNormalization(momentum=0.9, name="norm"))
    first, second = two([i, inner(i)])
    third, _ = two([L.Dense(4, name="dense")(i), L.Dense(3, name="side")(i * 2)])
    m = keras.Model(i, L.Dense(1, name="last")(L.Concatenate()([first, second, third])))
    return compiled(m, O.Adam(0.01)), *data((4,))


@row
def transfer():
    """A list whose first layer is a frozen model."""
    base = keras.Sequential([keras.Input((6, 6, 2)), L.Conv2D(3, 3, activation="relu"), L.BatchNormalization(), L.GlobalAveragePooling2D()], name="base")
    base.trainable = False
    return compiled(keras.Sequential([keras.Input((6, 6, 2)), base, L.Dense(4, "relu"), L.Dense(2)])), *data((6, 6, 2), outputs=2)


@row
def long_names():
    """Names that need more than 63 bytes at each level; in the older files a model's trainable variables come first."""
    a = keras.Input((4,))
    bn = L.BatchNormalization(momentum=0.8, name="bn" * 40)
    inner = keras.Model(a, L.Dense(4, name="w" * 64)(bn(L.Dense(4, "tanh", trainable=False, name="d" * 70)(bn(a)))), name="m" * 90)
    fixed = keras.Sequential([keras.Input((4,)), L.Dense(4), L.BatchNormalization(), L.Dense(4)], name="fixed")
    fixed.trainable = False
    i = keras.Input((4,), name="i" * 80)
    m = keras.Model(i, L.Dense(1, name="o" * 80)(L.Add(name="\u00e9" * 40)([inner(i), inner(fixed(i)), L.Dense(4, name="d" * 71)(i)])))
    return compiled(m, O.SGD(0.05)), *data((4,))


@row
def operators():
    k, q = keras.ops, keras.Input((4, 3), name="q")
    a, b = q[:, 0], q[:, 1]
    parts = [k.mean(q, axis=1), k.sum(q, axis=(1, 2), keepdims=True)[:, 0], k.max(q, axis=-1), k.min(q, axis=1), k.reshape(k.transpose(q, (0, 2, 1)), (-1, 12)),
             k.sqrt(k.abs(q) + 1.0)[:, 0], k.log(k.square(q) + 1.0)[..., 0], k.exp(a * 0.5), k.relu(q)[:, 1], k.softmax(q, axis=1)[:, 2],
             k.leaky_relu(q, negative_slope=0.1)[:, -1, :2], k.clip(q, -0.5, 0.5)[:, 3], k.maximum(a, 0.2), k.minimum(b, -0.1)]
    more = [1 - a, 2 / (b ** 2 + 1.0), a - b, -a, a / 2, k.squeeze(k.expand_dims(a, 1), 1), k.reshape(k.stack([a, b], axis=1), (-1, 6)),
            k.reshape(k.matmul(q, k.transpose(q, (0, 2, 1))), (-1, 16)), k.rsqrt(k.abs(q[:, 2]) + 1.0), k.sigmoid(a) * k.tanh(b), k.silu(q[:, 2]) + k.elu(b)]
    h = k.concatenate([k.concatenate(p, axis=-1) for p in (parts[:7], parts[7:], more[:6], more[6:])], axis=1)
    return compiled(keras.Model(q, L.Dense(1)(L.Dense(5, "tanh")(h))), O.SGD(0.02)), *data((4, 3))


@row
def joined_masks():
    i = keras.Input((6,), dtype="int32", name="i")
    e = [L.Embedding(9, n, mask_zero=True)(i) for n in (3, 2)]
    h = L.Concatenate()([L.Dense(3)(e[0]), e[1]])
    x = data((6,), kind="words")[0]
    x[:, 0] = 1
    return compiled(keras.Model(i, L.Dense(1)(L.GlobalAveragePooling1D()(h)))), x, data((6,))[1]


@row
def dictionaries():
    """Ends by keys, which are sorted; names that no identifier has."""
    b, a = keras.Input((3,), name="b in"), keras.Input((4,), name="a in")
    h = L.Dense(5, "relu", name="h" * 90)(L.Concatenate(name="say \"hi\"")([a, b]))
    m = keras.Model({"b in": b, "a in": a}, {"z out": L.Dense(1, name="first")(h), "a out": L.Dense(2, name="second")(h)})
    m.compile("adam", {"a out": "mse", "z out": "mae"}, metrics={"a out": ["mae"]})
    r = np.random.RandomState(5)
    return m, {"a in": data((4,))[0], "b in": data((3,))[0]}, {"a out": r.randn(24, 2).astype("float32"), "z out": data((4,))[1]}


@row
def untrained():
    return compiled(keras.Sequential([keras.Input((4,)), L.Dense(5, "relu"), L.Dense(2)])), *data((4,), outputs=2), "untrained"


@row
def uncompiled():
    return keras.Sequential([keras.Input((4,)), L.Dense(5, "relu"), L.Dense(2)]), *data((4,), outputs=2), "uncompiled"


@row
def no_input():
    m = keras.Sequential([L.Dense(5, "relu"), L.Dense(2)])
    m.build((None, 4))
    return compiled(m), *data((4,), outputs=2)


S = O.schedules
OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.1, clipvalue=0.2), "adam_amsgrad": lambda: O.Adam(0.01, amsgrad=True, clipnorm=0.3), "adadelta": lambda: O.Adadelta(0.5),
    "adamax": lambda: O.Adamax(0.02, global_clipnorm=0.4), "lion": lambda: O.Lion(0.003), "nadam": lambda: O.Nadam(0.01, beta_1=0.8),
    "rmsprop": lambda: O.RMSprop(0.01, rho=0.8), "adagrad": lambda: O.Adagrad(0.1, initial_accumulator_value=0.2, weight_decay=0.01),
    "ftrl": lambda: O.Ftrl(0.1, l1_regularization_strength=0.01), "lamb": lambda: O.Lamb(0.02), "adafactor": lambda: O.Adafactor(0.05),
    "muon": lambda: O.Muon(0.02, exclude_layers=["last"]),
    "ema": lambda: O.Adam(0.02, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=2),
    "exponential": lambda: O.SGD(S.ExponentialDecay(0.1, 3, 0.7, staircase=True), momentum=0.5), "inverse": lambda: O.SGD(S.InverseTimeDecay(0.1, 3, 0.7)),
    "polynomial": lambda: O.Adam(S.PolynomialDecay(0.1, 9, 0.01, power=2.0, cycle=True)), "piecewise": lambda: O.SGD(S.PiecewiseConstantDecay([2, 5, 8], [0.1, 0.05, 0.02, 0.01])),
    "cosine": lambda: O.SGD(S.CosineDecay(0.02, 20, alpha=0.1, warmup_target=0.1, warmup_steps=4)), "restarts": lambda: O.RMSprop(S.CosineDecayRestarts(0.02, 4, 1.5, 0.8, 0.1)),
}
for _name, _make in OPTIMIZERS.items():
    ROWS["optimizer_" + _name] = lambda _make=_make: (compiled(keras.Sequential([keras.Input((3,)), L.Dense(4, "tanh"), L.Dense(1)]), _make()), *data((3,)),
                                                       *(["random"] if _make().use_ema else []))  # JAX cannot fit averages twice


def ends():
    """Losses and metrics as to_json writes them: (loss, metrics, weighted metrics, outputs)."""
    from keras import losses as E, metrics as M
    yield "names", "msle", ["mse", "mape", "cosine_similarity", "root_mean_squared_error", "r2_score"], []
    yield "objects", E.CategoricalCrossentropy(label_smoothing=0.1), [M.CategoricalAccuracy(), M.TopKCategoricalAccuracy(k=2, name="top2"), M.AUC(num_thresholds=50, curve="PR", name="area"),
                                                                      M.Precision(thresholds=0.3), M.Recall()], [M.MeanSquaredError(), "accuracy"]
    yield "log_cosh", "log_cosh", ["log_cosh_error"], []
    yield "logits", E.BinaryCrossentropy(from_logits=True), [M.BinaryAccuracy(threshold=0.0)], []
    for name in ("mean_absolute_error", "mean_absolute_percentage_error", "hinge", "squared_hinge", "categorical_hinge", "kl_divergence", "poisson", "cosine_similarity"):
        yield name, name, [name], []


def input_names(model):
    return [t.name for t in model.inputs]


def arrays(model, x, y):
    out = {}
    for names, values, prefix in ((input_names(model), x, "x"), (getattr(model, "output_names", []), y, "y")):
        if isinstance(values, dict):
            out.update({f"{prefix}_{n}": v for n, v in values.items()})
        elif isinstance(values, list):
            out.update({f"{prefix}_{n}": v for n, v in zip(names, values)})
        else:
            out[prefix] = values
    return out


def listed(p):
    return [p[k] for k in sorted(p)] if isinstance(p, dict) else p if isinstance(p, list) else [p]


OLDER = ("cnn", "shared", "text", "transfer", "long_names")  # also as older files, .h5


def make_older_optimizers(name):
    """The same state as Keras 2 lists it. NAME_v2.h5: OptimizerV2, before 2.11: iter, then each slot of all variables. NAME_v2_new.h5:
    later ones: iteration, then the slots of each variable. NAME_v2_short.h5 lacks the last value."""
    import h5py
    with h5py.File(os.path.join(HERE, name + ".h5")) as f:
        group = f["optimizer_weights"]
        values = [group[n][()] for n in group.attrs["weight_names"]]
    slots = values[2:]
    lists = {"v2": ["iter"] + [f"{i}/{s}" for s in "mv" for i in range(len(slots) // 2)],
             "v2_new": ["iteration"] + [f"{i}/{s}" for i in range(len(slots) // 2) for s in "mv"]}
    lists["v2_short"] = lists["v2"][:-1]
    for kind, names in lists.items():
        path = os.path.join(HERE, f"{name}_{kind}.h5")
        shutil.copy(os.path.join(HERE, name + ".h5"), path)
        with h5py.File(path, "a") as f:
            del f["optimizer_weights"]
            group = f.create_group("optimizer_weights")
            group.attrs["weight_names"] = [f"Adam/{n}:0".encode() for n in names]
            for n in names:
                slot = n.split("/")
                group[f"Adam/{n}:0"] = values[0] if len(slot) == 1 else slots[2 * int(slot[0]) + "mv".index(slot[1])]


def make(name):
    keras.utils.set_random_seed(len(name))
    keras.backend.clear_session()
    model, x, y, *kind = ROWS[name]()
    kind = kind[0] if kind else ""
    if kind not in ("untrained", "uncompiled"):
        model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    model.save(os.path.join(HERE, name + ".keras"))
    out = arrays(model, x, y)
    out.update({f"p{i}": p for i, p in enumerate(listed(model.predict(x, verbose=0)))})
    if name in OLDER:
        model.save(os.path.join(HERE, name + ".h5"))
    if name == "text":
        make_older_optimizers(name)
    if kind not in ("random", "uncompiled"):
        model = keras.models.load_model(os.path.join(HERE, name + ".keras"))
        model.fit(x, y, batch_size=8, epochs=1, shuffle=False, verbose=0)
        out.update({f"q{i}": p for i, p in enumerate(listed(model.predict(x, verbose=0)))})
    np.savez_compressed(os.path.join(HERE, name + ".npz"), **out)
    print(name, os.path.getsize(os.path.join(HERE, name + ".keras")))


def make_ends():
    for name, loss, metrics, weighted in ends():
        keras.backend.clear_session()
        m = keras.Sequential([keras.Input((2,)), L.Dense(3)])
        m.compile("sgd", loss, metrics=metrics, weighted_metrics=weighted or None)
        open(os.path.join(HERE, f"ends_{name}.json"), "w").write(m.to_json())


def check(folder):
    failed = 0
    for file in [name for name in sorted(ROWS)] + [name + "_h5" for name in OLDER]:
        name = file.removesuffix("_h5")
        file = os.path.join(folder, file + ".keras")
        a = np.load(os.path.join(HERE, name + ".npz"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                m = keras.models.load_model(file)
            except Exception as error:
                print(name, str(error)[-300:], flush=True)
                failed += 1
                continue
        why = [str(w.message)[:200] for w in caught]
        wanted = [l.name for l in keras.models.load_model(os.path.join(HERE, name + ".keras"))._flatten_layers()]
        why += ["other layers"] if sorted(wanted) != sorted(l.name for l in m._flatten_layers()) else []
        x = [a["x_" + n] for n in input_names(m)] if "x" not in a else a["x"]
        y = a["y"] if "y" in a else [a["y_" + n] for n in m.output_names] if name != "dictionaries" else {k[2:]: a[k] for k in a if k[0] == "y"}
        x = {k[2:]: a[k] for k in a if k[0] == "x"} if name == "dictionaries" else x
        for i, p in enumerate(listed(m.predict(x, verbose=0))):
            off = float(np.abs(p - a[f"p{i}"]).max())
            why += [f"prediction {i} off by {off:.1e}"] if not off <= 1e-5 * max(1, np.abs(p).max()) else []
        if getattr(m, "compiled", False):
            m.fit(x, y, batch_size=8, epochs=1, shuffle=False, verbose=0)
            for i, p in enumerate(listed(m.predict(x, verbose=0))):
                goes_on = f"q{i}" in a
                off = float(np.abs(p - a[f"q{i}"]).max()) if goes_on else 0
                why += [f"prediction {i} after training off by {off:.1e}"] if not off <= 1e-3 * max(1, np.abs(p).max()) else []
        elif name != "uncompiled":
            why.append("not compiled")
        failed += bool(why)
        print(os.path.basename(file), why or "ok", flush=True)
    return failed > 0


def make_bomb():
    import json, zipfile
    layers = [{"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [None, 2]}}, {"class_name": "Dense", "config": {"name": "d", "units": 3}}]
    with zipfile.ZipFile(os.path.join(HERE, "bomb.keras"), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in (("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": layers}})), ("model.weights.h5", b"\0" * (40 << 20))):
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def make_tensors():
    import ml_dtypes, safetensors.numpy
    model = keras.models.load_model(os.path.join(HERE, "untrained.keras"))
    for name, dtype in (("F32", "float32"), ("F16", "float16"), ("BF16", ml_dtypes.bfloat16), ("F64", "float64")):
        values = {f"{l.name}/{v.name}": np.asarray(v).astype(dtype) for l in model.layers for v in l.weights}
        safetensors.numpy.save_file(values, os.path.join(HERE, f"untrained_{name}.safetensors"), {"made by": "safetensors"})


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]))
    for name in sys.argv[2:] or list(ROWS):
        if name not in ("ends", "bomb", "tensors"):
            make(name)
    if sys.argv[2:] in ([], ["ends"]):
        make_ends()
    if sys.argv[2:] in ([], ["bomb"]):
        make_bomb()
    if sys.argv[2:] in ([], ["tensors"]):
        make_tensors()
