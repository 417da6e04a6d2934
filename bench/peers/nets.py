#!/usr/bin/env python3
"""Real nets beside TensorFlow (plain and XLA) and PyTorch (eager and compiled), each model at several batch sizes.

  nets.py --batchwise build/batchwise [--tf PYTHON] [--torch PYTHON] [--peers tf,xla,torch,compile] [--rounds 3]
          [--only lenet:32,autoencoder:256] [--markdown]

Every round times Batchwise and each peer one after another, since a machine is never quiet; the figure of a peer is the median over the
rounds of (Batchwise's samples/s) / (the peer's samples/s), and the last column is the least of them. Batchwise is a new process each time
(`batchwise bench --model M --shape S --batch B`); a peer stays in one process, warm, and repeats one batch in memory. All train with
Adam; PyTorch has images in channels_last and the fused Adam. --tf and --torch name the interpreters that have these libraries. A model
file (`keras.applications`) is timed beside TensorFlow alone. Without --only all models are timed at 1, 32 and 256: for an idle machine.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time

RESIDUAL = ("conv2d({0},3,padding=same,use_bias=false) batchnorm relu conv2d({0},3,padding=same,use_bias=false) batchnorm add({1}) "
            "{2}=relu ")
DOWN = "{1}=conv2d({0},1,strides=2,padding=same) "
HEAD = "global_avgpool2d dense(10,softmax)"
# name: input shape, layers as in an expression of batchwise
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
    "residual": ((32, 32, 3), "conv2d(16,3,padding=same,use_bias=false) batchnorm a=relu " + RESIDUAL.format(16, "a", "b") +
                              RESIDUAL.format(16, "b", "c") + DOWN.format(32, "d") + RESIDUAL.format(32, "d", "e") + HEAD),
    "residual-wide": ((32, 32, 3), "conv2d(64,3,padding=same,use_bias=false) batchnorm a=relu " + RESIDUAL.format(64, "a", "b") +
                                   DOWN.format(128, "c") + RESIDUAL.format(128, "c", "d") + HEAD),
    "bottleneck": ((7, 7, 512), "conv2d(128,1,relu) conv2d(128,3,relu,padding=same) conv2d(512,1,relu) " + HEAD),
    "few-pixels": ((4, 4, 256), "conv2d(256,3,padding=same) batchnorm relu conv2d(256,3,padding=same) batchnorm relu " + HEAD),
    "conv64": ((64, 64, 3), "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "conv128": ((128, 128, 3), "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "denoiser": ((28, 28, 1), "conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(8,3,relu,padding=same) upsampling2d(2) "
                              "conv2d(1,3,sigmoid,padding=same) flatten"),
    "MobileNet": ((64, 64, 3), None),
    "ResNet50": ((64, 64, 3), None),
    "VGG16": ((64, 64, 3), None),
}
BATCHES = (1, 32, 256)
ENOUGH = 0.4  # seconds that a peer is timed for


def parse(text):
    """Yields (label, name, positional arguments, named arguments) of each layer."""
    for word in text.split():
        head, _, inside = word.partition("(")
        label, _, name = head.rpartition("=")
        given = [a for a in inside.rstrip(")").split(",") if a]
        yield label, name, [a for a in given if "=" not in a], dict(a.split("=") for a in given if "=" in a)


def kind_of(text):
    """The loss: of classes, binary, or the mean squared error."""
    *_, (_, _, plain, _) = parse(text)
    last = plain[1] if len(plain) > 1 else ""
    return "classes" if last == "softmax" else "binary" if last == "sigmoid" and plain[0] == "1" and text.count("conv2d") == 0 else "mse"


def keras_model(keras, name):
    shape, text = MODELS[name]
    if text is None:
        return getattr(keras.applications, name)(weights=None, input_shape=shape)
    layers, named = keras.layers, {}
    x = start = keras.Input(shape)
    for label, kind, plain, options in parse(text):
        if kind == "add":
            x = layers.Add()([x, named[plain[0]]])
        elif kind == "conv2d":
            x = layers.Conv2D(int(plain[0]), int(plain[1]), activation=plain[2] if len(plain) > 2 else None,
                              padding=options.get("padding", "valid"), strides=int(options.get("strides", 1)),
                              use_bias=options.get("use_bias") != "false")(x)
        elif kind == "dense":
            x = layers.Dense(int(plain[0]), activation=plain[1] if len(plain) > 1 else None)(x)
        else:
            x = {"maxpool2d": lambda: layers.MaxPooling2D(int(plain[0])), "avgpool2d": lambda: layers.AveragePooling2D(int(plain[0])),
                 "upsampling2d": lambda: layers.UpSampling2D(int(plain[0])), "global_avgpool2d": layers.GlobalAveragePooling2D,
                 "flatten": layers.Flatten, "batchnorm": layers.BatchNormalization, "relu": layers.ReLU,
                 "dropout": lambda: layers.Dropout(float(plain[0]))}[kind]()(x)
        if label:
            named[label] = x
    return keras.Model(start, x)


def torch_model(name):
    from torch import nn
    shape, text = MODELS[name]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.parts, size = [], nn.ModuleList(), list(shape)
            sizes = {}
            for label, kind, plain, options in parse(text):
                act = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}.get((plain[2:] if kind == "conv2d" else plain[1:] or [""])[0]
                                                                                     if len(plain) > (2 if kind == "conv2d" else 1) else "")
                part = None
                if kind == "conv2d":
                    k, same, stride = int(plain[1]), options.get("padding") == "same", int(options.get("strides", 1))
                    part = nn.Conv2d(size[2], int(plain[0]), k, stride, (k - 1) // 2 if same else 0, bias=options.get("use_bias") != "false")
                    pad = 2 * ((k - 1) // 2) if same else 0
                    size = [(s + pad - k) // stride + 1 for s in size[:2]] + [int(plain[0])]
                elif kind == "dense":
                    part, size = nn.Linear(size[0], int(plain[0])), [int(plain[0])]
                elif kind in ("maxpool2d", "avgpool2d"):
                    part = (nn.MaxPool2d if kind == "maxpool2d" else nn.AvgPool2d)(int(plain[0]))
                    size = [s // int(plain[0]) for s in size[:2]] + size[2:]
                elif kind == "upsampling2d":
                    part, size = nn.Upsample(scale_factor=int(plain[0])), [s * int(plain[0]) for s in size[:2]] + size[2:]
                elif kind == "global_avgpool2d":
                    part, size = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), size[2:]
                elif kind == "flatten":
                    part, total = nn.Flatten(), 1
                    for s in size:
                        total *= s
                    size = [total]
                elif kind == "batchnorm":
                    part = nn.BatchNorm2d(size[2]) if len(size) == 3 else nn.BatchNorm1d(size[0])
                elif kind == "relu":
                    part = nn.ReLU()
                elif kind == "dropout":
                    part = nn.Dropout(float(plain[0]))
                last = act is nn.Sigmoid and kind_of(text) == "binary"
                if act and not last:
                    part = nn.Sequential(part, act())
                if part is not None:
                    self.parts.append(part)
                self.steps.append((label, plain[0] if kind == "add" else None))
                sizes[label] = size

        def forward(self, x):
            named, parts = {}, iter(self.parts)
            for label, added in self.steps:
                x = x + named[added] if added else next(parts)(x)
                if label:
                    named[label] = x
            return x
    return Net()


def keras_samples(model, kind, batch):
    import numpy as np
    rng = np.random.RandomState(0)
    x = rng.rand(batch, *model.input_shape[1:]).astype("float32")
    out = model.output_shape[1:]
    if kind == "classes":
        return x, rng.randint(0, out[0], batch)
    return x, (rng.randint(0, 2, (batch, *out)) if kind == "binary" else rng.rand(batch, *out)).astype("float32")


def tensorflow_step(name, batch, xla):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    model = keras_model(tf.keras, name)
    kind = kind_of(MODELS[name][1]) if MODELS[name][1] else "classes"
    measure = {"classes": tf.keras.losses.SparseCategoricalCrossentropy, "binary": tf.keras.losses.BinaryCrossentropy,
               "mse": tf.keras.losses.MeanSquaredError}[kind]()
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    x, y = (tf.constant(a) for a in keras_samples(model, kind, batch))

    @tf.function(jit_compile=xla)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = measure(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value
    return lambda: step(x, y).numpy()


def torch_step(name, batch, compiled):
    import numpy as np
    import torch
    from torch import nn
    shape, text = MODELS[name]
    if text is None or (batch == 1 and "batchnorm" in text and len(shape) == 1):
        return None
    torch.set_num_threads(os.cpu_count())
    model, kind = torch_model(name), kind_of(text)
    rng = np.random.RandomState(0)
    x = torch.tensor(rng.rand(batch, *shape).astype("float32"))
    if len(shape) == 3:
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    with torch.no_grad():
        model.eval()
        out = model(x[:1]).shape[1:]
        model.train()
    y = torch.tensor(rng.randint(0, out[0], batch) if kind == "classes" else
                     (rng.randint(0, 2, (batch, *out)) if kind == "binary" else rng.rand(batch, *out)).astype("float32"))
    measure = {"classes": nn.CrossEntropyLoss, "binary": nn.BCEWithLogitsLoss, "mse": nn.MSELoss}[kind]()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    run = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad()
        value = measure(run(x), y)
        value.backward()
        optimizer.step()
        return value.item()
    return step


def serve(peer):
    """A peer's process: a line 'model batch' in, samples/s out; 0: it has no such model."""
    print("ready", flush=True)
    current, step = None, None
    for line in sys.stdin:
        name, batch = line.split()
        if current != (name, batch):
            make = tensorflow_step if peer in ("tf", "xla") else torch_step
            current, step = (name, batch), make(name, int(batch), peer in ("xla", "compile"))
            for _ in range(3 if step else 0):
                step()
        steps, begin, spent = 0, time.perf_counter(), 0
        while step and (steps < 2 or spent < ENOUGH):
            step()
            steps, spent = steps + 1, time.perf_counter() - begin
        print(int(batch) * steps / spent if step else 0, flush=True)


def ours(a, name, batch, files):
    shape, text = MODELS[name]
    command = [a.batchwise, "bench", "--model", text or files[name], "--shape", "x".join(map(str, shape)), "--batch", batch,
               "--epochs", "1", "--warmup", "1", "--json"]
    kind = kind_of(text) if text else "classes"
    command += ["--optimizer", "adam", "--loss", {"classes": "sparse_categorical_crossentropy", "binary": "binary_crossentropy",
                                                  "mse": "mean_squared_error"}[kind]]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{name}:{batch}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def make_files(a, names, folder):
    """Models of keras.applications as .keras files, made by the interpreter that has TensorFlow."""
    files = {}
    for name in names:
        files[name] = os.path.join(folder, name + ".keras")
        subprocess.run([a.tf, "-c", "import sys, tensorflow as tf\n"
                        f"tf.keras.applications.{name}(weights=None, input_shape={MODELS[name][0]}).save(sys.argv[1])", files[name]],
                       check=True, capture_output=True)
    return files


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--tf", default=sys.executable, help="the Python that has TensorFlow")
    p.add_argument("--torch", default=sys.executable, help="the Python that has PyTorch")
    p.add_argument("--peers", default="tf,xla,torch,compile")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=",".join(f"{n}:{b}" for n in MODELS for b in BATCHES))
    p.add_argument("--markdown", action="store_true", help="rows for bench/RESULTS.md")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.serve)
    items = [item.split(":") for item in a.only.split(",")]
    peers = {}
    for peer in a.peers.split(",") if a.peers else []:
        python = a.tf if peer in ("tf", "xla") else a.torch
        peers[peer] = subprocess.Popen([python, __file__, "--serve", peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL)
        if peers[peer].stdout.readline().strip() != "ready":
            sys.exit(f"{peer} did not start: is it installed for {python}?")
    columns = ["model", "batch", "samples/s", "GFLOP/s", *peers, "least"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|" if a.markdown else
          "{:17} {:>5} {:>10} {:>8}".format(*columns[:4]) + "".join(f"{c:>9}" for c in columns[4:]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(a, sorted({n for n, _ in items if MODELS[n][1] is None}), folder)
        for name, batch in items:
            ratios, rates = {peer: [] for peer in peers}, []
            for _ in range(a.rounds):
                result = ours(a, name, batch, files)
                rates.append((result["samples_per_s"], result["gflops"] or 0))
                for peer, process in peers.items():
                    process.stdin.write(f"{name} {batch}\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    rate = float(answer) if answer.strip() else sys.exit(f"{peer} failed at {name}:{batch}")
                    if rate:
                        ratios[peer].append(result["samples_per_s"] / rate)
            medians = [statistics.median(r) if r else None for r in ratios.values()]
            least = min((m for m in medians if m), default=None)
            texts = ["-" if m is None else f"{m:.2f}" for m in [*medians, least]]
            rate, gflops = statistics.median(r for r, _ in rates), statistics.median(g for _, g in rates)
            print("| " + " | ".join([name, batch, f"{rate:,.0f}", f"{gflops:.1f}", *texts]) + " |" if a.markdown else
                  f"{name:17} {batch:>5} {rate:10.0f} {gflops:8.1f}" + "".join(f"{t:>9}" for t in texts), flush=True)
    for process in peers.values():
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
