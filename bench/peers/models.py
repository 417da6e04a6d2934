"""The models that nets.py measures, each written once, as an expression of batchwise, and built from it for Keras and PyTorch.

MODELS: a name, the shape of a sample and the expression. A model whose shape is (length,) and that begins with an embedding takes numbers
of words below the embedding's size. PyTorch pads images of even size by as much on both sides where Keras pads one side more, which is
the same work, and its GRU is of the form that Keras's default is.
"""
HEAD = "global_avgpool2d dense(10,softmax)"


def residual(filters, source, target):
    half = f"conv2d({filters},3,padding=same,use_bias=false) batchnorm "
    return f"{half}relu {half}add({source}) {target}=relu "


def down(filters, target):
    return f"{target}=conv2d({filters},1,strides=2,padding=same) "


def vgg16():
    blocks = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    body = " ".join(f"conv2d({f},3,relu,padding=same) " * n + "maxpool2d(2)" for f, n in blocks)
    return body + " flatten dense(4096,relu) dense(4096,relu) dense(1000,softmax)"


def resnet50():
    text, last = "conv2d(64,7,strides=2,padding=same) batchnorm relu z=maxpool2d(3,strides=2,padding=same) ", "z"
    for stage, (filters, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(count):
            stride, name = 2 if stage and not block else 1, f"s{stage}b{block}"
            inner = (f"conv2d({filters},1,strides={stride}) batchnorm relu conv2d({filters},3,padding=same) batchnorm relu "
                     f"conv2d({4 * filters},1) {name}m=batchnorm ")
            if block:
                text += inner + f"add({last}) {name}=relu "
            else:
                text += inner + f"from({last}) conv2d({4 * filters},1,strides={stride}) batchnorm add({name}m) {name}=relu "
            last = name
    return text + "global_avgpool2d dense(1000,softmax)"


def mobilenet():
    text = "conv2d(32,3,strides=2,padding=same,use_bias=false) batchnorm activation(relu6) "
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1)):
        text += (f"depthwise_conv2d(3,strides={stride},padding=same,use_bias=false) batchnorm activation(relu6) "
                 f"conv2d({filters},1,use_bias=false) batchnorm activation(relu6) ")
    return text + "global_avgpool2d dense(1000,softmax)"


def mobilenetv2():
    text, channels = "conv2d(32,3,strides=2,padding=same,use_bias=false) batchnorm activation(relu6) ", 32
    last, number = "", 0
    for expand, filters, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for block in range(count):
            s, number = stride if not block else 1, number + 1
            if expand > 1:
                text += f"conv2d({expand * channels},1,use_bias=false) batchnorm activation(relu6) "
            text += (f"depthwise_conv2d(3,strides={s},padding=same,use_bias=false) batchnorm activation(relu6) "
                     f"conv2d({filters},1,use_bias=false) " + ("batchnorm " if block else f"b{number}=batchnorm "))
            if block:
                text += f"b{number}=add({last}) "
            channels, last = filters, f"b{number}"
    return text + "conv2d(1280,1,use_bias=false) batchnorm activation(relu6) global_avgpool2d dense(1000,softmax)"


def densenet():
    """Two blocks of DenseNet: each layer's input is all that was computed before it in the block."""
    text, last = "conv2d(24,3,padding=same,use_bias=false) p=batchnorm ", "p"
    for block in range(2):
        for layer in range(6):
            name = f"d{block}{layer}"
            text += f"relu conv2d(12,3,padding=same,use_bias=false) concat({last}) {name}=batchnorm "
            last = name
        if not block:
            text += "relu conv2d(48,1,use_bias=false) avgpool2d(2) q=batchnorm "
            last = "q"
    return text + "relu " + HEAD


def encoder(layers, width, heads):
    text, last = "", "input"
    for n in range(layers):
        text += (f"multi_head_attention({heads},{width // heads}) add({last}) a{n}=layernorm dense({4 * width},relu) dense({width}) "
                 f"add(a{n}) b{n}=layernorm ")
        last = f"b{n}"
    return text


MODELS = {
    "linear": ((64,), "dense(1)"),
    "logistic": ((128,), "dense(1,sigmoid)"),
    "mlp-small": ((784,), "dense(128,relu) dense(10,softmax)"),
    "mlp": ((784,), "dense(512,relu) dense(128,relu) dense(10,softmax)"),
    "mlp-large": ((1024,), "dense(1024,relu) dense(1024,relu) dense(10,softmax)"),
    "mlp-huge": ((2048,), "dense(4096,relu) dense(4096,relu) dense(10,softmax)"),
    "mlp-deep": ((64,), "dense(64,relu) " * 20 + "dense(1)"),
    "mlp-tanh": ((256,), "dense(256,tanh) dense(256,tanh) dense(10,softmax)"),
    "mlp-norm": ((784,), "dense(512) batchnorm relu dense(256) batchnorm relu dense(10,softmax)"),
    "mlp-dropout": ((784,), "dense(512,relu) dropout(0.2) dense(512,relu) dropout(0.2) dense(10,softmax)"),
    "wide-output": ((256,), "dense(512,relu) dense(4096)"),
    "many-classes": ((256,), "dense(256,relu) dense(10000,softmax)"),
    "autoencoder": ((784,), "dense(128,relu) dense(64,relu) dense(128,relu) dense(784,sigmoid)"),
    "autoencoder-deep": ((784,), "dense(512,relu) dense(256,relu) dense(32,relu) dense(256,relu) dense(512,relu) dense(784,sigmoid)"),
    "lenet": ((28, 28, 1), "conv2d(6,5,tanh,padding=same) avgpool2d(2) conv2d(16,5,tanh) avgpool2d(2) flatten dense(120,tanh) "
                           "dense(84,tanh) dense(10,softmax)"),
    "mnist": ((28, 28, 1), "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dropout(0.5) dense(10,softmax)"),
    "cifar": ((32, 32, 3), "conv2d(32,3,relu,padding=same) conv2d(32,3,relu) maxpool2d(2) dropout(0.25) conv2d(64,3,relu,padding=same) "
                           "conv2d(64,3,relu) maxpool2d(2) dropout(0.25) flatten dense(512,relu) dropout(0.5) dense(10,softmax)"),
    "vgg-small": ((32, 32, 3), "conv2d(64,3,relu,padding=same) conv2d(64,3,relu,padding=same) maxpool2d(2) conv2d(128,3,relu,padding=same) "
                               "conv2d(128,3,relu,padding=same) maxpool2d(2) flatten dense(256,relu) dense(10,softmax)"),
    "all-conv": ((32, 32, 3), "conv2d(96,3,relu,padding=same) conv2d(96,3,relu,padding=same,strides=2) conv2d(192,3,relu,padding=same) "
                              "conv2d(192,3,relu,padding=same,strides=2) conv2d(192,1,relu) " + HEAD),
    "five": ((32, 32, 16), "conv2d(64,5,relu,padding=same) conv2d(64,5,relu,padding=same) maxpool2d(2) flatten dense(10,softmax)"),
    "odd-channels": ((32, 32, 3), "conv2d(20,3,relu,padding=same) conv2d(50,3,relu,padding=same) maxpool2d(2) conv2d(30,3,tanh) " + HEAD),
    "tanh-average": ((64, 64, 3), "conv2d(16,5,tanh,strides=2) conv2d(32,3,tanh) avgpool2d(2) flatten dense(128,tanh) dense(10,softmax)"),
    "norm": ((32, 32, 3), "conv2d(32,3,padding=same) batchnorm relu conv2d(32,3,padding=same) batchnorm relu maxpool2d(2) "
                          "conv2d(64,3,padding=same) batchnorm relu " + HEAD),
    "norm-wide": ((32, 32, 3), "conv2d(64,3,padding=same) batchnorm relu conv2d(64,3,padding=same) batchnorm relu "
                               "conv2d(128,3,padding=same,strides=2) batchnorm relu " + HEAD),
    "residual": ((32, 32, 3), "conv2d(16,3,padding=same,use_bias=false) batchnorm a=relu " + residual(16, "a", "b") +
                              residual(16, "b", "c") + down(32, "d") + residual(32, "d", "e") + HEAD),
    "residual-wide": ((32, 32, 3), "conv2d(64,3,padding=same,use_bias=false) batchnorm a=relu " + residual(64, "a", "b") +
                                   down(128, "c") + residual(128, "c", "d") + HEAD),
    "dense-block": ((32, 32, 3), densenet()),
    "bottleneck": ((7, 7, 512), "conv2d(128,1,relu) conv2d(128,3,relu,padding=same) conv2d(512,1,relu) " + HEAD),
    "few-pixels": ((4, 4, 256), "conv2d(256,3,padding=same) batchnorm relu conv2d(256,3,padding=same) batchnorm relu " + HEAD),
    "conv64": ((64, 64, 3), "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "conv128": ((128, 128, 3), "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "denoiser": ((28, 28, 1), "conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(8,3,relu,padding=same) upsampling2d(2) "
                              "conv2d(1,3,sigmoid,padding=same) flatten"),
    "separable": ((32, 32, 3), "conv2d(32,3,relu,padding=same) depthwise_conv2d(3,padding=same) conv2d(64,1) batchnorm relu maxpool2d(2) "
                               "depthwise_conv2d(3,padding=same) conv2d(128,1) batchnorm relu " + HEAD),
    "lstm": ((100, 64), "lstm(128) dense(10,softmax)"),
    "gru": ((100, 64), "gru(128) dense(10,softmax)"),
    "words": ((200,), "embedding(20000,64) bidirectional(lstm(64)) dense(10,softmax)"),
    "bag": ((200,), "embedding(20000,64) global_avgpool1d dense(64,relu) dense(10,softmax)"),
    "encoder": ((128, 128), encoder(1, 128, 4) + "global_avgpool1d dense(10,softmax)"),
    "encoder-small": ((32, 64), encoder(2, 64, 4) + "global_avgpool1d dense(10,softmax)"),
    "signal": ((256, 8), "conv1d(32,5,relu) conv1d(64,5,relu) maxpool1d(2) conv1d(64,3,relu) global_avgpool1d dense(10,softmax)"),
    "volume": ((16, 16, 16, 1), "conv3d(16,3,relu,padding=same) maxpool3d(2) conv3d(32,3,relu,padding=same) global_avgpool3d "
                                "dense(10,softmax)"),
    "VGG16": ((32, 32, 3), vgg16()),
    "ResNet50": ((64, 64, 3), resnet50()),
    "MobileNet": ((64, 64, 3), mobilenet()),
    "MobileNetV2": ((64, 64, 3), mobilenetv2()),
}


def parse(text):
    """Yields (label, name, positional arguments, named arguments) of each layer; bidirectional(x) is x with the name 'both' given."""
    for word in text.split():
        head, _, inside = word.partition("(")
        label, _, name = head.rpartition("=")
        options = {}
        if name == "bidirectional":
            name, _, inside = inside.partition("(")
            inside, options = inside[:-1], {"both": "true"}
        given = [a for a in inside.removesuffix(")").split(",") if a]
        options.update(a.split("=") for a in given if "=" in a)
        yield label, name, [a for a in given if "=" not in a], options


def words_of(name):
    """How many words a model's embedding has, 0 without one."""
    _, first, plain, _ = next(parse(MODELS[name][1]))
    return int(plain[0]) if first == "embedding" else 0


def kind_of(name):
    """The loss: of classes, binary, or the mean squared error."""
    *_, (_, _, plain, _) = parse(MODELS[name][1])
    last = plain[1] if len(plain) > 1 else ""
    return "classes" if last == "softmax" else "binary" if last == "sigmoid" and plain[0] == "1" else "mse"


def classes_of(name):
    """How many numbers the last layer gives."""
    *_, (_, _, plain, _) = parse(MODELS[name][1])
    return int(plain[0])


def samples(name, out, batch):
    import numpy as np
    rng, words, shape = np.random.RandomState(0), words_of(name), MODELS[name][0]
    x = rng.randint(0, words, (batch, *shape)).astype("int32") if words else rng.rand(batch, *shape).astype("float32")
    kind = kind_of(name)
    if kind == "classes":
        return x, rng.randint(0, out[0], batch).astype("int32")
    return x, (rng.randint(0, 2, (batch, *out)) if kind == "binary" else rng.rand(batch, *out)).astype("float32")


# ---- Keras -------------------------------------------------------------------------------------------------


def keras_convolution(layers, kind, plain, options):
    common = {"padding": options.get("padding", "valid"), "strides": int(options.get("strides", 1)),
              "use_bias": options.get("use_bias") != "false"}
    if kind == "depthwise_conv2d":
        return layers.DepthwiseConv2D(int(plain[0]), **common)
    cls = {"conv1d": layers.Conv1D, "conv2d": layers.Conv2D, "conv3d": layers.Conv3D}[kind]
    return cls(int(plain[0]), int(plain[1]), activation=plain[2] if len(plain) > 2 else None, **common)


def keras_layer(layers, kind, plain, options):
    if "conv" in kind:
        return keras_convolution(layers, kind, plain, options)
    if "pool" in kind:
        names = {"maxpool": "MaxPooling", "avgpool": "AveragePooling", "global_avgpool": "GlobalAveragePooling"}
        cls = getattr(layers, names[kind[:-2]] + kind[-2:].upper())
        if kind.startswith("global"):
            return cls()
        return cls(int(plain[0]), strides=int(options.get("strides", plain[0])), padding=options.get("padding", "valid"))
    if kind in ("lstm", "gru"):
        layer = {"lstm": layers.LSTM, "gru": layers.GRU}[kind](int(plain[0]))
        return layers.Bidirectional(layer) if "both" in options else layer
    if kind == "dense":
        return layers.Dense(int(plain[0]), activation=plain[1] if len(plain) > 1 else None)
    return {"upsampling2d": lambda: layers.UpSampling2D(int(plain[0])), "flatten": layers.Flatten, "batchnorm": layers.BatchNormalization,
            "layernorm": layers.LayerNormalization, "relu": layers.ReLU, "activation": lambda: layers.Activation(plain[0]),
            "embedding": lambda: layers.Embedding(int(plain[0]), int(plain[1])), "dropout": lambda: layers.Dropout(float(plain[0]))}[kind]()


def keras_model(keras, name):
    shape, text = MODELS[name]
    layers = keras.layers
    x = start = keras.Input(shape, dtype="int32" if words_of(name) else "float32")
    named = {"input": start}
    for label, kind, plain, options in parse(text):
        if kind == "from":
            x = named[plain[0]]
        elif kind in ("add", "concat"):
            x = (layers.Add if kind == "add" else layers.Concatenate)()([x, named[plain[0]]])
        elif kind == "multi_head_attention":
            x = layers.MultiHeadAttention(int(plain[0]), int(plain[1]))(x, x)
        else:
            x = keras_layer(layers, kind, plain, options)(x)
        if label:
            named[label] = x
    return keras.Model(start, x)


# ---- PyTorch -----------------------------------------------------------------------------------------------


def torch_window(size, kernel, stride, same):
    """The extents after a window, and its padding."""
    pad = (kernel - 1) // 2 if same else 0
    return [(s + 2 * pad - kernel) // stride + 1 for s in size], pad


def torch_convolution(nn, kind, plain, options, size):
    depthwise, same, stride = kind == "depthwise_conv2d", options.get("padding") == "same", int(options.get("strides", 1))
    filters, kernel = (size[-1], int(plain[0])) if depthwise else (int(plain[0]), int(plain[1]))
    extents, pad = torch_window(size[:-1], kernel, stride, same)
    cls = {"1": nn.Conv1d, "2": nn.Conv2d, "3": nn.Conv3d}[kind[-2]]
    part = cls(size[-1], filters, kernel, stride, pad, bias=options.get("use_bias") != "false", groups=size[-1] if depthwise else 1)
    return part, [*extents, filters], "" if depthwise or len(plain) < 3 else plain[2]


def torch_pool(nn, kind, plain, options, size):
    dims = int(kind[-2])
    if kind.startswith("global"):
        cls = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[dims - 1]
        return nn.Sequential(cls(1), nn.Flatten()), size[-1:]
    kernel, stride = int(plain[0]), int(options.get("strides", plain[0]))
    extents, pad = torch_window(size[:-1], kernel, stride, options.get("padding") == "same")
    classes = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d) if kind.startswith("max") else (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
    return classes[dims - 1](kernel, stride, pad), [*extents, size[-1]]


def torch_norm(nn, size):
    return (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[len(size) - 1](size[-1])


def torch_parts(torch):
    """Modules that PyTorch has in another form: the last state of a recurrent layer, attention to oneself, the mean over steps."""
    nn = torch.nn

    class Last(nn.Module):
        def __init__(self, kind, width, units, both):
            super().__init__()
            self.body = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](width, units, batch_first=True, bidirectional=both)
            self.both = both

        def forward(self, x):
            _, state = self.body(x)
            state = state[0] if isinstance(state, tuple) else state
            return torch.cat([state[0], state[1]], 1) if self.both else state[0]

    class Attend(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.body = nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            return self.body(x, x, x, need_weights=False)[0]

    class Mean(nn.Module):
        def forward(self, x):
            return x.mean(1)

    return Last, Attend, Mean


def torch_part(torch, kind, plain, options, size, sequence):
    """A module, the extents after it with the channels last, and the name of its activation. A sequence has its channels last in memory."""
    nn, (Last, Attend, Mean) = torch.nn, torch_parts(torch)
    if "conv" in kind:
        return torch_convolution(nn, kind, plain, options, size)
    if "pool" in kind:
        if sequence and kind == "global_avgpool1d":
            return Mean(), size[-1:], ""
        return *torch_pool(nn, kind, plain, options, size), ""
    if kind == "dense":
        return nn.Linear(size[-1], int(plain[0])), [*size[:-1], int(plain[0])], plain[1] if len(plain) > 1 else ""
    if kind in ("lstm", "gru"):
        both = "both" in options
        return Last(kind, size[-1], int(plain[0]), both), [int(plain[0]) * (2 if both else 1)], ""
    if kind == "upsampling2d":
        return nn.Upsample(scale_factor=int(plain[0])), [s * int(plain[0]) for s in size[:2]] + size[2:], ""
    if kind == "flatten":
        total = 1
        for s in size:
            total *= s
        return nn.Flatten(), [total], ""
    make = {"embedding": lambda: nn.Embedding(int(plain[0]), int(plain[1])), "batchnorm": lambda: torch_norm(nn, size),
            "layernorm": lambda: nn.LayerNorm(size[-1], eps=1e-3), "relu": nn.ReLU, "dropout": lambda: nn.Dropout(float(plain[0])),
            "activation": lambda: {"relu6": nn.ReLU6}[plain[0]](), "multi_head_attention": lambda: Attend(size[-1], int(plain[0]))}
    return make[kind](), [*size, int(plain[1])] if kind == "embedding" else size, ""


def torch_model(torch, name):
    nn, (shape, text) = torch.nn, MODELS[name]
    activations = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.parts = [], nn.ModuleList()
            size, sizes, sequence = list(shape), {"input": list(shape)}, "conv1d" not in text
            for label, kind, plain, options in parse(text):
                if kind == "from":
                    size = sizes[plain[0]]
                elif kind == "concat":
                    size = [*size[:-1], size[-1] + sizes[plain[0]][-1]]
                elif kind != "add":
                    part, size, act = torch_part(torch, kind, plain, options, size, sequence)
                    last = act == "sigmoid" and kind_of(name) == "binary"  # which the loss computes, as softmax
                    self.parts.append(nn.Sequential(part, activations[act]()) if act in activations and not last else part)
                self.steps.append((label, kind, plain[0] if kind in ("add", "concat", "from") else None))
                sizes[label] = size
            self.size = size

        def forward(self, x):
            named, parts = {"input": x}, iter(self.parts)
            for label, kind, other in self.steps:
                if kind == "from":
                    x = named[other]
                elif kind == "add":
                    x = x + named[other]
                elif kind == "concat":
                    x = torch.cat([x, named[other]], 1)
                else:
                    x = next(parts)(x)
                if label:
                    named[label] = x
            return x
    return Net()


def torch_layout(torch, name, x, model):
    """Inputs and model with PyTorch's order of axes, channels last in memory; sequences of conv1d have no such layout."""
    if "conv" not in MODELS[name][1]:
        return x, model
    x = x.movedim(-1, 1)
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
    return (x.contiguous(memory_format=layout), model.to(memory_format=layout)) if layout else (x.contiguous(), model)
