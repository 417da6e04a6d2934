#!/usr/bin/env python3
"""Real nets beside TensorFlow (plain and XLA) and PyTorch (eager and compiled), each model at several batch sizes.

  nets.py --batchwise build/batchwise [--tf PYTHON] [--torch PYTHON] [--peers tf,xla,torch,compile] [--rounds 3]
          [--only lenet:32,autoencoder] [--keep FILE] [--group 3] [--compiling 'COMMAND' --timing 'COMMAND']
  nets.py --keep FILE --report

Every round times Batchwise and each peer one after another, since a machine is never quiet; the figure of a peer is the median over the
rounds of (Batchwise's samples/s) / (the peer's samples/s), and the last column is the least of them. Batchwise is a new process each time
(`batchwise bench --model M --shape S --batch B`); a peer stays in one process, warm, and repeats one batch in memory. All train with
Adam; PyTorch has images in channels_last and the fused Adam. --tf and --torch name the interpreters that have these libraries. Without
--only all models are timed at 1, 32 and 256.

--keep adds each result to a JSON file, which --report prints as a table, so that the list can be measured piece by piece.
--compiling and --timing are commands that hold the machine for as long as the command that is appended to them runs (such as a lock):
one around the peers' compilation, one around the measurement, of --group models and batches at a time.
"""
import argparse, contextlib, json, os, shlex, statistics, subprocess, sys, tempfile, time

from models import MODELS, classes_of, keras_model, kind_of, samples, torch_layout, torch_model, words_of

BATCHES = (1, 32, 256)
ENOUGH = 0.3  # seconds that a peer is timed for
# Models of which Batchwise takes this many samples an epoch, in place of the 1,024 that bench makes
SLOW = ("mlp-huge", "many-classes", "five", "all-conv", "vgg-small", "norm-wide", "VGG16", "ResNet50", "MobileNet", "MobileNetV2")
COUNTS = {"1": 48, "32": 256, "256": 512}


def tensorflow_step(name, batch, xla):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.keras.backend.clear_session()
    model = keras_model(tf.keras, name)
    measure = {"classes": tf.keras.losses.SparseCategoricalCrossentropy, "binary": tf.keras.losses.BinaryCrossentropy,
               "mse": tf.keras.losses.MeanSquaredError}[kind_of(name)]()
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    x, y = (tf.constant(a) for a in samples(name, model.output_shape[1:], batch))

    @tf.function(jit_compile=xla)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = measure(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value
    return lambda: step(x, y).numpy()


def torch_step(name, batch, compiled):
    import torch
    from torch import nn
    torch.set_num_threads(os.cpu_count())
    torch._dynamo.reset()
    if batch == 1 and "batchnorm" in MODELS[name][1] and len(MODELS[name][0]) == 1:
        return None  # PyTorch refuses one value for each channel
    model, kind = torch_model(torch, name), kind_of(name)
    x, y = (torch.tensor(a.astype("int64") if a.dtype.kind == "i" else a) for a in samples(name, model.size, batch))
    x, model = torch_layout(torch, name, x, model)
    measure = {"classes": nn.CrossEntropyLoss, "binary": nn.BCEWithLogitsLoss, "mse": nn.MSELoss}[kind]()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    run = torch.compile(model, dynamic=False) if compiled else model

    def step():
        optimizer.zero_grad()
        value = measure(run(x), y)
        value.backward()
        optimizer.step()
        return value.item()
    return step


def rate_of(step, batch):
    steps, begin, spent = 0, time.perf_counter(), 0
    while steps < 2 or spent < ENOUGH:
        step()
        steps, spent = steps + 1, time.perf_counter() - begin
    return batch * steps / spent


def serve(peer):
    """A peer's process. A line 'make NAME BATCH' compiles a model, 'time NAME BATCH' answers with samples/s, 'drop' forgets all models;
    0: the peer has no such model."""
    print("ready", flush=True)
    steps = {}
    for line in sys.stdin:
        word, *item = line.split()
        answer, key = 1, tuple(item)
        if word == "drop":
            steps.clear()
        elif word == "make":
            make = tensorflow_step if peer in ("tf", "xla") else torch_step
            steps[key] = make(item[0], int(item[1]), peer in ("xla", "compile"))
            for _ in range(3 if steps[key] else 0):
                steps[key]()
        elif steps[key]:
            steps[key]()
            answer = rate_of(steps[key], int(item[1]))
        else:
            answer = 0
        print(answer, flush=True)


def ask(peers, peer, *words):
    process = peers[peer]
    process.stdin.write(" ".join(words) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    return float(answer) if answer.strip() else sys.exit(f"{peer} failed at {' '.join(words)}")


def ours(command, name, batch, folder):
    shape, text = MODELS[name]
    words = [command, "bench", "--model", text, "--batch", batch, "--epochs", "1", "--warmup", "1", "--json", "--optimizer", "adam",
             "--loss", {"classes": "sparse_categorical_crossentropy", "binary": "binary_crossentropy", "mse": "mean_squared_error"}[kind_of(name)]]
    if words_of(name) or name in SLOW:
        import numpy
        path = os.path.join(folder, f"{name}-{batch}.npz")
        if not os.path.exists(path):
            x, y = samples(name, (classes_of(name),), COUNTS[batch])
            numpy.savez(path, x=x, y=y)
        words += ["--data", path]
    else:
        words += ["--shape", "x".join(map(str, shape))]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{name}:{batch}: {run.stderr.strip()}")
    return json.loads(run.stdout)


@contextlib.contextmanager
def holding(command):
    """The machine is held by a command that runs until its input ends."""
    if not command:
        yield
        return
    hold = subprocess.Popen([*shlex.split(command), "sh", "-c", "echo held; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    hold.stdout.readline()
    yield
    hold.stdin.close()
    hold.wait()


def measure(a, peers, group, folder):
    """Results of some models: all are compiled, then all are timed."""
    with holding(a.compiling):
        for name, batch in group:
            for peer in peers:
                ask(peers, peer, "make", name, batch)
    results = {}
    with holding(a.timing):
        for name, batch in group:
            results[f"{name}:{batch}"] = rounds = []
            for _ in range(a.rounds):
                one = ours(a.batchwise, name, batch, folder)
                rounds.append({"ours": one["samples_per_s"], "gflops": one["gflops"] or 0, "gflops_share": one.get("gflops_share") or 0,
                               "gb_share": one.get("gb_share") or 0,
                               **{peer: ask(peers, peer, "time", name, batch) for peer in peers}})
    for peer in peers:
        ask(peers, peer, "drop")
    return results


def row(item, rounds, peers):
    def middle(key):
        return statistics.median(r[key] for r in rounds)
    name, batch = item.split(":")
    ratios = [statistics.median(r["ours"] / r[p] for r in rounds) if p in rounds[0] and rounds[0][p] else None for p in peers]
    least = min((r for r in ratios if r), default=None)
    texts = ["-" if r is None else f"{r:.2f}" for r in ratios] + ["-" if least is None else f"**{least:.2f}**" if least < 1.5 else f"{least:.2f}"]
    shares = f"{100 * max(middle('gflops_share'), middle('gb_share')):.0f}"
    return "| " + " | ".join([name, batch, f"{middle('ours'):,.0f}", f"{middle('gflops'):.1f}", shares, *texts]) + " |"


def keep(path, results):
    kept = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
    kept.update(results)
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=1)
    os.replace(path + ".new", path)


def start(a, names):
    peers = {}
    for peer in names:
        python = a.tf if peer in ("tf", "xla") else a.torch
        peers[peer] = subprocess.Popen([python, __file__, "--serve", peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL)
        if peers[peer].stdout.readline().strip() != "ready":
            sys.exit(f"{peer} did not start: is it installed for {python}?")
    return peers


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--tf", default=sys.executable, help="the Python that has TensorFlow")
    p.add_argument("--torch", default=sys.executable, help="the Python that has PyTorch")
    p.add_argument("--peers", default="tf,xla,torch,compile")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=",".join(MODELS), help="models, or models with a batch: lenet,cifar:32")
    p.add_argument("--group", type=int, default=3, help="how many are compiled, and then timed, at a time")
    p.add_argument("--keep", help="a JSON file to which results are added")
    p.add_argument("--report", action="store_true", help="print the results that --keep names")
    p.add_argument("--compiling", help="a command that holds the machine while peers compile")
    p.add_argument("--timing", help="a command that holds the machine while a model is timed")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.serve)
    names = a.peers.split(",") if a.peers else []
    columns = ["model", "batch", "samples/s", "GFLOP/s", "% of limit", *names, "least"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    if a.report:
        for item, rounds in json.load(open(a.keep, encoding="utf-8")).items():
            print(row(item, rounds, names))
        return
    wanted = []
    for item in a.only.split(","):
        name, _, batch = item.partition(":")
        wanted += [(name, b) for b in ([batch] if batch else map(str, BATCHES))]
    peers = start(a, names)
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(wanted), a.group):
            results = measure(a, peers, wanted[first:first + a.group], folder)
            for item, rounds in results.items():
                print(row(item, rounds, names), flush=True)
            if a.keep:
                keep(a.keep, results)
    for process in peers.values():
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
