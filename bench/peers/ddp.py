#!/usr/bin/env python3
"""Two ranks beside PyTorch's DistributedDataParallel (gloo), and beside one rank of two workers.

ddp.py [--command build/batchwise] [--mpirun 'mpirun -n 2 --bind-to none'] [--rounds 5] [--workloads conv64:32,mlp1024:256]

Each round measures, one after the other: one rank of two workers, two ranks of one worker, and two processes of PyTorch with one thread
each, whose halves of the batch DDP averages. All train the same model on random samples with Adam for one epoch after a warm-up
epoch; the figures are medians of samples per second. Needs torch and numpy.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SHAPES = {"conv64": (1000, (3, 64, 64)), "mlp1024": (4096, (1024,))}


def make_model(name):
    from torch import nn

    if name == "conv64":
        return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 31 * 31, 10))
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def train(rank, name, batch, port):
    """One of two processes: trains an epoch for each line of standard input, and the first prints samples per second."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    samples, shape = SHAPES[name]
    torch.manual_seed(1)
    x, y = torch.randn(samples, *shape), torch.randint(0, 10, (samples,))
    model = make_model(name)
    if name.startswith("conv"):
        x, model = x.to(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss = torch.nn.CrossEntropyLoss()
    for epoch, _ in enumerate(sys.stdin):
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))
        dist.barrier()
        begin = time.perf_counter()
        for first in range(0, samples - batch + 1, batch):  # whole batches only
            own = order[first + rank * batch // 2 : first + (rank + 1) * batch // 2]
            optimizer.zero_grad()
            loss(model(x[own]), y[own]).backward()
            optimizer.step()
        dist.barrier()
        if rank == 0:
            print(samples // batch * batch / (time.perf_counter() - begin), flush=True)
    dist.destroy_process_group()


class Peer:
    """Two processes of PyTorch, which sleep between epochs; the first epoch warms them up."""

    def __init__(self, name, batch, port):
        run = [sys.executable, __file__, "--train", f"{name}:{batch}:{port}", "--rank"]
        self.processes = [subprocess.Popen(run + [str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                          for rank in range(2)]
        self.epoch()

    def epoch(self):
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return float(self.processes[0].stdout.readline())

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def own(words, name, batch, workers):
    command = words + ["bench", "--workload", f"{name}:{batch}", "--workers", str(workers), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["samples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/batchwise")
    parser.add_argument("--mpirun", default="mpirun -n 2 --bind-to none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workloads", default="conv64:32,mlp1024:256")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train:
        name, batch, port = given.train.split(":")
        return train(given.rank, name, int(batch), int(port))
    print("medians of samples/s, and of the ratios of each round")
    for number, item in enumerate(given.workloads.split(",")):
        name, batch = item.split(":")
        rows = []
        peer = None if given.no_torch else Peer(name, int(batch), 29500 + number)
        for _ in range(given.rounds):
            row = [own([given.command], name, batch, 2), own(given.mpirun.split() + [given.command], name, batch, 1)]
            row.append(peer.epoch() if peer else float("nan"))
            rows.append(row)
        if peer:
            peer.close()
        workers, ranks, torch = (statistics.median(column) for column in zip(*rows))
        slower = statistics.median(row[0] / row[1] for row in rows)
        faster = statistics.median(row[1] / row[2] for row in rows)
        print(f"{item}: 1 rank of 2 workers {workers:,.0f}, 2 ranks of 1 {ranks:,.0f} ({slower:.2f} times its time), "
              f"PyTorch DDP {torch:,.0f} (2 ranks: {faster:.2f} times its speed)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
