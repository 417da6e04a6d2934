#!/usr/bin/env python3
"""bench/compare.py BEFORE AFTER [--rounds N] [--workload W,...] [--epochs N]: two builds of the command, in turn in every round.

Machines change their speed for minutes at a time, so that a figure of one run says little beside that of another. Here each
round times both builds in turn, the order alternating, and what is printed is the median of the rounds' ratios (time per
step after / before; above 1 is slower), with the quartiles that tell how far to trust it."""
import argparse
import json
import statistics
import subprocess

WORKLOADS = ("linear2:16,logistic10:32,range:32,mlp100:32,mlp100:10000,mlp1024:32,mlp1024:256,"
             "conv28:1,conv28:16,conv28:128,conv64:32,conv128:128,conv128half:16")


def step_us(command, workload, epochs):
    """Time of a step in microseconds, in a process of its own."""
    out = subprocess.run([command, "bench", "--workload", workload, "--warmup", "1", "--epochs", str(epochs), "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["step_us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workload", default=WORKLOADS)
    parser.add_argument("--epochs", type=int, default=200, help="of the smallest workloads")
    options = parser.parse_args()
    print(f"{'workload':<16}{'before us':>12}{'after us':>12}{'ratio':>8}{'quartiles':>16}")
    for workload in options.workload.split(","):
        small = workload.split(":")[0] in ("linear2", "logistic10", "range")
        before, after = [], []
        for i in range(options.rounds):
            pair = [(options.before, before), (options.after, after)]
            for command, times in pair if i % 2 == 0 else reversed(pair):
                times.append(step_us(command, workload, options.epochs if small else 1))
        ratios = [a / b for a, b in zip(after, before)]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        print(f"{workload:<16}{statistics.median(before):>12.2f}{statistics.median(after):>12.2f}{middle:>8.3f}"
              f"{low:>8.3f}{high:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
