"""Memory before running: every byte that training would take, for one batch size or several."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _native as n
from ._context import Handle
from ._facts import Record, Table, as_bytes
from .model import as_model

_ITEMS = [n.text(n.lib.bw_plan_item_name(item)) for item in range(n.BW_PLAN_ITEMS)]


def plan(model: Any, x: Any = None, y: Any = None, batch_size: Any = 32, **options: Any) -> Plan:
    """Computes what `fit` would take, without training or allocating.

    model: a Model, an expression, a file or a Keras model. Without samples it must know its input: "input(28,28,1) ...".
    batch_size: a number or a list of them. Options: memory (budget in bytes), tile, lanes, accumulate, epochs, validation, spill.
    A budget that is too small raises ResourceExhausted, with the smallest one that would do.
    """
    model = as_model(model, x)
    sizes = [batch_size] if isinstance(batch_size, int) else list(batch_size)
    given = {name: n.encoded(value) if name == "spill" else value for name, value in options.items()}
    with model.context as context:
        dataset = None if x is None else model._dataset(x, y)
        native = None if x is None else dataset.native(context)
        made = n.options(n.bw_plan_options, **given)
        plans = []
        for size in sizes:
            pointer = context.build(n.lib.bw_plan_make, model.pointer, native and native.pointer, int(size), ctypes.byref(made))
            handle = Handle(context, pointer, n.lib.bw_plan_free)
            plans.append(BatchPlan(handle))
    return Plan(plans)


class BatchPlan(Table):
    """The plan of one batch size: `facts`, the bytes by item (`items`), and a row for each layer."""

    columns = ["layer", "output", "parameter bytes", "gradients", "activations", "workspace", "whole batch"]

    def __init__(self, handle):
        facts = n.lib.bw_plan_facts(handle.pointer)
        self.facts = Record.of(facts)
        self.items = dict(zip(_ITEMS, self.facts.items))
        self.facts.items = self.items
        self.reason = n.text(n.lib.bw_plan_reason(handle.pointer))
        layers = [Record.of(n.lib.bw_plan_layer(handle.pointer, i)) for i in range(n.lib.bw_plan_layers(handle.pointer))]
        self.layers = layers
        self.rows = [
            (one.name, one.shape, one.parameters, one.gradients, one.activations, one.workspace, one.whole_batch) for one in layers
        ]
        self.caption = f"batch {self.facts.batch}: {as_bytes(self.facts.peak_bytes)} at most; {self.reason}"


class Plan(Table):
    """A row for each batch size; `plans` has the details, with their layers."""

    columns = ["batch", "tile", "lanes", "workers", "peak_bytes", "whole_batch_bytes", "budget", "segments", "spill_bytes"]

    def __init__(self, plans):
        self.plans = plans
        self.rows = [tuple(getattr(one.facts, name) for name in self.columns) for one in plans]
        self.caption = "Memory; whole_batch_bytes is what a system needs that holds the whole batch"

    def __getitem__(self, index):
        return self.plans[index]

    @property
    def peak_bytes(self):
        """The largest of all."""
        return max(one.facts.peak_bytes for one in self.plans)
