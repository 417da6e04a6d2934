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
import os, re, sys
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
        self.unnamed = []  # columns that are left out: Keras gives two of them one name, or its backends disagree


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


@case
def nested_batchnorm(r):
    """Within models that are called several times: all uses of one call come before those of the next, whatever their depths."""
    a, bn = keras.Input((4,)), L.BatchNormalization(name="bn", momentum=0.6)
    low = keras.Model(a, L.Add(name="sum")([bn(L.Dense(4, name="x")(a)), bn(a)]), name="low")
    b, c = keras.Input((4,)), keras.Input((4,))
    high = keras.Model([b, c], [low(low(b)), low(c), low(L.Dense(4, name="m")(c))], name="high")
    i, j = keras.Input((4,), name="i"), keras.Input((4,), name="j")
    u, v, w = high([i, j])
    x, y, z = high([L.Dense(4, name="g")(v), u])
    m = keras.Model([i, j], L.Dense(2, name="o")(L.Concatenate(name="all")([u, z, x, w, y])))
    m.compile(keras.optimizers.SGD(0.002), "mse")
    p, q, t = numbers(r, 44, 4), numbers(r, 44, 4) + 1, numbers(r, 44, 2)
    return Run(m, [p, q], t, fields={"x_i": p, "x_j": q, "y": t}, batch=16)


@case
def nested_unused(r):
    """Nobody takes one of the outputs, but Keras runs all of the nested model, and the statistics before that output move."""
    a = keras.Input((4,))
    d = L.Dense(4, name="d")(a)
    inner = keras.Model(a, [d, L.BatchNormalization(name="bn", momentum=0.5)(d)], name="inner")
    i = keras.Input((4,), name="i")
    u, v = inner(i)
    w, _ = inner(u)
    m = keras.Model(i, L.Dense(2, name="o")(L.Concatenate(name="all")([v, w])))
    m.compile(keras.optimizers.SGD(0.05), "mse")
    x, y = numbers(r, 44, 4), numbers(r, 44, 2)
    return Run(m, x, y, fields={"x": x, "y": y}, batch=16)


@case
def nested_list(r):
    """A list of layers that is called at several depths."""
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, "tanh", name="d"), L.BatchNormalization(name="bn", momentum=0.7)], name="list")
    i, j = keras.Input((4,), name="i"), keras.Input((4,), name="j")
    early, late = inner(j), inner(L.Dense(4, "relu", name="k")(inner(i)))
    m = keras.Model([i, j], L.Dense(2, name="o")(L.Concatenate(name="all")([early, late])))
    m.compile(keras.optimizers.SGD(0.05), "mse")
    p, q, t = numbers(r, 44, 4), numbers(r, 44, 4) + 1, numbers(r, 44, 2)
    return Run(m, [p, q], t, fields={"x_i": p, "x_j": q, "y": t}, batch=16)


def block(x, heads, width, name, memory=None, causal=False):
    """A block of a transformer: attention, with a memory cross attention too, and two dense layers, each with a residual and a norm."""
    x = L.LayerNormalization(name=name + "_n1")(L.Add(name=name + "_r1")(
        [x, L.MultiHeadAttention(heads, width, name=name + "_self")(x, x, use_causal_mask=causal)]))
    if memory is not None:
        x = L.LayerNormalization(name=name + "_n2")(L.Add(name=name + "_r2")(
            [x, L.MultiHeadAttention(heads, width, name=name + "_cross")(x, memory)]))
    y = L.Dense(x.shape[-1], name=name + "_d2")(L.Dense(12, "gelu", name=name + "_d1")(x))
    return L.LayerNormalization(name=name + "_n3")(L.Add(name=name + "_r3")([x, y]))


@case
def transformer_encoder(r):
    """Two blocks over masked tokens. The gradient of a key's bias is zero but for rounding, which Adam would blow up."""
    i = keras.Input((7,), dtype="int32")
    x = L.Embedding(11, 8, mask_zero=True, name="tokens")(i)
    x = block(block(x, 2, 4, "a"), 2, 3, "b")
    m = keras.Model(i, L.Dense(3, activation="softmax", name="o")(L.GlobalAveragePooling1D(name="mean")(x)))
    m.compile(keras.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy")
    x, y = r.integers(0, 11, (40, 7)).astype("i4"), r.integers(0, 3, 40).astype("i4")
    x[:, 0] = np.maximum(x[:, 0], 1)
    return Run(m, x, y, fields={"x": x, "y": y}, batch=16)


@case
def transformer_decoder(r):
    """A causal block that also attends to the encoder's output; a loss at each position."""
    i, j = keras.Input((5, 6), name="i"), keras.Input((6,), dtype="int32", name="j")
    memory = block(L.Dense(8, name="in")(i), 2, 4, "e")
    x = block(L.Embedding(9, 8, name="tokens")(j), 2, 4, "d", memory=memory, causal=True)
    m = keras.Model([i, j], L.Dense(9, name="o")(x))
    m.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    a, b, y = numbers(r, 40, 5, 6), r.integers(0, 9, (40, 6)).astype("i4"), r.integers(0, 9, (40, 6)).astype("i4")
    return Run(m, [a, b], y, fields={"x_i": a, "x_j": b, "y": y}, batch=16)


@case
def attention_mask(r):
    """A mask of pairs as an input, once with a key of its own, and two calls that share one attention."""
    i, j, k = keras.Input((4, 6), name="i"), keras.Input((5, 6), name="j"), keras.Input((4, 5), name="k")
    attention = L.MultiHeadAttention(2, 3, name="both")
    x = attention(i, j, attention_mask=k)
    x = L.Add(name="sum")([x, attention(i, j, key=L.Dense(6, name="key")(j), attention_mask=k)])
    x = L.GroupQueryAttention(3, 4, 2, name="grouped")(x, j, use_causal_mask=True)
    x = L.Attention(use_scale=True, name="plain")([x, j], use_causal_mask=True)
    m = keras.Model([i, j, k], L.Dense(2, name="o")(L.AdditiveAttention(name="additive")([x, j, j])))
    m.compile(keras.optimizers.SGD(0.05), "mse")
    a, b, c = numbers(r, 40, 4, 6), numbers(r, 40, 5, 6), (r.random((40, 4, 5)) < 0.6).astype("f4")
    y = numbers(r, 40, 4, 2)
    return Run(m, [a, b, c], y, fields={"x_i": a, "x_j": b, "x_k": c, "y": y}, batch=16)


@case
def loss_ignored_class(r):
    """Labels of one class do not count, in the sum nor in what divides it; here with a label that is no class and with masks."""
    i = keras.Input((6,), dtype="int32")
    m = keras.Model(i, L.Dense(4, activation="softmax", name="o")(L.Embedding(9, 5, mask_zero=True, name="e")(i)))
    x, y = r.integers(0, 9, (44, 6)).astype("i4"), r.integers(0, 4, (44, 6)).astype("i4")
    w = rounded(r.uniform(0.5, 2, (44, 1)))
    y[r.random((44, 6)) < 0.3] = 255
    vx, vy = x[::-1].copy(), y[::-1].copy()
    m.compile(keras.optimizers.SGD(0.3), keras.losses.SparseCategoricalCrossentropy(ignore_class=255))
    return Run(m, x, y, w, fields={"x": x, "y": y, "w": w}, validation=((vx, vy, w), {"x": vx, "y": vy, "w": w}), batch=16)


@case
def loss_ignored_zero(r):
    i = keras.Input((5,))
    m = keras.Model(i, L.Dense(4, name="o")(i))
    m.compile("sgd", keras.losses.SparseCategoricalCrossentropy(ignore_class=0, from_logits=True), metrics=["accuracy"])
    x, y = numbers(r, 40, 5), r.integers(0, 4, 40).astype("i4")
    return Run(m, x, y, fields={"x": x, "y": y}, batch=16)


def two_outputs(r, loss, n=40, **options):
    """Numbers at each of three positions, and classes."""
    i = keras.Input((3, 4), name="i")
    h = L.Dense(5, "tanh", name="h")(i)
    m = keras.Model(i, [L.Dense(2, name="a")(h), L.Dense(3, activation="softmax", name="b c")(L.Flatten(name="f")(h))])
    m.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss, **options)
    x, a, b = numbers(r, n, 3, 4), numbers(r, n, 3, 2), r.integers(0, 3, n).astype("i4")
    return m, x, a, b


@case
def loss_weights_list(r):
    m, x, a, b = two_outputs(r, ["mse", "sparse_categorical_crossentropy"], loss_weights=[0.3, 1.7], metrics=[["mae"], ["accuracy"]])
    return Run(m, x, [a, b], fields={"x": x, "y_a": a, "y_b c": b}, validation=((x[:20], [a[:20], b[:20]]), {"x": x[:20], "y_a": a[:20], "y_b c": b[:20]}))


@case
def loss_weights_names(r):
    m, x, a, b = two_outputs(r, {"b c": "sparse_categorical_crossentropy", "a": "mse"}, loss_weights={"b c": 0.25, "a": 3.0})
    return Run(m, x, [a, b], fields={"x": x, "y_a": a, "y_b c": b})


@case
def loss_weight_of_one(r):
    i = keras.Input((4,))
    m = keras.Model(i, L.Dense(2, kernel_regularizer="l2", name="o")(i))
    m.compile("sgd", "mse", loss_weights=0.25)
    x, y = numbers(r, 40, 4), numbers(r, 40, 2)
    return Run(m, x, y, fields={"x": x, "y": y})


@case
def loss_none(r):
    """Not trained and without targets; its BatchNormalization moves all the same."""
    i = keras.Input((4,), name="i")
    h = L.Dense(5, "tanh", name="h")(i)
    m = keras.Model(i, [L.Dense(2, name="a")(h), L.Dense(3, name="b")(L.BatchNormalization(name="bn", momentum=0.5)(h))])
    m.compile("sgd", ["mse", None])
    x, a = numbers(r, 40, 4), numbers(r, 40, 2)
    return Run(m, x, [a], fields={"x": x, "y_a": a})


@case
def shared_output(r):
    """A layer gives two outputs, and one of them is an output twice."""
    i, j = keras.Input((4,), name="i"), keras.Input((4,), name="j")
    d = L.Dense(2, name="d")
    p, q = d(i), d(j)
    m = keras.Model([i, j], [p, q, q])
    m.compile("sgd", ["mse", "mae", "huber"])
    x, z, y = numbers(r, 40, 4), numbers(r, 40, 4), [numbers(r, 40, 2) for _ in range(3)]
    run = Run(m, [x, z], y, fields={"x_i": x, "x_j": z, "y_d": y[0], "y_d_1": y[1], "y_d_2": y[2]})
    run.unnamed = ["d_loss"]
    return run


def reduction(name, word, w):
    def make(r):
        i = keras.Input((3, 4))
        m = keras.Model(i, L.Dense(2, name="o")(i))
        m.compile(keras.optimizers.SGD(0.01), keras.losses.MeanSquaredError(reduction=word))
        x, y = numbers(r, 40, 3, 4), numbers(r, 40, 3, 2)
        ws = rounded(r.uniform(0.5, 2, 40 if w == 1 else (40, 3))) if w else None
        fields = {"x": x, "y": y} | ({"w": ws} if w else {})
        return Run(m, x, y, ws, fields=fields, validation=((x, y, ws) if w else (x, y), fields), batch=16)
    make.__name__ = name
    case(make)


reduction("reduction_sum", "sum", 0)
reduction("reduction_sum_weights", "sum", 2)
reduction("reduction_mean", "mean", 2)
reduction("reduction_weighted", "mean_with_sample_weight", 2)


@case
def reduction_mixed(r):
    """Divided by samples, by nothing, by weights and by what a mask lets count, all in one model."""
    i, t = keras.Input((3, 4), name="i"), keras.Input((3,), name="t", dtype="int32")
    e = L.Embedding(7, 4, mask_zero=True, name="e")(t)
    h = L.Dense(5, "tanh", name="h")
    hi = h(i)
    outs = [L.Dense(2, name="a")(hi), L.Dense(2, name="b")(hi), L.Dense(2, name="c")(hi), L.Dense(3, name="d")(e)]
    m = keras.Model([i, t], outs)
    m.compile(keras.optimizers.SGD(0.02), [keras.losses.MeanSquaredError(), keras.losses.MeanSquaredError(reduction="sum"),
              keras.losses.MeanAbsoluteError(reduction="mean_with_sample_weight"), "mse"], loss_weights=[1.0, 0.02, 0.7, 2.0])
    x, tok = numbers(r, 40, 3, 4), r.integers(0, 7, (40, 3)).astype("i4")
    y = [numbers(r, 40, 3, 2), numbers(r, 40, 3, 2), numbers(r, 40, 3, 2), numbers(r, 40, 3, 3)]
    w = [rounded(r.uniform(0.5, 2, (40, 3))) for _ in range(4)]
    fields = {"x_i": x, "x_t": tok} | {"y_" + n: v for n, v in zip("abcd", y)} | {"w_" + n: v for n, v in zip("abcd", w)}
    return Run(m, [x, tok], y, w, fields=fields, batch=16)


def masked(name, loss, last, steps):
    """Validation by batches: each loss is divided by what counts in its own batch."""
    def make(r):
        i = keras.Input((6,), dtype="int32")
        m = keras.Model(i, last()(L.Embedding(9, 5, mask_zero=True, name="e")(i)))
        m.compile(keras.optimizers.SGD(0.3), loss)
        x = r.integers(0, 9, (44, 6)).astype("i4")
        x[r.random((44, 6)) < np.linspace(0, 0.9, 44)[:, None]] = 0
        y = numbers(r, 44, 6, 2) if loss == "mse" else r.integers(0, 4, (44, 6)).astype("i4")
        w = rounded(r.uniform(0.1, 2, (44, 6) if steps else (44, 1)))
        fields = {"x": x, "y": y, "w": w}
        return Run(m, x, y, w, fields=fields, validation=((x, y, w), fields), batch=16)
    make.__name__ = name
    case(make)


masked("masked_mse", "mse", lambda: L.Dense(2, name="o"), False)
masked("masked_steps", "sparse_categorical_crossentropy", lambda: L.Dense(4, activation="softmax", name="o"), True)


@case
def masked_metrics(r):
    """Of training Keras's metrics know masks on TensorFlow and PyTorch, not on JAX; of validation on all."""
    i = keras.Input((6,), dtype="int32")
    m = keras.Model(i, L.Dense(4, activation="softmax", name="o")(L.Embedding(9, 5, mask_zero=True, name="e")(i)))
    m.compile(keras.optimizers.SGD(0.3), "sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"])
    x, y = r.integers(0, 9, (44, 6)).astype("i4"), r.integers(0, 4, (44, 6)).astype("i4")
    x[r.random((44, 6)) < 0.4] = 0
    w = rounded(r.uniform(0.1, 2, (44, 6)))
    fields = {"x": x, "y": y, "w": w}
    run = Run(m, x, y, w, fields=fields, validation=((x, y, w), fields), batch=16)
    run.unnamed = ["accuracy", "weighted_accuracy"]
    return run


def watched(r, **callbacks):
    """A net with moving statistics and a validation whose loss and accuracy go up and down."""
    m = keras.Sequential([keras.Input((5,)), L.Dense(8, "tanh", name="h"), L.BatchNormalization(momentum=0.7, name="bn"),
                          L.Dense(3, "softmax", name="o")])
    m.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = numbers(r, 60, 5), r.integers(0, 3, 60).astype("i4")
    vx, vy = numbers(r, 24, 5), r.integers(0, 3, 24).astype("i4")
    return Run(m, x, y, fields={"x": x, "y": y}, validation=((vx, vy), {"x": vx, "y": vy}), batch=16, epochs=9, **callbacks)


@case
def restore_best_weights(r):
    """The last epoch's val_loss is that of the weights before the best ones came back."""
    return watched(r, early_stopping=dict(monitor="val_loss", patience=2, restore_best_weights=True))


@case
def plateau_of_accuracy(r):
    return watched(r, reduce_lr_on_plateau=dict(monitor="val_accuracy", patience=1, factor=0.3))


@case
def plateau_and_best(r):
    return watched(r, early_stopping=dict(monitor="val_accuracy", patience=9, restore_best_weights=True),
                   reduce_lr_on_plateau=dict(monitor="accuracy", patience=1, factor=0.5, cooldown=1))


@case
def states_lstm(r):
    """Keras's translation example: the decoder begins with the encoder's states, and nobody takes its own."""
    i, j = keras.Input((6, 4), name="i"), keras.Input((5, 3), name="j")
    _, h, c = L.LSTM(7, return_state=True, name="encoder")(i)
    y, _, _ = L.LSTM(7, return_sequences=True, return_state=True, name="decoder")(j, initial_state=[h, c])
    m = keras.Model([i, j], L.Dense(3, activation="softmax", name="o")(y))
    m.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    a, b, y = numbers(r, 40, 6, 4), numbers(r, 40, 5, 3), r.integers(0, 3, (40, 5)).astype("i4")
    return Run(m, [a, b], y, fields={"x_i": a, "x_j": b, "y": y}, batch=16)


@case
def states_masked(r):
    """Masks on both sides; a state is an output, another one passes through a layer, and a cell resets before the product."""
    i, j = keras.Input((6,), dtype="int32", name="i"), keras.Input((5,), dtype="int32", name="j")
    words = L.Embedding(9, 4, mask_zero=True, name="words")
    y, h = L.GRU(5, return_sequences=True, return_state=True, name="encoder")(words(i))
    h = L.Dense(5, "tanh", name="between")(h)
    z = L.GRU(5, return_sequences=True, reset_after=False, zero_output_for_mask=True, name="decoder")(words(j), initial_state=h)
    s, last = L.SimpleRNN(4, return_state=True, go_backwards=True, name="simple")(z)
    m = keras.Model([i, j], [L.Dense(2, name="o")(L.GlobalAveragePooling1D(name="mean")(y)), last, s])
    m.compile(keras.optimizers.SGD(0.05), ["mse", "mse", "mae"])
    a, b = r.integers(0, 9, (40, 6)).astype("i4"), r.integers(0, 9, (40, 5)).astype("i4")
    y = [numbers(r, 40, 2), numbers(r, 40, 4), numbers(r, 40, 4)]
    run = Run(m, [a, b], y, fields={"x_i": a, "x_j": b, "y_o": y[0], "y_simple": y[1], "y_simple_1": y[2]}, batch=16)
    run.unnamed = ["simple_loss"]
    return run


@case
def states_bidirectional(r):
    """The states of both directions, passed on to both, joined for a decoder; and directions that are not merged."""
    i, j = keras.Input((6, 4), name="i"), keras.Input((3, 4), name="j")
    y, *states = L.Bidirectional(L.LSTM(3, return_sequences=True, return_state=True), name="first")(i)
    ahead, back, *more = L.Bidirectional(L.LSTM(3, return_sequences=True, return_state=True), merge_mode=None, name="second")(y, initial_state=states)
    h, c = L.Concatenate(name="h")([more[0], more[2]]), L.Concatenate(name="c")([more[1], more[3]])
    z = L.LSTM(6, name="decoder")(j, initial_state=[h, c])
    p = L.GlobalMaxPooling1D(name="pool")(L.Subtract(name="less")([ahead, back]))
    m = keras.Model([i, j], L.Dense(2, name="o")(L.Concatenate(name="all")([z, p])))
    m.compile(keras.optimizers.SGD(0.1), "mse")
    a, b, y = numbers(r, 40, 6, 4), numbers(r, 40, 3, 4), numbers(r, 40, 2)
    return Run(m, [a, b], y, fields={"x_i": a, "x_j": b, "y": y}, batch=16)


def deflate(path):
    """The same members, compressed: most of them are zeros between HDF5's tables."""
    import zipfile
    with zipfile.ZipFile(path) as z:
        members = [(i.filename, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for member, data in members:
            z.writestr(zipfile.ZipInfo(member, (2000, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def variable_names(model, prefix=""):
    """By id, with the models in which the layer is nested: Keras names only some of those."""
    names = {}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            names |= variable_names(layer, prefix + layer.name + "/")
        else:
            kind = type(layer).__name__.lower()
            own = lambda v: re.sub("(_[0-9]+)?/([a-z_]+_cell/)?", "/", v.path.split(layer.name + "/", 1)[-1]) if kind == "bidirectional" or "attention" in kind else v.name
            names |= {id(v): f"{prefix}{layer.name}/{own(v)}" for v in layer.weights}
    return names


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
                    validation_data=validation, callbacks=calls).history
    history = {k: v for k, v in history.items() if k not in run.unnamed}
    arrays |= {"history_" + k: np.array(v, "f8") for k, v in history.items()}
    names = variable_names(m)
    for i, v in enumerate(m.weights):
        text.append(f"variable_{i}={names[id(v)]}")
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
