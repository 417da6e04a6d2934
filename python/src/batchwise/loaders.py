"""Batches that another library makes: tf.data.Dataset, PyTorch's DataLoader, Keras's PyDataset, generators.

A loader is asked for its batches in their order, again in every epoch, and its samples are handed on as they are needed. No more of
them are held than the batches that are being trained on. The batch size is the loader's own, or any other that `fit` is given. A
loader that cannot tell how many samples it has, and cannot be asked again (a generator), is a stream: its samples are kept in the
first epoch for the later ones.
"""

import ctypes
import inspect
import itertools
import sys
import threading

import numpy as np

from . import _errors, arrays
from . import _native as n
from .sources import Failure, Field, GeneratorSource, native_fields


# What the library prefetches at most.
_SAMPLES_AHEAD, _BYTES_AHEAD = 512, 32 << 20
# Steps of tf.data that have as many batches as what is below them, each with as many samples.
_SAME_COUNT = {"PrefetchDataset", "OptionsDataset", "CacheDataset", "ShuffleDataset"}


def _begun(loader):
    """iter(loader), on a thread that Python has made. Those of the library are foreign to it, and a process that is forked there, as a
    DataLoader's workers are when a pass begins, ends with a failure (CPython 3.11: threading._shutdown), which PyTorch then raises
    somewhere in the program."""
    here = threading.get_ident()
    if any(one.ident == here and not isinstance(one, threading._DummyThread) for one in threading.enumerate()):
        return iter(loader)
    made = []

    def begin():
        try:
            made.append(iter(loader))
        except BaseException as exception:
            made.append(exception)

    thread = threading.Thread(target=begin, name="batchwise-loader")
    thread.start()
    thread.join()
    if isinstance(made[0], BaseException):
        raise made[0]
    return made[0]


def _class(module, name):
    """A class of a library, if the program has imported that."""
    found = sys.modules.get(module)
    return getattr(found, name, None) if found is not None else None


def _isinstance(value, module, name):
    kind = _class(module, name)
    return kind is not None and isinstance(value, kind)


def is_loader(value):
    """Whether a value gives batches one after another, rather than being an array of samples or several of them."""
    if isinstance(value, (str, bytes, dict, list, tuple, np.ndarray)) or value is None:
        return False
    arraylike = ("__array__", "__dlpack__", "__arrow_c_stream__", "__arrow_c_array__", "to_numpy", "shape", "__array_interface__")
    if any(hasattr(type(value), name) for name in arraylike):
        return False
    return hasattr(value, "__iter__") or inspect.isgeneratorfunction(value) or _is_indexed(value)


def _is_indexed(value):
    """keras.utils.PyDataset and its predecessor Sequence: batches by their number."""
    return hasattr(value, "__getitem__") and hasattr(value, "__len__") and hasattr(value, "on_epoch_end")


class Loader:
    """Passes over the batches of a loader, and how many samples one of them has."""

    def __init__(self, loader, inputs, outputs):
        self.loader, self.inputs, self.outputs = loader, inputs, outputs
        self.once = hasattr(loader, "__next__")  # can be asked only once: a generator
        self.first = self._batches()
        try:
            batch = next(self.first)
        except StopIteration:
            raise _errors.InvalidArgument(f"{self.name} gave no batches") from None
        self.fields = [Field(name, array.dtype, array.shape[1:]) for name, array in self._arrays(batch)]
        self.size = self._size(self._arrays(batch))
        self.first = itertools.chain([batch], self.first)
        self.lock = threading.Lock()

    @property
    def name(self):
        return type(self.loader).__name__

    def _batches(self):
        if _is_indexed(self.loader):
            return self._indexed()
        return _begun(self.loader() if inspect.isgeneratorfunction(self.loader) else self.loader)

    def _indexed(self):
        for i in range(len(self.loader)):
            yield self.loader[i]
        self.loader.on_epoch_end()

    def _arrays(self, batch):
        """A batch, which is x, (x, y) or (x, y, weights), as named arrays."""
        parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
        if len(parts) > 3:
            raise _errors.InvalidArgument(f"{self.name} gave {len(parts)} things in a batch; x, y and weights are expected")
        found = []
        for role, part, names in zip("xyw", parts, (self.inputs, self.outputs, self.outputs)):
            if isinstance(part, (tuple, list)) and part and getattr(part[0], "shape", ()):
                part = dict(zip(self._names(role, part, names), part))
            if isinstance(part, dict) and len(part) == 1:
                part = next(iter(part.values()))
            if isinstance(part, dict):
                found += [(f"{role}_{name}", arrays.as_array(one, f"{role}_{name}")) for name, one in part.items()]
            elif part is not None:
                found.append((role, arrays.as_array(part, role)))
        return found

    def _names(self, role, part, names):
        """The names of several inputs or outputs in their order, which only a model knows."""
        names = names() if names is not None and len(part) > 1 else [""]
        if len(names) != len(part):
            raise _errors.InvalidArgument(f"{self.name} gave a list of {len(part)} arrays as {role}; a dict by their names is expected")
        return names

    def _size(self, batch):
        sizes = {name: len(array) for name, array in batch}
        if len(set(sizes.values())) > 1:
            raise _errors.InvalidArgument(f"{self.name} gave a batch whose parts have different numbers of samples: {sizes}")
        return len(batch[0][1])

    def _fitting(self, batch):
        """The arrays of a batch in the order of the fields, each of its type and without gaps."""
        named, made = dict(self._arrays(batch)), []
        for field in self.fields:
            array = named.get(field.name)
            if array is None or array.shape[1:] != field.shape:
                found = "none" if array is None else array.shape[1:]
                raise _errors.InvalidArgument(
                    f"{self.name}: {field.name} of a sample has the shape {found} in one batch and {field.shape} in the first"
                )
            made.append(np.ascontiguousarray(array, field.dtype))
        self._size([(field.name, array) for field, array in zip(self.fields, made)])
        return made

    def batches(self):
        """One pass. The first goes on after the batch that was looked at; so do all passes over a generator."""
        with self.lock:
            passing, self.first = self.first, self.first if self.once else None
        return (self._fitting(batch) for batch in (passing if passing is not None else self._batches()))

    def count(self):
        """The samples of a pass; None if that can be found out only by a pass that may never end."""
        if self.once or inspect.isgeneratorfunction(self.loader):
            return None
        if _isinstance(self.loader, "torch.utils.data", "DataLoader"):
            return self._count_of_torch()
        if hasattr(self.loader, "cardinality") and hasattr(self.loader, "element_spec"):
            return self._count_of_tensorflow()
        if _is_indexed(self.loader):
            return (len(self.loader) - 1) * self.size + self._size(self._arrays(self.loader[len(self.loader) - 1]))
        return self._counted() if hasattr(self.loader, "__len__") else None

    def _counted(self):
        return sum(self._size(self._arrays(batch)) for batch in self._batches())

    def _count_of_torch(self):
        loader = self.loader
        if _isinstance(loader.dataset, "torch.utils.data", "IterableDataset"):
            return None
        if type(loader.batch_sampler) is not _class("torch.utils.data", "BatchSampler"):
            return self._counted()
        samples = len(loader.sampler)
        return samples // loader.batch_size * loader.batch_size if loader.drop_last else samples

    def _count_of_tensorflow(self):
        """Batches are counted by TensorFlow, samples by what was batched, where one can look through to it; if not, by a pass."""
        if int(self.loader.cardinality()) == -1:
            raise _errors.InvalidArgument(f"{self.name} repeats without end: say by steps_per_epoch how many batches an epoch has")
        below = self.loader
        while type(below).__name__.strip("_") in _SAME_COUNT and hasattr(below, "_input_dataset"):
            below = below._input_dataset
        if type(below).__name__ not in ("_BatchDataset", "_ParallelBatchDataset"):
            return self._counted()
        samples = int(below._input_dataset.cardinality())
        if samples < 0:
            return self._counted()
        return samples // self.size * self.size if bool(below._drop_remainder) else samples


class LoaderSource:
    """Samples by their number: each pass gives them in its order, and the last ones are held while they may be asked for."""

    def __init__(self, loader, count, batch, goes_on=False):
        self.loader, self.count, self.batch, self.goes_on = loader, int(count), int(batch), goes_on
        self.fields = loader.fields
        self.ahead = max(2, min(_SAMPLES_AHEAD, _BYTES_AHEAD // sum(field.bytes for field in self.fields)))

    def open(self, context, keep):
        failure, passes = Failure(), _Passes(self.loader, self.count, 2 * self.batch + self.ahead, self.goes_on)
        sizes, copy = [field.bytes for field in self.fields], ctypes.memmove

        def make(_user, pointer, values):
            sample = pointer.contents
            try:
                with passes.lock:
                    addresses, row = passes.find(sample.epoch, sample.number)
                    for i, size in enumerate(sizes):
                        if values[i]:
                            copy(values[i], addresses[i] + row * size, size)
                return True
            except BaseException as exception:
                failure.keep(exception, sample)
                return False

        function = n.bw_sample_function(make)
        keep += [function, failure]
        native = native_fields(self.fields, self.count)
        return context.build(n.lib.bw_from_function, context.pointer, native, len(self.fields), function, None)


class _Held:
    """A batch whose samples may be asked for."""

    def __init__(self, first, made):
        self.first, self.end, self.arrays = first, first + len(made[0]), made
        self.addresses = [array.ctypes.data for array in made]


def _at(held, number):
    for batch in held:
        if batch.first <= number < batch.end:
            return batch.addresses, number - batch.first
    return None


class _Passes:
    """The present pass of one user of a loader. Within a batch that is trained on, workers ask for samples in an order of their own,
    and for some twice, so as many are held as such a batch and those that are prefetched have."""

    def __init__(self, loader, count, window, goes_on):
        self.loader, self.count, self.window, self.goes_on = loader, count, window, goes_on
        self.lock = threading.Lock()
        self.batches, self.epoch, self.held, self.read = None, None, [], 0
        self.before = None, []  # the epoch before this one, and what is held of it

    def find(self, epoch, number):
        """Where the sample lies. One of another epoch begins another pass, as does one of the first if it is held no more."""
        if epoch == self.before[0] != self.epoch and (found := _at(self.before[1], number)):
            return found
        if self.batches is None or epoch != self.epoch:
            self._begin(epoch)
        elif number < self.read and not _at(self.held, number):
            if number >= self.window:
                raise _errors.Unimplemented(
                    f"{self.loader.name}: sample {number} is needed again after {self.read} were read; "
                    "Dataset(loader).cache() keeps them all"
                )
            self._begin(epoch)
        while self.read <= number:
            self._next(number)
        return _at(self.held, number)

    def _begin(self, epoch):
        """What a pass read beyond its end belongs to the next one, if that goes on there."""
        rest, held = (self.batches, self.held) if self.goes_on else (None, [])
        if rest is None and self.batches is not None and self.read >= self.count:
            next(self.batches, None)  # lets the loader do what it does at the end of a pass
        self.before = self.epoch, self.held
        self.batches = rest if rest is not None else self.loader.batches()
        self.epoch, self.held, self.read = epoch, [], 0
        for batch in held:
            if batch.end > self.count:
                self._hold([array[max(0, self.count - batch.first) :] for array in batch.arrays])

    def _hold(self, rows):
        self.held.append(_Held(self.read, rows))
        self.read = self.held[-1].end

    def _next(self, number):
        made = next(self.batches, None)
        if made is None and self.goes_on and not self.loader.once:
            self.batches = self.loader.batches()
            made = next(self.batches, None)
        if made is None:
            raise _errors.OutOfRange(f"{self.loader.name} ended after {self.read} of the {self.count} samples of an epoch")
        self.held = [batch for batch in self.held if batch.end > number - self.window]
        self._hold(made)


def _samples(loader):
    """The samples of all batches, for a stream."""
    for made in loader.batches():
        for row in zip(*made):
            yield row


def inputs(value, names):
    """The inputs of each batch in turn, by name if there are several."""
    loader = Loader(value, names, None)
    for made in loader.batches():
        named = {field.name: array for field, array in zip(loader.fields, made) if field.name[0] == "x"}
        yield named["x"] if "x" in named else {name[2:]: array for name, array in named.items()}


def source(value, inputs=None, outputs=None, steps=None, batch_size=None, validates=False):
    """A source of a loader's samples, and its batch size. inputs, outputs: functions that give their names. `steps`: an epoch
    has so many batches, and the next one goes on there, but for validation, which sees the same samples each time."""
    loader = Loader(value, inputs, outputs)
    size = batch_size if isinstance(batch_size, int) else loader.size
    if steps is not None:
        return LoaderSource(loader, steps * size, size, goes_on=loader.once or not validates), loader.size
    count = loader.count()
    if count is not None:
        return LoaderSource(loader, count, size), loader.size
    return GeneratorSource(lambda: _samples(loader), loader.fields), loader.size
