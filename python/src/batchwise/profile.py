"""Where each microsecond of a step goes, what the machine could do, and how long a step would take on another one."""

from __future__ import annotations

import copy
import ctypes
import time
from typing import Any

from . import _native as n
from ._context import Context
from ._facts import Record, Table
from .callbacks import Callback
from .model import as_model


def profile(
    model: Any, x: Any, y: Any = None, sample_weight: Any = None, *, seconds: float = 2.0, batch_size: int = 32, **training: Any
) -> Profile:
    """Trains a copy of the model for about some seconds, and tells where the time went. Options as in `fit`."""
    trial = copy.deepcopy(as_model(model, x))
    history = trial.fit(
        x, y, batch_size, 10_000, 0, [_Clock(seconds)], sample_weight=sample_weight, **{"seed": 0, **training}
    )  # fmt: skip
    return history.profile


class _Clock(Callback):
    """Ends a training after some seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_begin(self, logs=None):
        self.end, self.now = time.monotonic() + self.seconds, time.monotonic

    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training = self.now() > self.end


class Profile(Table):
    """A row for each part of a mean step, in seconds of all workers together. `facts` has the step as a whole."""

    columns = ["kind", "name", "op", "pass", "seconds", "share", "calls", "flops", "bytes"]

    def __init__(self, history):
        self._history = history
        self.facts = Record.of(history._ask(n.lib.bw_history_profile))
        part, self.parts = n.bw_part(), []
        with history.context as context:
            for i in range(self.facts.parts):
                context.call(n.lib.bw_history_part, history.pointer, i, ctypes.byref(part))
                one = Record.of(part)
                one.kind = n.text(n.lib.bw_part_kind_name(part.kind))
                one.by_worker = [n.lib.bw_history_part_seconds(history.pointer, i, w) for w in range(self.facts.workers)]
                self.parts.append(one)
        whole = self.facts.step_seconds * max(self.facts.workers, 1) or 1.0
        self.rows = [
            (one.kind, one.name, one.op, one["pass"], one.seconds, one.seconds / whole, one.calls, one.flops, one.bytes)
            for one in self.parts
        ]
        if self.facts.parts:
            self.caption = (
                f"a step takes {self.facts.step_seconds * 1e6:.4g} us; {self.facts.timed_steps} of {self.facts.steps} were timed"
            )
        else:
            self.caption = "no step was timed, since there was only one"

    def predict(self, *, cores=0, compute=1.0, bandwidth=1.0, data=1.0):
        """The seconds of a step on other hardware: so many cores, and so many times as fast at computing, memory and reading
        samples. With no change it is what was measured, by what bounds it."""
        hardware = n.options(n.bw_hardware, cores=cores, compute=compute, bandwidth=bandwidth, data=data)
        limits, prediction = n.bw_machine(), n.bw_prediction()
        with self._history.context as context:
            context.call(n.lib.bw_machine_limits, context.pointer, ctypes.byref(limits))
            context.call(
                n.lib.bw_history_predict,
                self._history.pointer,
                ctypes.byref(limits),
                ctypes.byref(hardware),
                ctypes.byref(prediction),
            )
        return Record.of(prediction)


def machine() -> Record:
    """What this machine can do at best: operations and bytes a second, caches. Measured once, in less than a second, and kept."""
    limits = n.bw_machine()
    with Context() as context:
        context.call(n.lib.bw_machine_limits, context.pointer, ctypes.byref(limits))
    return Record.of(limits)
