"""Custom loops: batches, sums of gradients, updates, and checkpoints of such a loop."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _errors, _training, sources
from . import _native as n
from ._context import Handle


def iterate(context, dataset, epoch=0):
    """Gives the batches of an epoch. Each is valid until the next one is asked for."""
    with context:
        native = dataset.native(context)
        pointer = context.build(n.lib.bw_iterate, native.pointer, int(epoch))
    return Iterator(context, pointer, (dataset, native))


class Iterator(Handle):
    """The batches of one epoch. `position`, in samples, can be kept and set, for example with a checkpoint."""

    def __init__(self, context, pointer, keep):
        super().__init__(context, pointer, n.lib.bw_iterator_free, keep)

    def __iter__(self):
        return self

    def __next__(self):
        batch = ctypes.c_void_p()
        with self.context as context:
            status = n.lib.bw_next(self.pointer, ctypes.byref(batch))
            sources.reraise(self.keep[1].keep, status)
            if status == n.BW_OUT_OF_RANGE:
                n.lib.bw_message(context.pointer)
                raise StopIteration
            context.call(lambda: status)
        return Batch(self, batch.value)

    @property
    def position(self):
        return n.lib.bw_iterator_position(self.pointer)

    @position.setter
    def position(self, position):
        with self.context as context:
            context.call(n.lib.bw_iterator_seek, self.pointer, int(position))


class Batch:
    """Samples of one step. `x`, `y` and `w` are its values as float32; `numbers` says which samples they are."""

    def __init__(self, iterator, pointer):
        self.iterator, self.pointer = iterator, pointer

    def __len__(self):
        return n.lib.bw_batch_count(self.pointer)

    @property
    def numbers(self):
        pointer = n.lib.bw_batch_numbers(self.pointer)
        return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int64)), (len(self),)).copy()

    def values(self, name):
        """A field's values by its name: "x", "y", "w", "x_<input>"."""
        with self.iterator.context as context:
            fields = {field.name: field for field in sources.fields_of(self.iterator.keep[1].pointer)}
            if name not in fields:
                raise _errors.NotFound(f"the samples have no field {name}; there are {', '.join(fields)}")
            made = np.empty((len(self), *fields[name].shape), np.float32)
            context.call(n.lib.bw_batch_values, self.pointer, name.encode(), made.ctypes.data, made.size)
        return made

    def fields(self):
        """All fields by name."""
        return {field.name: self.values(field.name) for field in sources.fields_of(self.iterator.keep[1].pointer)}

    x = property(lambda self: self.values("x"))
    y = property(lambda self: self.values("y"))
    w = property(lambda self: self.values("w"))

    def select(self, indices):
        """A batch of some of the samples, by their indices in this one; valid until samples are selected again."""
        indices = np.ascontiguousarray(indices, np.int64)
        with self.iterator.context as context:
            pointer = context.build(n.lib.bw_batch_select, self.pointer, indices.ctypes.data, len(indices))
        return Batch(self.iterator, pointer)


class Gradients(Handle):
    """A sum of per-sample gradients over batches of any size; `apply` divides it once by the number of samples and updates."""

    def __init__(self, model, options):
        keep = [model]
        with model.context as context:
            made = _training.fit_options(context, keep, **options)
            pointer = context.build(n.lib.bw_gradients_new, model.pointer, ctypes.byref(made))
        super().__init__(model.context, pointer, n.lib.bw_gradients_free, keep)
        self.model = model

    def _call(self, function, *arguments):
        with self.context as context:
            context.call(function, self.pointer, *arguments)

    def add(self, batch):
        """Adds a batch and returns its mean loss."""
        loss = ctypes.c_double()
        self._call(n.lib.bw_gradients_add, batch.pointer, ctypes.byref(loss))
        return loss.value

    @property
    def samples(self):
        return n.lib.bw_gradients_samples(self.pointer)

    def clear(self):
        n.lib.bw_gradients_clear(self.pointer)

    def norm(self):
        """The norm of the mean gradient so far."""
        norm = ctypes.c_double()
        self._call(n.lib.bw_gradients_norm, ctypes.byref(norm))
        return norm.value

    def scale(self, factor):
        """Multiplies the gradient so far."""
        self._call(n.lib.bw_gradients_scale, float(factor))

    def get(self, variable):
        """The mean gradient of a variable, by its index as in `model.variables`."""
        values = np.empty(self.model.variables[variable].shape, np.float32)
        self._call(n.lib.bw_gradients_get, variable, values.ctypes.data, values.size)
        return values

    def set(self, variable, values):
        """Replaces the gradient of a variable."""
        values = np.ascontiguousarray(values, np.float32)
        self._call(n.lib.bw_gradients_set, variable, values.ctypes.data, values.size)

    def predict(self, batch, output=0):
        """An output for each sample of a batch, as in prediction."""
        values = np.empty((len(batch), *self.model.outputs[output].shape), np.float32)
        self._call(n.lib.bw_gradients_predict, batch.pointer, output, values.ctypes.data, values.size)
        return values

    def losses(self, batch):
        """Each sample's loss."""
        values = np.empty(len(batch), np.float32)
        self._call(n.lib.bw_gradients_losses, batch.pointer, values.ctypes.data, values.size)
        return values

    def apply(self):
        """Updates the model, and clears the sum."""
        with self.context as context:
            context.call(n.lib.bw_apply, self.model.pointer, self.pointer)


def _checkpoint_options(values, keep):
    given = {name: value for name, value in (values or {}).items()}
    for name, value in given.items():
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
            raise _errors.InvalidArgument(f"{name}: values of a checkpoint are contiguous NumPy arrays")
    native = (n.bw_checkpoint_value * max(len(given), 1))()
    for to, (name, value) in zip(native, given.items()):
        to.name, to.data, to.bytes = name.encode(), value.ctypes.data, value.nbytes
    return n.options(n.bw_checkpoint_options, keep=keep, values=native, value_count=len(given)), native


def checkpoint(model, folder, step, values, keep):
    options, _native = _checkpoint_options(values, keep)
    with model.context as context:
        context.call(n.lib.bw_checkpoint, model.pointer, n.encoded(folder), int(step), ctypes.byref(options))


def resume(model, folder, values):
    options, _native = _checkpoint_options(values, 0)
    step = ctypes.c_int64(-1)
    with model.context as context:
        context.call(n.lib.bw_resume, model.pointer, n.encoded(folder), ctypes.byref(step), ctypes.byref(options))
    return None if step.value < 0 else step.value
