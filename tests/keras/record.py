#!/usr/bin/env python3
"""Training cases recorded from the real Keras, so that the C tests can repeat them without Python.

  record.py make  [PATTERN ...]                     records the rows of table.py (all, or names matching a pattern like 'loss_*')
  record.py check [PATTERN ...] [--backend torch]   trains the recorded files again from their own text and compares
  record.py list  [PATTERN ...]                     the rows, with the sizes of their files

Needs keras and its backend (jax to make). A case is a file cases/NAME.npz with the members
  x, y, w           samples, targets, and in some cases sample weights (float32, also for classes and tokens)
  initial_0 ...     every variable before training, in the order of Keras's model.weights: by layer in the order of the
                    expression; in a layer the trainable ones (kernel, bias; gamma, beta), then the others (moving mean, variance)
  final_0 ...       the same after model.fit(x, y, sample_weight=w, shuffle=False)
  loss              what Keras's history says of each epoch (float64); metric_NAME likewise, NAME without its options
  case              UTF-8 text, one key=value on each line:
                      expression, optimizer, loss, batch, epochs   always
                      metrics, weighted_metrics                    separated by commas
                      class_weight                                 0:0.5,1:2

Grammar of the texts
  model     := layer (blank layer)*       layer := [point '='] name ['(' arguments ')']
  arguments := values by position, then keyword '=' value, separated by commas
  value     := number | word | true | false | none | name '(' arguments ')' | '(' value (',' value)* ')'
  A word is lower case and stands for itself: padding=same, activation=relu. Keywords are Keras's names of the arguments; those
  that may be given by position are in LAYERS below. (2,3) is a tuple, ((1,0),(2,1)) a tuple of tuples. reshape, permute and
  input take their tuple with or without its parentheses: reshape(4,9).
  `a=relu` names the output of that layer `a`. The merging layers add, subtract, multiply, average, maximum, minimum, concat
  and dot take points by position: `subtract(a)` is the current value minus a, `concat(a,b)` is current, a, b in this order.
  So do the attention layers, see ATTENTION below.
  The input's shape is that of x without its first extent; input(8,8,3) may say it, and `a=input(8,8,3)` names it.
  Any layer takes trainable=false. Initialisers and regularisers are words or calls: kernel_regularizer=l2(0.01).
  optimizer := name(arguments), with lr for learning_rate; a schedule is a call in the place of the rate, its arguments in Keras's
  order: sgd(lr=exponential_decay(0.05,5,0.8),momentum=0.9), sgd(lr=piecewise_constant_decay((3,6),(0.1,0.05,0.01))).
  loss and each metric := name ['(' arguments ')'] by Keras's names: huber(delta=0.5), auc(curve=pr), accuracy.

What Keras does, which a program that repeats these cases has to do too
  - An epoch's loss is the mean over batches weighted by their samples; penalties of regularisers are in it, as before the update;
    a layer that is not trained has none.
  - Sample weights multiply the losses; the sum is divided by the number of samples, not by the sum of the weights. A class weight
    is a sample weight. Targets with positions need a weight for each, or weights as (n, 1). `metrics` ignore both;
    `weighted_metrics` are sum(w*m)/sum(w).
  - A mask (embedding(mask_zero=true)) that reaches the loss gives a mean over the unmasked entries of the batch.
  - With use_ema the weights after fit are the averaged ones; the average starts as the weights after the first update.
  - Crossentropies of probabilities divide by their sum (not the binary one), then clip to [1e-7, 1 - 1e-7]. hinge takes targets
    of 0 and 1 as -1 and 1, by the batch.

Where Keras's backends disagree no case decides: metrics under a mask (JAX ignores it), saturated probabilities and a sigmoid before
a categorical crossentropy (TensorFlow takes the logits behind it), probabilities above one (its sparse form clips first), rows of
targets that do not sum to one. These do decide, for JAX: layer_embedding_adam (TensorFlow squares an embedding's repeated rows
apart), layer_avgpool2d_overlap_same (PyTorch repeats the edge
where the padding is uneven; the others leave padding out of the mean), weights_mask_column (PyTorch refuses it).
Cases avoid what rounding decides: a bias before batchnorm has a gradient of rounding errors only, which Adam would blow up to its
full rate. `check` on another backend shows how far two correct programs differ.
"""
import argparse, fnmatch, os, re, sys, zlib

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")

# The layers of the expression: Keras's class and the arguments that may be given by position.
LAYERS = {
    "dense": ("Dense", "units activation"),
    "conv1d": ("Conv1D", "filters kernel_size activation"),
    "conv2d": ("Conv2D", "filters kernel_size activation"),
    "conv1d_transpose": ("Conv1DTranspose", "filters kernel_size activation"),
    "conv2d_transpose": ("Conv2DTranspose", "filters kernel_size activation"),
    "depthwise_conv2d": ("DepthwiseConv2D", "kernel_size activation"),
    "maxpool1d": ("MaxPooling1D", "pool_size strides padding"),
    "maxpool2d": ("MaxPooling2D", "pool_size strides padding"),
    "avgpool1d": ("AveragePooling1D", "pool_size strides padding"),
    "avgpool2d": ("AveragePooling2D", "pool_size strides padding"),
    "global_maxpool1d": ("GlobalMaxPooling1D", ""),
    "global_maxpool2d": ("GlobalMaxPooling2D", ""),
    "global_avgpool1d": ("GlobalAveragePooling1D", ""),
    "global_avgpool2d": ("GlobalAveragePooling2D", ""),
    "flatten": ("Flatten", ""),
    "reshape": ("Reshape", "*target_shape"),
    "permute": ("Permute", "*dims"),
    "dropout": ("Dropout", "rate"),
    "spatial_dropout2d": ("SpatialDropout2D", "rate"),
    "gaussian_noise": ("GaussianNoise", "stddev"),
    "batchnorm": ("BatchNormalization", ""),
    "layernorm": ("LayerNormalization", ""),
    "embedding": ("Embedding", "input_dim output_dim"),
    "simple_rnn": ("SimpleRNN", "units activation"),
    "lstm": ("LSTM", "units activation"),
    "gru": ("GRU", "units activation"),
    "resizing": ("Resizing", "height width interpolation"),
    "random_grayscale": ("RandomGrayscale", "factor"),
    "random_color_degeneration": ("RandomColorDegeneration", "factor"),
    "random_invert": ("RandomInvert", "factor"),
    "random_posterization": ("RandomPosterization", "factor"),
    "solarization": ("Solarization", "addition_factor threshold_factor"),
    "activity_regularization": ("ActivityRegularization", "l1 l2"),
    "rnn": ("RNN", "cell"),
    "simple_rnn_cell": ("SimpleRNNCell", "units activation"),
    "lstm_cell": ("LSTMCell", "units activation"),
    "gru_cell": ("GRUCell", "units activation"),
    "masking": ("Masking", "mask_value"),
    "bidirectional": ("Bidirectional", "layer"),
    "time_distributed": ("TimeDistributed", "layer"),
    "einsum_dense": ("EinsumDense", "equation output_shape activation"),
    "activation": ("Activation", "activation"),
    "relu": ("ReLU", "max_value"),
    "leaky_relu": ("LeakyReLU", "negative_slope"),
    "elu": ("ELU", "alpha"),
    "prelu": ("PReLU", ""),
    "softmax": ("Softmax", "axis"),
    "zero_padding2d": ("ZeroPadding2D", "padding"),
    "cropping2d": ("Cropping2D", "cropping"),
    "upsampling2d": ("UpSampling2D", "size"),
    "rescaling": ("Rescaling", "scale offset"),
    "normalization": ("Normalization", ""),
    "depthwise_conv1d": ("DepthwiseConv1D", "kernel_size activation"),
    "separable_conv1d": ("SeparableConv1D", "filters kernel_size activation"),
    "separable_conv2d": ("SeparableConv2D", "filters kernel_size activation"),
    "groupnorm": ("GroupNormalization", "groups"),
    "rmsnorm": ("RMSNormalization", ""),
    "unitnorm": ("UnitNormalization", ""),
    "spatial_dropout1d": ("SpatialDropout1D", "rate"),
    "gaussian_dropout": ("GaussianDropout", "rate"),
    "alpha_dropout": ("AlphaDropout", "rate"),
    "identity": ("Identity", ""),
    "repeat_vector": ("RepeatVector", "n"),
    "zero_padding1d": ("ZeroPadding1D", "padding"),
    "cropping1d": ("Cropping1D", "cropping"),
    "upsampling1d": ("UpSampling1D", "size"),
    "random_flip": ("RandomFlip", "mode"),
    "random_translation": ("RandomTranslation", "height_factor width_factor"),
    "random_rotation": ("RandomRotation", "factor"),
    "random_zoom": ("RandomZoom", "height_factor width_factor"),
    "random_brightness": ("RandomBrightness", "factor"),
    "random_contrast": ("RandomContrast", "factor"),
    "adaptive_avgpool1d": ("AdaptiveAveragePooling1D", "output_size"),
    "adaptive_avgpool2d": ("AdaptiveAveragePooling2D", "output_size"),
    "adaptive_avgpool3d": ("AdaptiveAveragePooling3D", "output_size"),
    "adaptive_maxpool1d": ("AdaptiveMaxPooling1D", "output_size"),
    "adaptive_maxpool2d": ("AdaptiveMaxPooling2D", "output_size"),
    "adaptive_maxpool3d": ("AdaptiveMaxPooling3D", "output_size"),
    "center_crop": ("CenterCrop", "height width"),
    "conv3d": ("Conv3D", "filters kernel_size activation"),
    "conv3d_transpose": ("Conv3DTranspose", "filters kernel_size activation"),
    "maxpool3d": ("MaxPooling3D", "pool_size strides padding"),
    "avgpool3d": ("AveragePooling3D", "pool_size strides padding"),
    "global_maxpool3d": ("GlobalMaxPooling3D", ""),
    "global_avgpool3d": ("GlobalAveragePooling3D", ""),
    "zero_padding3d": ("ZeroPadding3D", "padding"),
    "cropping3d": ("Cropping3D", "cropping"),
    "upsampling3d": ("UpSampling3D", "size"),
    "spatial_dropout3d": ("SpatialDropout3D", "rate"),
    "layer_scale": ("LayerScale", "init_values projection_dim"),
    "stochastic_depth": ("StochasticDepth", "drop_path_rate"),
}
MERGES = {"add": "Add", "subtract": "Subtract", "multiply": "Multiply", "average": "Average", "maximum": "Maximum",
          "minimum": "Minimum", "concat": "Concatenate", "dot": "Dot", "custom_scale": "CustomScaleLayer"}
# Attention: the current value is the query; words by position are the points of value, key and attention_mask, numbers are arguments.
# Where nothing is said, the value is the query. use_causal_mask is an argument of the call.
ATTENTION = {"multi_head_attention": ("MultiHeadAttention", "num_heads key_dim"),
             "group_query_attention": ("GroupQueryAttention", "head_dim num_query_heads num_key_value_heads"),
             "attention": ("Attention", ""), "additive_attention": ("AdditiveAttention", "")}
# Layers of keras.applications, by their modules.
MODULES = {"LayerScale": "convnext", "StochasticDepth": "convnext", "CustomScaleLayer": "inception_resnet_v2"}
# Layers that hold another layer, and those that they hold here.
WRAPPERS = ("bidirectional", "time_distributed", "rnn")
HELD = ("simple_rnn_cell", "lstm_cell", "gru_cell", "simple_rnn", "lstm", "gru", "dense", "conv1d", "global_maxpool1d", "flatten")
OPTIMIZERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad", "adadelta": "Adadelta",
              "adamax": "Adamax", "nadam": "Nadam", "lion": "Lion", "ftrl": "Ftrl", "lamb": "Lamb", "adafactor": "Adafactor",
              "muon": "Muon"}
SCHEDULES = {"exponential_decay": "ExponentialDecay", "inverse_time_decay": "InverseTimeDecay", "cosine_decay": "CosineDecay",
             "cosine_decay_restarts": "CosineDecayRestarts", "polynomial_decay": "PolynomialDecay",
             "piecewise_constant_decay": "PiecewiseConstantDecay"}
REGULARIZERS = {"l1": "L1", "l2": "L2", "l1_l2": "L1L2"}
CONSTRAINTS = {"max_norm": "MaxNorm", "non_neg": "NonNeg", "unit_norm": "UnitNorm", "min_max_norm": "MinMaxNorm"}
INITIALIZERS = {"constant": "Constant", "random_normal": "RandomNormal", "random_uniform": "RandomUniform",
                "truncated_normal": "TruncatedNormal", "variance_scaling": "VarianceScaling", "orthogonal": "Orthogonal",
                "identity": "Identity"}


class Words(dict):
    """Names for evaluating arguments: the calls given, and every other word as itself."""
    def __init__(self, calls=()):
        super().__init__({"true": True, "false": False, "none": None})
        self.update(calls)

    def __missing__(self, word):
        return word


def arguments(text, calls=()):
    class Word(str):
        """A word that may be called, and otherwise stands for itself."""
        def __call__(self, *by_position, **by_name):
            return calls[str(self)](*by_position, **by_name)

    words = {name: Word(name) for name in calls}
    return eval(f"(lambda *by_position, **by_name: (by_position, by_name))({text})", {"__builtins__": {}}, Words(words))


def call_of(text):
    """'name(arguments)' or 'name' as (name, text of the arguments)."""
    name, _, inside = text.partition("(")
    return name, inside[:-1] if inside else ""


def split(text, separator):
    """The parts of text between separators that are outside all parentheses."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == separator and depth == 0:
            parts, part = parts + [part], ""
        else:
            part += c
    return [p for p in parts + [part] if p]


def layer_class(name):
    import importlib, keras
    found = getattr(importlib.import_module("keras.src.applications." + MODULES[name]) if name in MODULES else keras.layers, name)
    if name != "StochasticDepth":
        return found

    # It draws without a seed, which Keras refuses on JAX when it trains. The cases have a rate of 0, where it does nothing.
    class StochasticDepth(found):
        def call(self, x, training=None):
            assert self.drop_path_rate == 0
            return super().call(x, training=False)
    return StochasticDepth


def model_of(expression, x):
    import keras
    inner = {n: getattr(keras.regularizers, c) for n, c in REGULARIZERS.items()}
    inner |= {n: getattr(keras.initializers, c) for n, c in INITIALIZERS.items()}
    inner |= {n: getattr(keras.constraints, c) for n, c in CONSTRAINTS.items()}
    inner["orthogonal"] = lambda *a, **k: (keras.regularizers.OrthogonalRegularizer if "factor" in k or "mode" in k
                                           else keras.initializers.Orthogonal)(*a, **k)
    current = first = keras.Input(x.shape[1:])
    points, states, order = {}, {}, []

    def making(name):
        """Makes a layer that another one holds."""
        kind, positions = LAYERS[name]
        return lambda *by_position, **options: layer_class(kind)(**dict(zip(positions.split(), by_position)), **options)

    def stack(*cells):
        return keras.layers.StackedRNNCells(list(cells))

    inner |= {n: making(n) for n in ("relu", "leaky_relu", "elu", "softmax")}  # layers as activations
    for text in split(expression, " "):
        point, text = re.fullmatch(r"(?:([a-z]\w*)=)?([a-z]\w*(?:\(.*\))?)", text).groups()
        name, inside = call_of(text)
        if name == "input":
            shape = arguments(inside)[0]
            assert tuple(shape) == x.shape[1:], (shape, x.shape)
        elif name in MERGES:
            others, options = arguments(inside)
            order.append(layer_class(MERGES[name])(**options))
            current = order[-1]([current] + [points[p] for p in others])
        elif name in ATTENTION:
            kind, positions = ATTENTION[name]
            by_position, options = arguments(inside, inner)
            options |= dict(zip(positions.split(), [p for p in by_position if not isinstance(p, str)]))
            others = [points[p] for p in by_position if isinstance(p, str)] or [current]
            call = {"use_causal_mask": options.pop("use_causal_mask", False)}
            if len(others) > 2:
                call["attention_mask"] = others.pop()
            order.append(layer_class(kind)(**options))
            if options.get("value_dim", options.get("key_dim")) != options.get("key_dim"):
                # Keras's shorter way on JAX requires both to be equal; with the scores it takes the other one.
                current = order[-1](current, *others, return_attention_scores=True, **call)[0]
            else:
                current = order[-1](current, *others, **call) if positions else order[-1]([current] + others, **call)
        else:
            kind, positions = LAYERS[name]
            by_position, options = arguments(inside, inner | ({n: making(n) for n in HELD} | {"stacked_rnn_cells": stack} if name in WRAPPERS else {}))
            if name in WRAPPERS and not isinstance(by_position[0], keras.Layer):
                by_position = (by_position[0](),)
            if positions.startswith("*"):
                options[positions[1:]] = by_position[0] if isinstance(by_position[0], tuple) else by_position
            else:
                assert len(by_position) <= len(positions.split()), text
                options |= dict(zip(positions.split(), by_position))
            begins = options.pop("initial_state", None)
            order.append(layer_class(kind)(**options))
            if name == "normalization" and "mean" not in options:
                order[-1].adapt(x)
            current = order[-1](current, initial_state=states[begins]) if begins else order[-1](current)
        given = []
        if isinstance(current, (list, tuple)):
            current, *given = current
        if point:
            points[point], states[point] = current, given
    model = keras.Model(first, current)
    assert [l for l in model.layers if not isinstance(l, keras.layers.InputLayer)] == order
    return model


def optimizer_of(text):
    import keras
    name, inside = call_of(text)
    calls = {n: getattr(keras.optimizers.schedules, c) for n, c in SCHEDULES.items()}
    calls["piecewise_constant_decay"] = lambda b, v: keras.optimizers.schedules.PiecewiseConstantDecay(list(b), list(v))
    by_position, options = arguments(inside, calls)
    if "exclude_layers" in options:
        options["exclude_layers"] = options["exclude_layers"].split(",")
    if "lr" in options:
        options["learning_rate"] = options.pop("lr")
    return getattr(keras.optimizers, OPTIMIZERS[name])(*by_position, **options)


def named(module, text):
    """A loss or a metric of Keras; plain names stay strings, since Keras chooses the form of `accuracy` itself."""
    name, inside = call_of(text)
    if not inside:
        return name
    by_position, options = arguments(inside)
    if "curve" in options:
        options["curve"] = options["curve"].upper()
    found = [c for c in vars(module).values() if isinstance(c, type) and c.__name__.lower() == name.replace("_", "")]
    for k in ("thresholds", "label_weights", "target_class_ids"):
        if isinstance(options.get(k), tuple):
            options[k] = list(options[k])
    made = found[0](*by_position, **options)
    made.name = name
    return made


def compiled(case, x):
    import keras
    model = model_of(case["expression"], x)
    metrics = {k: [named(keras.metrics, m) for m in split(case[k], ",")] for k in ("metrics", "weighted_metrics") if case.get(k)}
    model.compile(optimizer=optimizer_of(case["optimizer"]), loss=named(keras.losses, case["loss"]), **metrics)
    return model


def fit(model, case, x, y, w):
    weights = case.get("class_weight")
    weights = {int(k): float(v) for k, v in (p.split(":") for p in weights.split(","))} if weights else None
    return model.fit(x, y, sample_weight=w, class_weight=weights, batch_size=int(case["batch"]), epochs=int(case["epochs"]),
                     shuffle=False, verbose=0).history


def values(variable):
    import keras
    return keras.ops.convert_to_numpy(variable).astype("f4")


def samples(row, rng):
    import numpy as np
    n = row["n"]
    if row["x"][0] == "tokens":
        _, vocabulary, length = row["x"]
        x = rng.integers(0, vocabulary, (n, length)).astype("f4")
        x[:, -1] = np.maximum(x[:, -1], 1)      # Keras's mean over a wholly masked sample is 0/0
        seen = rng.standard_normal((vocabulary, 4))[x.astype(int)].mean(1)
        return x, seen
    # Multiples of 1/256 are exact in float32 and pack well.
    x = np.round((rng.standard_normal((n, *row["x"])) * row["spread"] + row["centre"]) * 256) / 256
    return x.astype("f4"), x.reshape(n, -1) - row["centre"]


def targets(kind, seen, shape, rng):
    """Targets that depend on the samples, of the given kind, for an output of the given shape (without the batch)."""
    import numpy as np
    n = len(seen)
    z = seen @ rng.standard_normal((seen.shape[1], int(np.prod(shape))))
    z = (z / z.std() + 0.3 * rng.standard_normal(z.shape)).reshape(n, *shape)
    if kind == "classes":           # (n,) or, for a sequence, (n, length)
        return z.argmax(-1)
    if kind == "column":            # classes as (n, 1)
        return z.argmax(-1)[..., None]
    if kind == "onehot":
        return np.eye(shape[-1])[z.argmax(-1)]
    if kind == "binary":
        return z > 0
    if kind == "spelled":           # two labels, none of which is the blank 0
        return z[:, :2, 1:].argmax(-1) + 1
    if kind == "sign":
        return np.where(z > 0, 1, -1)
    if kind == "shares":            # positive, each row sums to one
        shares = np.round(256 * np.exp(z) / np.exp(z).sum(-1, keepdims=True)) / 256
        shares[..., 0] = 1 - shares[..., 1:].sum(-1)
        return shares
    z = np.round(256 * z) / 256
    return {"real": z, "positive": 0.5 + np.abs(z), "counts": np.round(np.abs(2 * z))}[kind]


def disturb(model, rng):
    """Zeros and ones hide mistakes: biases, gammas, moving values and the like start beside them."""
    import numpy as np
    start = []
    for v in model.weights:
        a = values(v)
        if "adapt" in v.path or v.name in ("count", "mean", "variance"):
            start.append(a)
        elif v.name == "moving_variance":
            start.append(a * rng.uniform(0.5, 1.5, a.shape).astype("f4"))
        elif v.name in ("bias", "beta", "gamma", "moving_mean", "alpha"):
            start.append(a + 0.2 * rng.standard_normal(a.shape).astype("f4"))
        else:
            start.append(a)
    model.set_weights(start)


def text_of(row):
    keys = ("expression", "optimizer", "loss", "metrics", "weighted_metrics", "class_weight", "batch", "epochs")
    return {k: str(row[k]) for k in keys if row.get(k) is not None}


def make(row):
    import keras, numpy as np
    seed = zlib.crc32(row["name"].encode()) + row["draw"]
    keras.utils.set_random_seed(seed & 0x7fffffff)
    rng = np.random.default_rng(seed)
    x, seen = samples(row, rng)
    case = text_of(row)
    model = compiled(case, x)
    y = targets(row["y"], seen, keras.ops.shape(model(x[:1]))[1:], rng).astype("f4")  # of glu, output_shape is another one
    w = None
    if row["w"]:
        shape = {True: y.shape[:1], "column": (len(y), 1), "each": y.shape}[row["w"]]
        w = np.round(256 * rng.uniform(0.1, 2, shape)).astype("f4") / 256
    if row["disturb"]:
        disturb(model, rng)
    members = {"x": x, "y": y} | ({"w": w} if row["w"] else {})
    members |= {f"initial_{i}": values(v) for i, v in enumerate(model.weights)}
    history = fit(model, case, x, y, w)
    members |= {f"final_{i}": values(v) for i, v in enumerate(model.weights)}
    members["loss"] = np.array(history.pop("loss"), "f8")
    wanted = [call_of(m)[0] for k in ("metrics", "weighted_metrics") for m in split(case.get(k, ""), ",")]
    assert sorted(history) == sorted(wanted), (history, wanted)
    members |= {f"metric_{k}": np.array(v, "f8") for k, v in history.items()}
    members["case"] = np.frombuffer("".join(f"{k}={v}\n" for k, v in case.items()).encode(), "u1")
    for k, v in members.items():
        assert np.isfinite(v).all(), k
    path = os.path.join(CASES, row["name"] + ".npz")
    np.savez_compressed(path, **members)
    moved = sum(float(((members[f"final_{i}"] - members[f"initial_{i}"]) ** 2).sum()) for i in range(len(model.weights))) ** 0.5
    print(f"{row['name']:34} {os.path.getsize(path):6} bytes, update {moved:.2e}, loss "
          + " ".join(f"{v:.5g}" for v in members["loss"]),
          *(f"{k} " + " ".join(f"{v:.3g}" for v in np.ravel(vs)) for k, vs in history.items()), flush=True)


def check(path):
    """Trains a recorded case again; limits: 1 percent of the update, 2 percent of each variable's own, 0.1 percent of losses."""
    import numpy as np
    with np.load(path) as f:
        a = dict(f)
    case = dict(line.split("=", 1) for line in a["case"].tobytes().decode().splitlines())
    model = compiled(case, a["x"])
    count = sum(k.startswith("initial_") for k in a)
    start, want = [a[f"initial_{i}"] for i in range(count)], [a[f"final_{i}"] for i in range(count)]
    model.set_weights(start)
    history = fit(model, case, a["x"], a["y"], a.get("w"))
    norm = lambda v: float(np.linalg.norm(np.asarray(v, "f8").ravel()))
    total = lambda vs: sum(norm(v) ** 2 for v in vs) ** 0.5
    differ = [values(v).astype("f8") - b for v, b in zip(model.weights, want)]
    update = total(differ) / max(total([b.astype("f8") - s for b, s in zip(want, start)]), 1e-6)
    alone = max(norm(d) / max(norm(b.astype("f8") - s), 1e-6) for d, b, s in zip(differ, want, start)) if count else 0.0
    loss = float(np.max(np.abs(history["loss"] - a["loss"]) / np.maximum(np.abs(a["loss"]), 1e-6)))
    metric = max([float(np.max(np.abs(np.array(history[k[7:]]) - a[k]))) for k in a if k.startswith("metric_")], default=0.0)
    good = update < 1e-2 and alone < 2e-2 and loss < 1e-3 and metric < 1e-3
    print(f"{os.path.basename(path)[:-4]:34} {'ok' if good else 'FAILS'}: update {update:.1e}, worst variable {alone:.1e}, "
          f"loss {loss:.1e}, metric {metric:.1e}", flush=True)
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("do", choices=["make", "check", "list"])
    p.add_argument("patterns", nargs="*", default=["*"])
    p.add_argument("--backend", default="jax", help="of Keras, for check: jax, torch or tensorflow")
    a = p.parse_args()
    os.environ["KERAS_BACKEND"] = "jax" if a.do == "make" else a.backend
    sys.dont_write_bytecode = True
    from table import ROWS
    rows = [r for r in ROWS if any(fnmatch.fnmatch(r["name"], q) for q in a.patterns)]
    failed = 0
    for row in rows:
        path = os.path.join(CASES, row["name"] + ".npz")
        if a.do == "make":
            make(row)
        elif a.do == "check":
            try:
                failed += not check(path)
            except (RuntimeError, ValueError) as why:
                failed += 1
                print(f"{row['name']:34} FAILS: {str(why).splitlines()[0]}")
        else:
            print(f"{row['name']:34} {os.path.getsize(path) if os.path.exists(path) else 0:6} {row['expression']} | "
                  f"{row['optimizer']} | {row['loss']} | {row['metrics'] or ''} | batch {row['batch']} of {row['n']}")
    unknown = sorted({f[:-4] for f in os.listdir(CASES) if f.endswith(".npz")} - {r["name"] for r in ROWS})
    if unknown:
        print("files without a row:", *unknown)
    print(f"{len(rows)} cases, {failed} failed")
    return 1 if failed or unknown or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
