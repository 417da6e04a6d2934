"""What is wrong with data, model or training."""

from __future__ import annotations

import ctypes
import html
from typing import Any

from . import _native as n
from ._context import Handle
from ._facts import Record, Table
from ._training import fit_options
from .history import History
from .model import Model, as_model


def doctor(
    model: Any,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    seconds: float = 2.0,
    validation_data: Any = None,
    **training: Any,
) -> Findings:
    """Looks for what is wrong: in the samples, in the model, and in some updates on trial, after which the model is as before.

    seconds: for training on trial; 0: only data and model are looked at. Further options as in `fit`, for how it would be trained.
    """
    model, keep = as_model(model, x), []
    with model.context as context:
        native = model._dataset(x, y, sample_weight).native(context)
        validation = None if validation_data is None else model._validation(validation_data)
        fit = fit_options(context, keep, validation=validation, **training)
        options = n.options(n.bw_doctor_options, seconds=float(seconds))
        options.training = ctypes.pointer(fit)
        pointer = ctypes.c_void_p()
        status = context.run(n.lib.bw_doctor, model.pointer, native.pointer, ctypes.byref(options), ctypes.byref(pointer))
        context.call(lambda: status)
        return Findings(Handle(context, pointer.value, n.lib.bw_findings_free))


def review(
    model: Model, x: Any, y: Any = None, sample_weight: Any = None, *, history: History | None = None, **training: Any
) -> Findings:
    """What a training that is over showed by itself: from its history (the model's last one unless it is given) and a few samples.
    The options are those that `fit` was given."""
    keep = []
    history = history or model.history
    if history is None:
        raise ValueError("review: the model was not trained yet")
    with model.context as context:
        native = model._dataset(x, y, sample_weight).native(context)
        fit = fit_options(context, keep, **training)
        pointer = ctypes.c_void_p()
        context.call(n.lib.bw_review, model.pointer, native.pointer, ctypes.byref(fit), history.pointer, ctypes.byref(pointer))
        return Findings(Handle(context, pointer.value, n.lib.bw_findings_free))


def finding_ids() -> list[str]:
    """The id of each kind of finding."""
    found: list[str] = []
    while (one := n.lib.bw_finding_id(len(found))) is not None:
        found.append(n.text(one))
    return found


class Findings(Table):
    """The findings, the most severe first: id, severity, evidence, reason, fix and code."""

    columns = ["severity", "id", "evidence", "reason", "fix"]

    def __init__(self, handle):
        self.findings, finding = [], n.bw_finding()
        while n.lib.bw_findings_at(handle.pointer, len(self.findings), ctypes.byref(finding)):
            one = Record.of(finding)
            one.severity = n.text(n.lib.bw_severity_name(finding.severity))
            self.findings.append(one)
        self.rows = [tuple(one[name] for name in self.columns) for one in self.findings]

    def __iter__(self):
        return iter(self.findings)

    def __getitem__(self, index):
        return self.findings[index]

    def __repr__(self):
        if not self.findings:
            return "Nothing was found."
        return "\n\n".join(f"{one.severity}: {one.id}\n  {one.evidence}\n  {one.reason}\n  Fix: {one.fix}" for one in self.findings)

    def _repr_html_(self):
        if not self.findings:
            return "<p>Nothing was found.</p>"
        colours = {"error": "#b3261e", "warning": "#b26a00", "note": "#3b6ea5"}
        parts = []
        for one in self.findings:
            evidence, reason, fix = (html.escape(text or "") for text in (one.evidence, one.reason, one.fix))
            parts.append(
                f'<div style="border-left:4px solid {colours[one.severity]};padding-left:8px;margin:8px 0">'
                f"<b>{one.severity}: {html.escape(one.id)}</b><br>{evidence}<br>{reason}<br><i>Fix:</i> {fix}</div>"
            )
        return "".join(parts)
