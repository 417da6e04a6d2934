"""Models by calls: a graph of nodes, each one value per sample, for what an expression cannot say.

    graph = bw.Graph()
    a, b = graph.input((8,), "a"), graph.input((3,), "b")
    joined = graph.merge("concat", [a.layer("dense(16,relu)"), b])
    graph.output(joined.layer("dense(1)"), "price")
    model = graph.model()

Nodes have Python's arithmetic (+ - * / ** @, abs), reductions and slices, from which losses are made: `graph.add_loss`.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable

import numpy as np

from . import _errors
from . import _native as n
from .model import Model

_DTYPES = {"float32": n.BW_F32, "int32": n.BW_I32}


class Graph:
    """An empty model, to be filled with nodes. Settings as in `Model`."""

    def __init__(self, **settings: Any) -> None:
        self._model = Model._empty(settings)

    @property
    def context(self):
        return self._model.context

    def input(self, shape: tuple[int, ...], name: str = "x", dtype: str = "float32") -> Node:
        """An input of this shape (of one sample); "int32" for the indices of an embedding."""
        return self._field(n.lib.bw_input, shape, name, dtype)

    def target(self, shape: tuple[int, ...], name: str = "y", dtype: str = "float32") -> Node:
        """The targets, for a loss of one's own."""
        return self._field(n.lib.bw_target, shape, name, dtype)

    def _field(self, function, shape, name, dtype):
        shape = np.array(shape, np.int64)
        pointer = self._model.pointer
        with self.context as context:
            return Node(self, context.build(function, pointer, name.encode(), _DTYPES[str(dtype)], len(shape), shape.ctypes.data))

    def merge(self, layer: str, nodes: list[Node]) -> Node:
        """A layer with several inputs: "add", "concat(axis=-1)", "dot(axes=1)"."""
        with self.context as context:
            return Node(self, context.build(n.lib.bw_merge, layer.encode(), _pointers(nodes), len(nodes)))

    def output(self, node: Node, name: str = "output") -> None:
        """Makes a node an output, which losses compare with the targets y, or y_<name> if there are several."""
        with self.context as context:
            context.call(n.lib.bw_output, node.pointer, name.encode())

    def add_loss(self, node: Node, name: str = "loss") -> None:
        """Adds a node with one number per sample to the loss."""
        with self.context as context:
            context.call(n.lib.bw_add_loss, node.pointer, name.encode())

    def custom(
        self, name: str, nodes: list[Node], forward: Callable, backward: Callable | None = None, shape: Callable | None = None
    ) -> Node:
        """An operator in Python. `forward(*inputs)` returns the output for arrays of several samples; `backward(inputs, output,
        gradient)` a gradient for each input, or None; `shape(*shapes)` the shape of one output sample, which otherwise is that of
        the first input. The functions run on workers, which take Python's lock in turns."""
        operator = _Operator(self._model, name, forward, backward, shape)
        self._model._kept.append(operator)
        with self.context as context:
            pointer = n.lib.bw_custom(ctypes.byref(operator.native), _pointers(nodes), len(nodes))
            operator.reraise()
            return Node(self, context.build(lambda: pointer))

    def model(self) -> Model:
        """The model of all these nodes."""
        return self._model


def _pointers(nodes):
    return (ctypes.c_void_p * len(nodes))(*(one.pointer for one in nodes))


class Node:
    """One value per sample."""

    def __init__(self, graph, pointer):
        self.graph, self.pointer = graph, pointer

    def _apply(self, function, *arguments):
        with self.graph.context as context:
            return Node(self.graph, context.build(function, self.pointer, *arguments))

    def layer(self, text: str) -> Node:
        """Applies a layer as an expression writes it: "conv2d(16,3,padding=same,activation=relu)"."""
        return self._apply(n.lib.bw_layer, text.encode())

    def again(self, node: Node) -> Node:
        """Applies the layer that made this node to another one, with the same variables."""
        return self._apply(n.lib.bw_layer_again, node.pointer)

    def part(self, number: int) -> Node:
        """What the layer that made this node gives beside it, from 1: the states of "lstm(64,return_state=true)"."""
        return self._apply(n.lib.bw_layer_part, int(number))

    def _arithmetic(self, other, function, scale, offset):
        if isinstance(other, Node):
            return self._apply(function, other.pointer)
        return self._apply(n.lib.bw_affine, float(scale(other)), float(offset(other)))

    def __add__(self, other):
        return self._arithmetic(other, n.lib.bw_add, lambda _: 1, lambda number: number)

    __radd__ = __add__

    def __sub__(self, other):
        return self._arithmetic(other, n.lib.bw_subtract, lambda _: 1, lambda number: -number)

    def __rsub__(self, number):
        return self._apply(n.lib.bw_affine, -1.0, float(number))

    def __mul__(self, other):
        return self._arithmetic(other, n.lib.bw_multiply, lambda number: number, lambda _: 0)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._arithmetic(other, n.lib.bw_divide, lambda number: 1 / number, lambda _: 0)

    def __neg__(self):
        return self._apply(n.lib.bw_negate)

    def __abs__(self):
        return self._apply(n.lib.bw_abs)

    def __pow__(self, exponent):
        return self.square() if exponent == 2 else self._apply(n.lib.bw_power, float(exponent))

    def __matmul__(self, other):
        return self._apply(n.lib.bw_matmul, other.pointer)

    def maximum(self, other: Node) -> Node:
        return self._apply(n.lib.bw_maximum, other.pointer)

    def minimum(self, other: Node) -> Node:
        return self._apply(n.lib.bw_minimum, other.pointer)

    def square(self) -> Node:
        return self._apply(n.lib.bw_square)

    def sqrt(self) -> Node:
        return self._apply(n.lib.bw_sqrt)

    def exp(self) -> Node:
        return self._apply(n.lib.bw_exp)

    def log(self) -> Node:
        return self._apply(n.lib.bw_log)

    def activation(self, name: str) -> Node:
        return self._apply(n.lib.bw_activation, name.encode())

    def sum(self, axis: int | None = None) -> Node:
        """Over one axis of the sample, or over all of them."""
        return self._apply(n.lib.bw_sum, n.BW_ALL if axis is None else axis)

    def mean(self, axis: int | None = None) -> Node:
        return self._apply(n.lib.bw_mean, n.BW_ALL if axis is None else axis)

    def max(self, axis: int | None = None) -> Node:
        return self._apply(n.lib.bw_max, n.BW_ALL if axis is None else axis)

    def slice(self, axis: int, first: int, count: int) -> Node:
        return self._apply(n.lib.bw_slice, axis, first, count)

    def reshape(self, *shape: int) -> Node:
        shape = np.array(shape, np.int64)
        return self._apply(n.lib.bw_reshape, len(shape), shape.ctypes.data)


class _Operator:
    """A custom operator's functions, with the shapes that the library asked for when the node was made."""

    def __init__(self, model, name, forward, backward, shape):
        self.exception, self.shapes, self.output = None, None, None
        members = dict(n.bw_operator._fields_)

        def guarded(function, failed):
            def run(*arguments):
                try:
                    return function(*arguments)
                except BaseException as exception:
                    self.exception = self.exception or exception
                    return failed

            return run

        def shape_of(_user, count, ndims, shapes, made):
            self.shapes = [_integers(shapes[i], ndims[i]) for i in range(count)]
            self.output = tuple(shape(*self.shapes)) if shape else self.shapes[0]
            for axis, extent in enumerate(self.output):
                made[axis] = extent
            return len(self.output)

        def run_forward(_user, samples, source, target):
            value = np.asarray(forward(*self._inputs(samples, source)), np.float32)
            _floats(ctypes.addressof(target.contents), (samples, *self.output))[...] = value.reshape(samples, *self.output)
            return True

        def run_backward(_user, samples, source, made, gradient, targets):
            whole = (samples, *self.output)
            output = _floats(ctypes.addressof(made.contents), whole) if made else None
            found = backward(self._inputs(samples, source), output, _floats(ctypes.addressof(gradient.contents), whole))
            if not isinstance(found, (list, tuple)):
                found = [found]
            for i, one in enumerate(found):
                if targets[i]:
                    _floats(targets[i], (samples, *self.shapes[i]))[...] = 0 if one is None else one
            return True

        self.native = n.bw_operator(size=ctypes.sizeof(n.bw_operator), name=name.encode())
        self.native.shape = members["shape"](guarded(shape_of, -1))
        self.native.forward = members["forward"](guarded(run_forward, False))
        if backward:
            self.native.backward = members["backward"](guarded(run_backward, False))

    def _inputs(self, samples, source):
        return [_floats(source[i], (samples, *shape)) for i, shape in enumerate(self.shapes)]

    def reraise(self):
        exception, self.exception = self.exception, None
        if exception is not None:
            raise exception


def _integers(pointer, count):
    return tuple((ctypes.c_int64 * count).from_address(pointer)) if count else ()


def _floats(pointer, shape):
    count = int(np.prod(shape, dtype=np.int64))
    if not pointer:
        raise _errors.Internal("an operator's array is missing")
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(pointer)).reshape(shape)
