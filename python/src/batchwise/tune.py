"""A batch size and the learning rate that goes with it, measured."""

from __future__ import annotations

import ctypes
import html
import math
from typing import Any

from . import _native as n
from ._context import Handle
from ._facts import Record, Table, html_table
from ._training import fit_options
from .model import as_model


def tune(
    model: Any,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    seconds: float = 15.0,
    reference: int = 32,
    largest: int = 4096,
    keep_rate: bool = False,
    tiles: bool = False,
    confirm: float = 0.0,
    validation_data: Any = None,
    epochs: int = 10,
    **training: Any,
) -> Tuning:
    """Finds a batch size and its learning rate by training for a while; afterwards the model is as before, bit for bit.

    seconds: how long to measure. reference: the batch size to which the optimizer's rate belongs. largest: the largest one that is
    tried. keep_rate: the rate is right for the reference. tiles: also measure tiles. confirm: seconds of training for each
    candidate. Further options as in `fit`, for how the model will be trained. `tuning.apply()` sets the rate in the model.
    """
    model, keep = as_model(model, x), []
    with model.context as context:
        native = model._dataset(x, y, sample_weight).native(context)
        validation = None if validation_data is None else model._validation(validation_data)
        fit = fit_options(context, keep, epochs=epochs, validation=validation, **training)
        options = n.options(
            n.bw_tune_options,
            seconds=float(seconds),
            reference=reference,
            largest=largest,
            keep_rate=keep_rate,
            tiles=tiles,
            confirm=float(confirm),
        )
        options.fit = ctypes.pointer(fit)
        pointer = ctypes.c_void_p()
        status = context.run(n.lib.bw_tune, model.pointer, native.pointer, ctypes.byref(options), ctypes.byref(pointer))
        context.call(lambda: status)
        return Tuning(model, Handle(context, pointer.value, n.lib.bw_tuning_free))


class Tuning(Table):
    """What was measured: a row for each batch size. `decided` tells whether there is a recommendation, and `batch`, `rate`,
    `optimizer` and `reason` are it."""

    columns = [
        "batch",
        "samples_per_s",
        "step_seconds",
        "peak_bytes",
        "rate",
        "steps",
        "samples",
        "seconds",
        "seconds_low",
        "seconds_high",
    ]

    def __init__(self, model, handle):
        pointer = handle.pointer
        self._model, self._handle = model, handle
        self.facts = facts = Record.of(n.lib.bw_tuning_facts(pointer))
        self.decided, self.batch, self.rate, self.optimizer = facts.decided, facts.batch, facts.rate, facts.optimizer
        self.reason, self.knee = facts.reason, facts.knee
        self.sizes = [Record.of(n.lib.bw_tuning_row(pointer, i)) for i in range(facts.rows)]
        self.rates = [Record.of(n.lib.bw_tuning_rate(pointer, i)) for i in range(facts.rates)]
        self.points = [Record.of(n.lib.bw_tuning_point(pointer, i)) for i in range(facts.points)]
        self.tiles = [Record.of(n.lib.bw_tuning_tile(pointer, i)) for i in range(facts.tiles)]
        self.branches = []
        for i in range(facts.branches):
            branch = Record.of(n.lib.bw_tuning_branch(pointer, i))
            branch.points = [Record.of(n.lib.bw_tuning_branch_point(pointer, i, k)) for k in range(branch.points)]
            self.branches.append(branch)
        self.rows = [
            (
                one.batch,
                one.samples_per_s,
                one.step_seconds.value,
                one.peak_bytes,
                one.rate,
                one.steps.value,
                one.samples.value,
                one.seconds.value,
                one.seconds.low,
                one.seconds.high,
            )
            for one in self.sizes
        ]
        self.caption = self.reason or ""

    def apply(self, model=None):
        """Sets the learning rate and the optimizer's averages as recommended."""
        model = model or self._model
        with model.context as context:
            context.call(n.lib.bw_tuning_apply, self._handle.pointer, model.pointer)

    def plot(self):
        """The predicted time to the target by batch size, with its intervals, as SVG; empty if nothing could be predicted."""
        points = [one for one in self.sizes if math.isfinite(one.seconds.value) and one.seconds.value > 0]
        if len(points) < 2:
            return ""
        width, height, left, bottom = 480, 220, 60, 30
        x0, x1 = math.log(points[0].batch), math.log(points[-1].batch)
        ends = [
            end
            for one in points
            for end in (one.seconds.low, one.seconds.value, one.seconds.high)
            if math.isfinite(end) and end > 0
        ]
        y0, y1 = math.log(min(ends)), math.log(max(ends))

        def place(batch, seconds):
            x = left + (math.log(batch) - x0) / ((x1 - x0) or 1) * (width - left - 20)
            y = height - bottom - (math.log(seconds) - y0) / ((y1 - y0) or 1) * (height - bottom - 20)
            return f"{x:.1f}", f"{y:.1f}"

        parts = []
        for one in points:
            x, y = place(one.batch, one.seconds.value)
            if math.isfinite(one.seconds.high) and one.seconds.low > 0:
                parts.append(
                    f'<line x1="{x}" x2="{x}" y1="{place(one.batch, one.seconds.low)[1]}" '
                    f'y2="{place(one.batch, one.seconds.high)[1]}" stroke="#888"/>'
                )
            chosen = self.decided and one.batch == self.batch
            parts.append(f'<circle cx="{x}" cy="{y}" r="{5 if chosen else 3}" fill="{"#b3261e" if chosen else "#3b6ea5"}"/>')
            parts.append(f'<text x="{x}" y="{height - 10}" font-size="10" text-anchor="middle">{one.batch}</text>')
        for end in (min(ends), max(ends)):
            parts.append(f'<text x="4" y="{place(points[0].batch, end)[1]}" font-size="10">{end:.3g} s</text>')
        line = " ".join(",".join(place(one.batch, one.seconds.value)) for one in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#3b6ea5"/>')
        title = "<title>Predicted seconds to the target by batch size</title>"
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{title}{"".join(parts)}</svg>'

    def _repr_html_(self):
        return f"<p>{html.escape(self.caption)}</p>{self.plot()}{html_table(self.columns, self.rows)}"
