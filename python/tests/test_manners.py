"""Threads, fork, Ctrl-C, and what is freed when."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


def _train(digits, seed=0):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, epochs=2, seed=seed, verbose=0)
    return model.hash


def test_threads_each_with_a_model(digits):
    expected = [_train(digits, seed) for seed in range(4)]
    found = [None] * 4

    def run(seed):
        found[seed] = _train(digits, seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_threads_share_a_model_one_after_another(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, verbose=0)
    expected, wrong = model.predict(digits[0]), []

    def run():
        for _ in range(5):
            if not np.array_equal(model.predict(digits[0]), expected):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_python_runs_while_the_library_trains(digits):
    model, ticks = bw.Model("flatten dense(256,relu) dense(256,relu) dense(10,softmax)"), []
    thread = threading.Thread(target=lambda: model.fit(*digits, epochs=1000000, verbose=0, callbacks=[lambda *_: len(ticks) > 20]))
    thread.start()
    while len(ticks) <= 20:
        ticks.append(time.monotonic())
        time.sleep(0.001)
    thread.join(60)
    assert not thread.is_alive()


class After(bw.Callback):
    """Does something while the library trains, once an epoch is over."""

    def __init__(self, function):
        self.function = function

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            threading.Timer(0.1, self.function).start()


def test_cancel_from_another_thread(digits):
    model = bw.Model(EXPRESSION)
    with pytest.raises(bw.Cancelled):
        model.fit(*digits, epochs=1_000_000, verbose=0, callbacks=[After(model.cancel)])
    assert np.isfinite(model.evaluate(*digits)[0])


def test_ctrl_c_stops_after_the_step_and_keeps_the_model(digits):
    model = bw.Model(EXPRESSION)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*digits, epochs=1_000_000, verbose=0, callbacks=[After(lambda: os.kill(os.getpid(), signal.SIGINT))])
    assert 0 < len(model.history.epoch) < 1_000_000
    assert model.evaluate(*digits, return_dict=True)["loss"] < model.history["loss"][0]
    model.fit(*digits, verbose=0)


def test_ctrl_c_in_the_middle_of_an_epoch():
    """Nothing in Python runs while the library takes its steps: the thread on the wake-up descriptor stops them."""
    data = bw.Dataset("synth:line?n=50000000")
    model = bw.Model("dense(1)", workers=1)
    model.compile("sgd(lr=0.0001)", "mse")
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, batch_size=1, epochs=1000, verbose=0)


def test_the_wakeup_descriptor_is_given_back(line):
    receiving, sending = os.pipe2(os.O_NONBLOCK)
    before = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    try:
        bw.Model("dense(1)").fit(*line, verbose=0)
        assert signal.set_wakeup_fd(before, warn_on_full_buffer=False) == sending
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(receiving)
        os.close(sending)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes(digits, method):
    expected = _train(digits)  # the parent has threads and contexts by now
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = [pool.apply_async(_train, (digits,)) for _ in range(2)]
        assert [one.get(timeout=120) for one in found] == [expected] * 2


def test_a_child_uses_its_copy_of_a_model(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, verbose=0)
    expected = model.predict(digits[0])
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if np.array_equal(model.predict(digits[0]), expected) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_models_are_freed(digits):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for i in range(30):
        model = bw.Model("flatten dense(512,relu) dense(512,relu) dense(10,softmax)")
        model.fit(*digits, batch_size=512, verbose=0)
        if i == 9:
            gc.collect()
            before = resident()
    del model
    gc.collect()
    assert resident() - before < 40e6  # a model takes 4 MB, and 20 more were made


def test_datasets_free_their_arrays():
    array = np.zeros((10, 2), np.float32)
    references = sys.getrefcount(array)
    model = bw.Model("dense(1)")
    model.fit(array, np.zeros(10), verbose=0)
    model.predict(array)
    gc.collect()
    assert sys.getrefcount(array) == references


def test_exceptions_are_pickled():
    with pytest.raises(bw.Error) as caught:
        bw.Model("densee(1)")
    other = pickle.loads(pickle.dumps(caught.value))
    assert type(other) is bw.InvalidArgument and str(other) == str(caught.value) and other.argument == "model"


@pytest.mark.parametrize("order", [("batchwise", "sklearn.neural_network"), ("sklearn.neural_network", "batchwise")])
def test_import_in_either_order(order):
    program = f"""
import {order[0]}, {order[1]}
import numpy as np, batchwise as bw
from sklearn.ensemble import HistGradientBoostingClassifier
x = np.random.default_rng(0).normal(size=(400, 5)); y = (x[:, 0] > 0).astype(int)
for _ in range(2):
    assert HistGradientBoostingClassifier(max_iter=5).fit(x, y).score(x, y) > 0.9
    model = bw.Model("dense(2,softmax)"); model.fit(x, y, epochs=30, verbose=0)
    assert model.evaluate(x, y, return_dict=True)["accuracy"] > 0.8
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
