#!/usr/bin/env python3
"""What Python adds: to a call of fit, to a step, and to a step with a callback in Python.

  PYTHONPATH=python/src BATCHWISE_LIBRARY=build/libbatchwise.so bench/python_overhead.py
"""
import ctypes, time

import numpy as np

import batchwise as bw
from batchwise import _native as n


def shortest(function, rounds):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


class Nothing(bw.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pass


def main():
    steps = 20_000
    x = np.random.default_rng(0).normal(size=(steps, 2)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    model = bw.Model("dense(1)", workers=1)
    model.compile("sgd", "mse")
    model.fit(x[:8], y[:8], verbose=0)

    # The same call below Python's words: a dataset that is there, options that are there, bw_fit.
    with model.context as context:
        native = bw.Dataset(x[:8], y[:8]).shuffle(0)
        handle = native.native(context)
        options = n.options(n.bw_fit_options)
        history = ctypes.c_void_p()

        def bare():
            context.call(n.lib.bw_fit, model.pointer, handle.pointer, ctypes.byref(options), ctypes.byref(history))
            n.lib.bw_history_free(history)

        below = shortest(bare, 300)
    above = shortest(lambda: model.fit(x[:8], y[:8], verbose=0), 300)
    print(f"a call of fit: {above * 1e6:.0f} us, of bw_fit alone {below * 1e6:.0f} us: Python adds {(above - below) * 1e6:.0f} us")

    one = min(model.fit(x, y, batch_size=1, verbose=0, shuffle=False).facts.seconds for _ in range(7)) / steps
    seen = min(model.fit(x, y, batch_size=1, verbose=0, shuffle=False, callbacks=[Nothing()]).facts.seconds for _ in range(7)) / steps
    print(f"a step: {one * 1e6:.2f} us; with a callback in Python {seen * 1e6:.2f} us, which adds {(seen - one) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
