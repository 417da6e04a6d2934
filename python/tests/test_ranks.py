"""Ranks: threads of one process, and processes that mpirun starts, train one model with the bits of one."""

import copy
import os
import shutil
import subprocess
import sys
import threading

import pytest

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


def fit(digits, **settings):
    model = bw.Model(EXPRESSION, workers=1, **settings)
    model.fit(*digits, batch_size=64, epochs=2, lanes=4, seed=1, verbose=0)
    return model


def test_threads(digits):
    alone = fit(digits).hash
    group, found = bw.Ranks(2), {}
    assert len(group) == 2 and repr(group.at(1)) == "Ranks(rank 1 of 2)"

    def run(rank):
        found[rank] = fit(digits, ranks=group.at(rank))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [found[rank].hash for rank in range(2)] == [alone, alone]
    group.close()
    assert copy.deepcopy(found[0]).hash == alone  # a copy is in no group
    found[1].fit(*digits, verbose=0)  # and after it a model trains alone
    with pytest.raises(IndexError):
        bw.Ranks(2).at(2)
    with pytest.raises(ValueError, match="1 to 64"):
        bw.Ranks(65)


PROGRAM = """
import sys
import numpy as np, batchwise as bw
with np.load(sys.argv[1]) as file:
    x, y = (file["x"] / 16).astype("f4"), file["y"].astype("i8")
with bw.Ranks.mpi() as ranks:
    model = bw.Model("flatten dense(16,relu) dense(10,softmax)", ranks=ranks)
    model.fit(x, y, batch_size=64, epochs=2, lanes=4, seed=1, verbose=0)
    if len(sys.argv) > 2 and ranks.rank == 1:
        raise KeyError("mine")
    print(f" {len(ranks)} {model.hash} ", flush=True)  # blanks: the launcher may put the ends of lines elsewhere
"""


def test_without_a_launcher(digits, digits_file):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM, digits_file], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["1", str(fit(digits).hash)]


LIBRARY = os.environ.get("BATCHWISE_TEST_MPI", "")


@pytest.mark.skipif(not os.path.exists(LIBRARY) or not shutil.which("mpirun.openmpi"), reason="needs Open MPI and its library")
@pytest.mark.parametrize("fails", [False, True])
def test_processes(digits, digits_file, fails):
    command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, "-c", PROGRAM, digits_file]
    environment = {**os.environ, "BATCHWISE_MPI": LIBRARY}
    done = subprocess.run([*command, *(["fail"] if fails else [])], capture_output=True, text=True, env=environment, timeout=240)
    if fails:
        assert done.returncode != 0 and "rank 1 failed: KeyError: 'mine'" in done.stderr, done.stderr
    else:
        assert done.stdout.split() == ["2", str(fit(digits).hash)] * 2, done.stderr
