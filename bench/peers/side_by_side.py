#!/usr/bin/env python3
"""Batchwise beside TensorFlow or PyTorch on the same training work, in one run.

  side_by_side.py --batchwise build/batchwise [--peer tf|torch] [--rounds 7] [--only conv28:16,mlp100:32] [--markdown]

A machine is never quiet, so each round times one epoch of Batchwise and one of the peer next to each other, and the figure
is the median over the rounds of (Batchwise's samples/s) / (the peer's samples/s). Batchwise is a new process each time
(`batchwise bench --workload NAME --batch B --epochs 1 --warmup 1 --json`). The peer stays in one process, compiled and warm
(TensorFlow: tf.function; PyTorch: eager), with its data already in memory; both shuffle nothing and train with Adam.
"""
import argparse, json, os, statistics, subprocess, sys, time

# name: samples, input shape, layers, loss; the same table as in src/cli/bench.c
WORKLOADS = {
    "conv28": (1000, (28, 28, 1), [("conv", 32)], "classes"),
    "conv64": (1000, (64, 64, 3), [("conv", 32)], "classes"),
    "conv128": (256, (128, 128, 3), [("conv", 32), ("conv", 64)], "classes"),
    "conv128half": (256, (128, 128, 3), [("conv", 16), ("conv", 32)], "classes"),
    "linear2": (500, (2,), [], "mse"),
    "logistic10": (200, (10,), [], "binary"),
    "mlp100": (100000, (100,), [("dense", 32)], "binary"),
    "range": (1000, (1,), [("dense", 64)], "mse"),
    "mlp1024": (4096, (1024,), [("dense", 1024), ("dense", 1024)], "classes"),
}
DEFAULT = ("conv28:1,conv28:16,conv28:128,conv64:32,conv128:128,conv128half:16,linear2:16,logistic10:32,range:32,mlp100:32,"
           "mlp100:10000,mlp1024:32,mlp1024:256")


def samples(name, rng):
    n, shape, _, loss = WORKLOADS[name]
    x = rng.rand(n, *shape).astype("float32")
    if loss == "classes":
        return x, rng.randint(0, 10, n)
    return x, (rng.randint(0, 2, (n, 1)) if loss == "binary" else rng.rand(n, 1)).astype("float32")


def tensorflow_epoch(name, batch, rng):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    layers, losses = tf.keras.layers, tf.keras.losses
    _, shape, body, loss = WORKLOADS[name]
    stack = [tf.keras.Input(shape)]
    for kind, units in body:
        if kind == "conv":
            stack += [layers.Conv2D(units, 3, activation="relu"), layers.MaxPooling2D(2)]
        else:
            stack.append(layers.Dense(units, activation="relu"))
    if len(shape) == 3:
        stack.append(layers.Flatten())
    stack.append({"classes": layers.Dense(10, "softmax"), "binary": layers.Dense(1, "sigmoid"), "mse": layers.Dense(1)}[loss])
    model, optimizer = tf.keras.Sequential(stack), tf.keras.optimizers.Adam()
    measure = {"classes": losses.SparseCategoricalCrossentropy, "binary": losses.BinaryCrossentropy,
               "mse": losses.MeanSquaredError}[loss]()
    batches = tf.data.Dataset.from_tensor_slices(samples(name, rng)).batch(batch).prefetch(tf.data.AUTOTUNE)

    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = measure(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))

    def epoch():
        for x, y in batches:
            step(x, y)
    return epoch


def torch_epoch(name, batch, rng):
    import torch
    from torch import nn
    torch.set_num_threads(os.cpu_count())
    _, shape, body, loss = WORKLOADS[name]
    x, y = (torch.tensor(a) for a in samples(name, rng))
    image = len(shape) == 3
    if image:
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    stack, width, side = [], shape[-1], shape[0]
    for kind, units in body:
        if kind == "conv":
            stack += [nn.Conv2d(width, units, 3), nn.ReLU(), nn.MaxPool2d(2)]
            side = (side - 2) // 2
        else:
            stack += [nn.Linear(width, units), nn.ReLU()]
        width = units
    if image:
        stack.append(nn.Flatten())
        width *= side * side
    stack.append(nn.Linear(width, 10 if loss == "classes" else 1))
    model = nn.Sequential(*stack)
    if image:
        model = model.to(memory_format=torch.channels_last)
    measure = {"classes": nn.CrossEntropyLoss, "binary": nn.BCEWithLogitsLoss, "mse": nn.MSELoss}[loss]()
    optimizer = torch.optim.Adam(model.parameters())

    def epoch():
        for i in range(0, len(x), batch):
            optimizer.zero_grad()
            measure(model(x[i:i + batch]), y[i:i + batch]).backward()
            optimizer.step()
    return epoch


def serve(peer):
    """The peer's process: a line 'workload batch' in, samples/s of one warm epoch out."""
    import numpy
    rng = numpy.random.RandomState(0)
    current, epoch = None, None
    print("ready", flush=True)
    for line in sys.stdin:
        name, batch = line.split()
        if current != (name, batch):
            current, epoch = (name, batch), {"tf": tensorflow_epoch, "torch": torch_epoch}[peer](name, int(batch), rng)
            epoch()
        begin = time.perf_counter()
        epoch()
        print(WORKLOADS[name][0] / (time.perf_counter() - begin), flush=True)


def ours(command, name, batch):
    run = subprocess.run([command, "bench", "--workload", name, "--batch", batch, "--epochs", "1", "--warmup", "1", "--json"],
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{name}:{batch}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--peer", default="tf", choices=["tf", "torch"])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--only", default=DEFAULT)
    p.add_argument("--markdown", action="store_true", help="rows for bench/RESULTS.md")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.serve)
    peer = subprocess.Popen([sys.executable, __file__, "--serve", a.peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)
    if peer.stdout.readline().strip() != "ready":
        sys.exit("the peer did not start: is it installed for this Python?")
    form = "| {0} | {1} | {2:,.0f} | {3:,.0f} | {4:.2f} | {5:.1f} |" if a.markdown else "{0:12s} {1:>6s} {2:12.0f} {3:12.0f} {4:9.2f} {5:7.1f}"
    print("workload, batch, batchwise/s, peer/s, ratio, MiB" if not a.markdown else
          "| workload | batch | samples/s | peer's | ratio | peak MiB |\n|---|---|---|---|---|---|")
    for item in a.only.split(","):
        name, batch = item.split(":")
        pairs, peak = [], 0
        for _ in range(a.rounds):
            result = ours(a.batchwise, name, batch)
            peer.stdin.write(f"{name} {batch}\n")
            peer.stdin.flush()
            pairs.append((result["samples_per_s"], float(peer.stdout.readline())))
            peak = result["peak_bytes"] / 2 ** 20
        print(form.format(name, batch, statistics.median(o for o, _ in pairs), statistics.median(t for _, t in pairs),
                          statistics.median(o / t for o, t in pairs), peak), flush=True)
    peer.stdin.close()
    peer.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
