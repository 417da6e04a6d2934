"""What a training gives: Keras's dict of columns, and beside it facts, profile, noise and trace of the run."""

from __future__ import annotations

import ctypes

from . import _native as n
from ._context import Handle
from ._facts import Record, Table


class History(Table):
    """`history` is a dict of lists, one value for each epoch, and `epoch` their numbers, as in Keras."""

    def __init__(self, history=None, epoch=None, handle=None):
        self.history = history or {}
        self.epoch = list(epoch or [])
        self._handle = handle

    @classmethod
    def of(cls, context, pointer, initial_epoch=0):
        """Takes a native history."""
        handle = Handle(context, pointer, n.lib.bw_history_free)
        epochs = n.lib.bw_history_epochs(pointer)
        names = [n.lib.bw_history_column(pointer, i) for i in range(n.lib.bw_history_columns(pointer))]
        values = {name.decode(): [n.lib.bw_history_value(pointer, name, epoch) for epoch in range(epochs)] for name in names}
        return cls(values, range(initial_epoch, initial_epoch + epochs), handle)

    def _ask(self, function, *arguments):
        if self._handle is None:
            raise ValueError("this history was copied or loaded: only its columns are there")
        with self._handle.context:
            return function(self._handle.pointer, *arguments)

    @property
    def pointer(self):
        return self._ask(lambda pointer: pointer)

    @property
    def context(self):
        return self._handle.context

    @property
    def facts(self):
        """What the run took: updates, seconds, planned and measured bytes, tile, lanes, checkpoints."""
        return Record.of(self._ask(n.lib.bw_history_facts))

    @property
    def profile(self):
        """Where the time of the steps went."""
        from .profile import Profile

        return Profile(self)

    @property
    def noise(self):
        """The gradient noise scale, if `noise_every` asked for it: `raw`, `seen` and the points over training."""
        facts = Record.of(self._ask(n.lib.bw_history_noise))
        count = self._ask(n.lib.bw_history_noise_points)
        facts.points = [Record.of(self._ask(n.lib.bw_history_noise_point, i)) for i in range(count)]
        facts.by_variable = [Record.of(self._ask(n.lib.bw_history_noise_of, i)) for i in range(facts.variables)]
        return facts

    def save_trace(self, path):
        """Writes the trace of the steps that `trace_steps` asked for, as JSON for Perfetto and Chrome."""
        with self._handle.context as context:
            context.call(n.lib.bw_history_save_trace, self._handle.pointer, n.encoded(path))

    def events(self):
        """The calls of the traced steps: worker, part, begin and seconds."""
        event, found = n.bw_event(), []
        for i in range(self._ask(n.lib.bw_history_events)):
            with self._handle.context as context:
                context.call(n.lib.bw_history_event, self._handle.pointer, i, ctypes.byref(event))
            found.append(Record.of(event))
        return found

    @property
    def columns(self):
        return ["epoch", *self.history]

    @property
    def rows(self):
        return [(epoch + 1, *(values[i] for values in self.history.values())) for i, epoch in enumerate(self.epoch)]

    def __getitem__(self, column):
        return self.history[column]

    def __reduce__(self):
        return History, (self.history, self.epoch)
