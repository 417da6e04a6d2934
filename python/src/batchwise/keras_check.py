"""What a file does not say about a Keras model: functions and classes of the user's own that have the names of Keras's.

A .keras file has a loss, an activation or an optimizer by its name alone, so a function `relu` of the program's would be taken for
Keras's. They are refused here, by the layer's name, before anything is saved.
"""

from __future__ import annotations

import types
from typing import Any, Iterator

from . import _errors

_MODULES = ("keras", "numpy", "builtins", "collections")


def refuse_own_layers(model: Any) -> None:
    """Raises Unimplemented for a model that is not made of Keras's layers alone, or for a function that was given to one."""
    if not _is_keras(type(model)):
        raise _errors.Unimplemented(
            f"{type(model).__name__} is a class of your own, whose code is not seen here: expected a Sequential or Functional model"
        )
    _refuse_replaced("model", None, model, ("call", "train_step", "compute_loss", "test_step"))
    for layer in model._flatten_layers(include_self=False, recursive=True):
        _check(f"layer {layer.name}", layer.name, [layer, *_given(layer)])
        _refuse_replaced(f"layer {layer.name}", layer.name, layer, ("call",))


def refuse_own_training(model: Any) -> None:
    """Raises Unimplemented for a loss, a metric, an optimizer or a schedule that is not Keras's."""
    if getattr(model, "compiled", False):
        for name in ("optimizer", "loss", "metrics", "weighted_metrics"):
            _check(name, None, _compiled_with(model, name))
        for optimizer in _compiled_with(model, "optimizer"):
            _refuse_excluded(optimizer)
        for loss in losses_of(model):
            for name, value in untold(loss).items():
                if name != "delta":
                    raise _errors.Unimplemented(f"{type(loss).__name__}: {name}={value} is not supported")


def untold(loss: Any) -> dict:
    """What a loss or a metric was given, other than Keras's usual values, of which its own configuration tells nothing."""
    usual, told = {"axis": -1, "delta": 1.0, "from_sorted_ids": False}, loss.get_config()
    given = getattr(loss, "_fn_kwargs", {})
    return {name: value for name, value in given.items() if name not in told and value != usual.get(name)}


def losses_of(model: Any) -> list:
    """The objects of Keras's losses and metrics that a model was compiled with, which have options."""
    made = [one for name in ("loss", "metrics", "weighted_metrics") for one in _compiled_with(model, name)]
    return [one for one in made if hasattr(one, "get_config")]


def _compiled_with(model, name) -> list:
    """What was given to `compile`, without the names among it."""
    return list(_leaves(getattr(getattr(model, "_compile_config", None), "config", {}).get(name)))


def _refuse_excluded(optimizer):
    """Variables without weight decay, which an optimizer's configuration does not tell."""
    some = getattr(optimizer, "_exclude_from_weight_decay", None) or getattr(optimizer, "_exclude_from_weight_decay_pattern", None)
    if getattr(optimizer, "weight_decay", None) and some:
        raise _errors.Unimplemented(f"optimizer: {type(optimizer).__name__}: exclude_from_weight_decay is not supported")


def _check(what, layer, values):
    for value in values:
        for one in [value, *_functions(value)]:
            if not _is_keras(one if isinstance(one, (type, types.FunctionType)) else type(one)):
                raise _refusal(what, layer, one)


def _refuse_replaced(what, layer, value, methods):
    """Methods that the program has replaced in an object, as by `layer.call = mine`."""
    for name in methods:
        if name in vars(value):
            raise _refusal(what, layer, vars(value)[name])


def _refusal(what, layer, value):
    name = getattr(value, "__name__", None) or type(value).__name__
    kind = "a function" if isinstance(value, types.FunctionType) else "a class"
    made = _errors.Unimplemented(
        f"{what}: {name} is {kind} of your own, whose code is not seen here: expected one of Keras's, or a batchwise.Graph"
    )
    made.kind, made.layer = "model", layer
    return made


def _is_keras(kind) -> bool:
    return (getattr(kind, "__module__", None) or "builtins").partition(".")[0] in _MODULES


def _given(layer) -> Iterator[Any]:
    """What a layer was given, of which its configuration tells only the name."""
    for name in layer.get_config():
        value = getattr(layer, name, None)
        if callable(value) and not isinstance(value, types.MethodType):
            yield value


def _functions(value) -> Iterator[Any]:
    """The function within Keras's wrapper of a loss or a metric."""
    for name in ("fn", "_fn"):
        wrapped = getattr(value, name, None)
        if isinstance(wrapped, types.FunctionType):
            yield wrapped
    schedule = getattr(value, "_learning_rate", None)
    if callable(schedule):
        yield schedule


def _leaves(value) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, (str, int, float)):
        yield value
