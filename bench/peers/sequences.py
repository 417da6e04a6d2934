#!/usr/bin/env python3
"""Batchwise beside TensorFlow and PyTorch on models of sequences and videos, in one run.

  sequences.py --batchwise build/batchwise [--peers tf,xla] [--rounds 3] [--only lstm:32,encoder:1] [--python PYTHON]

The peers are tf (tf.function), xla (the same, compiled), torch (eager) and compiled (torch.compile), the latter two with fused Adam.
Each round times one epoch of Batchwise and one of every peer next to each other; the figure is the median over the rounds of
Batchwise's samples/s divided by the peer's. Batchwise is a new process each time (`batchwise bench`, one epoch to warm up); peers
stay in processes of their own, warm, with their data in memory. PyTorch's GRU has another form of the cell than Keras's default,
with the same products.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time

# name: the shape of a sample (or the length of a text), the expression
WORKLOADS = {
    "lstm": ((100, 64), "lstm(128) dense(10,softmax)"),
    "gru": ((100, 64), "gru(128) dense(10,softmax)"),
    "encoder": ((128, 128), "a=multi_head_attention(4,32) add(input) b=layernorm dense(512,relu) dense(128) add(b) layernorm "
                            "global_avgpool1d dense(10,softmax)"),
    "text": ((200,), "embedding(20000,64) bidirectional(lstm(64)) dense(10,softmax)"),
    "video": ((16, 32, 32, 3), "conv3d(16,3,relu,padding=same) global_avgpool3d dense(10,softmax)"),
}
COUNTS = {1: 48, 32: 256, 256: 512}
DEFAULT = ",".join(f"{name}:{batch}" for name in WORKLOADS for batch in COUNTS)


def samples(name, count):
    import numpy
    rng, shape = numpy.random.RandomState(0), WORKLOADS[name][0]
    x = rng.randint(0, 20000, (count, *shape)).astype("int32") if name == "text" else rng.rand(count, *shape).astype("float32")
    return x, rng.randint(0, 10, count).astype("int32")


def tensorflow_epoch(name, batch, xla):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    layers = tf.keras.layers
    x, y = samples(name, COUNTS[batch])
    first = tf.keras.Input(x.shape[1:], dtype=x.dtype)
    if name == "encoder":
        a = layers.LayerNormalization()(first + layers.MultiHeadAttention(4, 32)(first, first))
        b = layers.Dense(128)(layers.Dense(512, "relu")(a))
        last = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(a + b))
    elif name == "video":
        last = layers.GlobalAveragePooling3D()(layers.Conv3D(16, 3, activation="relu", padding="same")(first))
    elif name == "text":
        last = layers.Bidirectional(layers.LSTM(64))(layers.Embedding(20000, 64)(first))
    else:
        last = {"lstm": layers.LSTM, "gru": layers.GRU}[name](128)(first)
    model, optimizer = tf.keras.Model(first, layers.Dense(10, "softmax")(last)), tf.keras.optimizers.Adam()
    measure = tf.keras.losses.SparseCategoricalCrossentropy()
    optimizer.build(model.trainable_variables)
    batches = list(tf.data.Dataset.from_tensor_slices((x, y)).batch(batch))

    @tf.function(jit_compile=xla)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = measure(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    def epoch():
        for one in batches:
            value = step(*one)
        return float(value)
    return epoch


def torch_epoch(name, batch, compiled):
    import torch
    from torch import nn
    torch.set_num_threads(os.cpu_count())
    x, y = (torch.tensor(a.astype("int64") if a.dtype.kind == "i" else a) for a in samples(name, COUNTS[batch]))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(16 if name == "video" else 128, 10)
            if name == "encoder":
                self.body = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
            elif name == "video":
                self.body = nn.Conv3d(3, 16, 3, padding="same")
            elif name == "text":
                self.table = nn.Embedding(20000, 64)
                self.body = nn.LSTM(64, 64, batch_first=True, bidirectional=True)
            else:
                self.body = {"lstm": nn.LSTM, "gru": nn.GRU}[name](64, 128, batch_first=True)

        def forward(self, x):
            if name == "encoder":
                return self.last(self.body(x).mean(1))
            if name == "video":
                return self.last(torch.relu(self.body(x.permute(0, 4, 1, 2, 3))).mean((2, 3, 4)))
            y, state = self.body(self.table(x) if name == "text" else x)
            state = state if name == "gru" else state[0]
            return self.last(torch.cat([state[0], state[1]], 1) if name == "text" else state[0])

    model, measure = Model(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    run = torch.compile(model) if compiled else model

    def epoch():
        for i in range(0, len(x), batch):
            optimizer.zero_grad()
            value = measure(run(x[i:i + batch]), y[i:i + batch])
            value.backward()
            optimizer.step()
        return float(value)
    return epoch


PEERS = {"tf": lambda n, b: tensorflow_epoch(n, b, False), "xla": lambda n, b: tensorflow_epoch(n, b, True),
         "torch": lambda n, b: torch_epoch(n, b, False), "compiled": lambda n, b: torch_epoch(n, b, True)}


def serve(peer):
    """A peer's process: a line 'workload batch' in, samples/s of one warm epoch out."""
    current, epoch = None, None
    print("ready", flush=True)
    for line in sys.stdin:
        name, batch = line.split()
        if current != (name, batch):
            current, epoch = (name, batch), PEERS[peer](name, int(batch))
            epoch()
        begin = time.perf_counter()
        epoch()
        print(COUNTS[int(batch)] / (time.perf_counter() - begin), flush=True)


def ours(arguments, folder, name, batch):
    import numpy
    path = os.path.join(folder, f"{name}_{batch}.npz")
    if not os.path.exists(path):
        x, y = samples(name, COUNTS[batch])
        numpy.savez(path, x=x, y=y)
    run = subprocess.run([arguments.batchwise, "bench", "--model", WORKLOADS[name][1], "--data", path, "--batch", str(batch), "--epochs", "1",
                          "--warmup", "1", "--json"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{name}:{batch}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--peers", default="tf,xla")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=DEFAULT)
    p.add_argument("--python", default=sys.executable, help="that has the peers")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.serve)
    peers = {}
    for name in a.peers.split(","):
        peers[name] = subprocess.Popen([a.python, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL)
        if peers[name].stdout.readline().strip() != "ready":
            sys.exit(f"{name} did not start: is it installed for {a.python}?")
    print("| workload | batch | samples/s | " + " | ".join(f"{n}'s | ratio" for n in peers) + " |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for item in a.only.split(","):
            name, batch = item.split(":")
            mine, others = [], {n: [] for n in peers}
            for _ in range(a.rounds):
                mine.append(ours(a, folder, name, int(batch))["samples_per_s"])
                for n, peer in peers.items():
                    peer.stdin.write(f"{name} {batch}\n")
                    peer.stdin.flush()
                    others[n].append(float(peer.stdout.readline()))
            cells = [f"{statistics.median(o):,.0f} | {statistics.median(m / t for m, t in zip(mine, o)):.2f}" for o in others.values()]
            print(f"| {name} | {batch} | {statistics.median(mine):,.0f} | " + " | ".join(cells) + " |", flush=True)
    for peer in peers.values():
        peer.stdin.close()
        peer.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
