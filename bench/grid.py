#!/usr/bin/env python3
"""tune against a full grid of batch sizes and learning rates, on 5,000 rows of MNIST, the digits, two tables that are made here, and others.

    bench/grid.py build/batchwise mnist_5k.csv.gz [--table NAME FILE MODEL EPOCHS]... [--tune-only FILE | --grid FILE] [--cells FILE] [--seeds 3] [--only NAME...]

The CSV file has a row of 784 pixels for each image, and its digit last; other tables have their class last, and are standardised. For each
problem every cell of the grid is trained with each seed, and the steps until the validation accuracy first reaches the target are found
from the history, between epochs by interpolation. The target is 98 percent of the best accuracy that any cell reaches with that seed,
which also decides which samples are for validation. Time is steps times the time of a step that tune measured for that
batch size, so that a busy machine disturbs only tune. The grid takes minutes; --tune-only writes tune's results to a file, for a
quiet moment, and --grid reads them from there. --cells keeps the runs of the grid in a file, for another tune on the same grid.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import tempfile

BATCHES = [4, 8, 16, 32, 64, 128, 256]
RATES = [0.0003, 0.001, 0.003, 0.01, 0.03]
SPLIT = 0.2


def write_tables(folder):
    """Two tables that a linear model does not solve: one of 8 numbers and two classes, one with words and four classes."""
    draw = random.Random(1)
    with open(folder + "/numbers.csv", "w") as out:
        out.write(",".join("x%d" % i for i in range(8)) + ",y\n")
        for _ in range(4000):
            x = [draw.gauss(0, 1) for _ in range(8)]
            y = x[0] * x[1] + math.sin(3 * x[2]) + 0.5 * x[3] > 0
            y = y if draw.random() > 0.03 else not y
            out.write(",".join("%.4f" % v for v in x) + ",%d\n" % y)
    with open(folder + "/words.csv", "w") as out:
        out.write("a,b,colour,kind,y\n")
        colours, kinds = ["red", "green", "blue"], ["p", "q", "r", "s"]
        for _ in range(6000):
            a, b, c, k = draw.uniform(-2, 2), draw.uniform(-2, 2), draw.randrange(3), draw.randrange(4)
            turned = a * math.cos(k) + b * math.sin(k)
            y = ("n" if turned > 0.3 * c else "s") + ("e" if a * b > 0 else "w")
            y = y if draw.random() > 0.03 else draw.choice(["ne", "nw", "se", "sw"])
            out.write("%.3f,%.3f,%s,%s,%s\n" % (a, b, colours[c], kinds[k], y))


def problems(given, folder):
    mnist = given.mnist
    tables = {name: (["--model", model, "--data", path, "--standardise"], int(epochs)) for name, path, model, epochs in given.table}
    here = os.path.dirname(os.path.abspath(__file__))
    made = {
        "mnist 5,000, dense": (["--model", "dense(128,relu) dense(10,softmax)", "--data", mnist, "--no-header", "--scale", "1/255"], 20),
        "mnist 5,000, conv": (["--model", "conv2d(16,3,relu) maxpool2d(2) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)",
                               "--data", mnist, "--no-header", "--scale", "1/255", "--shape", "28x28x1"], 10),
        "digits": (["--model", "flatten dense(64,relu) dense(10,softmax)", "--data", here + "/../data/digits.npz", "--scale", "1/16"], 40),
        "numbers": (["--model", "dense(64,relu) dense(64,relu) dense(1,sigmoid)", "--data", folder + "/numbers.csv"], 40),
        "words": (["--model", "dense(64,relu) dense(64,relu) dense(4,softmax)", "--data", folder + "/words.csv"], 40),
        **tables,
    }
    return {name: problem for name, problem in made.items() if not given.only or name in given.only}


def run(command, words):
    done = subprocess.run([command] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise SystemExit("%s: %s" % (" ".join(words), done.stderr.decode()))
    return json.loads(done.stdout)


def accuracies(command, options, epochs, batch, optimizer, seed):
    """The validation accuracy after each epoch, or an empty list if it diverges."""
    words = ["train"] + options + ["--batch", str(batch), "--optimizer", optimizer, "--epochs", str(epochs), "--seed", str(seed),
                                   "--validation-split", str(SPLIT), "--quiet", "--json"]
    done = subprocess.run([command] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        return [], 0
    result = json.loads(done.stdout)
    return result["history"]["val_accuracy"], result["steps"] / epochs


def steps_to(target, values, steps):
    before = 0
    for epoch, value in enumerate(values):
        if value >= target:
            return steps * (epoch + (target - before) / (value - before))
        before = value
    return math.inf


def mean_steps(targets, runs):
    return statistics.mean(steps_to(target, values, steps) for target, (values, steps) in zip(targets, runs)) if runs else math.inf


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("mnist")
    parser.add_argument("--tune-only")
    parser.add_argument("--grid")
    parser.add_argument("--cells")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--table", nargs=4, action="append", default=[], metavar=("NAME", "FILE", "MODEL", "EPOCHS"))
    parser.add_argument("--only", nargs="*", help="problems by name")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(folder)
        tuned = json.load(open(given.grid)) if given.grid else {}
        for name, (options, _) in problems(given, folder).items():
            if name not in tuned:
                tuned[name] = run(given.command, ["tune"] + options + ["--validation-split", str(SPLIT), "--budget", given.budget,
                                                                      "--largest", str(BATCHES[-1]), "--json"])
                if given.tune_only:
                    with open(given.tune_only, "w") as out:
                        json.dump(tuned, out)
        if given.tune_only:
            return
        print("| problem | target | best of the grid: batch, rate | time | tune: batch, rate | time | ratio |\n|---|---|---|---|---|---|---|")
        for name, (options, epochs) in problems(given, folder).items():
            report(given, name, options, epochs, tuned[name])


def report(given, name, options, epochs, tuned):
    seeds = range(1, given.seeds + 1)
    step = {row["batch"]: row["step_us"] * 1e-6 for row in tuned["curve"]}
    kept = json.load(open(given.cells)) if given.cells and os.path.exists(given.cells) else {}
    if name not in kept:
        kept[name] = [[b, r, [accuracies(given.command, options, epochs, b, "adam(lr=%g)" % r, seed) for seed in seeds]]
                      for b in BATCHES for r in RATES]
        if given.cells:
            with open(given.cells, "w") as out:
                json.dump(kept, out)
    cells = {(b, r): runs for b, r, runs in kept[name] if b in step}
    targets = [0.98 * max(max(runs[k][0], default=0) for runs in cells.values()) for k in range(given.seeds)]
    times = {cell: mean_steps(targets, runs) * step[cell[0]] for cell, runs in cells.items()}
    best = min(times, key=times.get)
    if tuned["decided"]:
        batch = tuned["recommended_batch"]
        runs = [accuracies(given.command, options, 2 * epochs, batch, tuned["recommended_optimizer"], seed) for seed in seeds]
        time = mean_steps(targets, runs) * step[batch]
        choice = "%d, %.3g" % (batch, tuned["recommended_lr"])
    else:
        time, choice = math.nan, "the data do not decide"
    print("| %s | %.3f | %d, %g | %.1f ms | %s | %.1f ms | %.2f |" %
          (name, statistics.mean(targets), best[0], best[1], 1e3 * times[best], choice, 1e3 * time, time / times[best]), flush=True)
    for b in sorted({cell[0] for cell in times}):
        print("<!-- %s, batch %d:%s ms -->" % (name, b, "".join(" %.4g" % (1e3 * times[b, r]) for r in RATES)), flush=True)


if __name__ == "__main__":
    main()
