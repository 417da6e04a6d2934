"""Where samples come from, and Python functions that make, change and choose them.

A source opens a native dataset in a context. What the native dataset uses (arrays, functions) is added to `keep`, which lives as
long as the dataset. An exception in a function of the user's is kept there as well and raised again when the native call has
returned (`reraise`).
"""

import ctypes
import inspect
import os

import numpy as np

from . import _errors, arrays
from . import _native as n


def source(data, y, sample_weight, reading):
    """Chooses the kind of source by what it is given."""
    if isinstance(data, (str, os.PathLike)):
        if y is not None or sample_weight is not None:
            raise _errors.InvalidArgument("a file has its own targets and weights: y and sample_weight must not be given")
        return FileSource(os.fspath(data), reading)
    if reading:
        raise _errors.InvalidArgument(f"{', '.join(sorted(reading))}: only for files")
    return ArraySource(data, y, sample_weight)


# ---- Arrays


def _named(prefix, value):
    """The fields of an argument: one array, or a dict of them by the name of an input or output."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [(f"{prefix}_{name}", arrays.as_array(one, f"{prefix}_{name}")) for name, one in value.items()]
    return [(prefix, arrays.as_array(value, prefix))]


class ArraySource:
    def __init__(self, x, y, w):
        self.fields = _named("x", x) + _named("y", y) + _named("w", w)

    def open(self, context, keep):
        native = (n.bw_field * len(self.fields))()
        for field, (name, array) in zip(native, self.fields):
            field.name = name.encode()
            field.array, kept = arrays.view(array)
            keep.append(kept)
        return context.build(n.lib.bw_from_fields, context.pointer, native, len(self.fields))


class SequenceSource:
    def __init__(self, sequences, y, w):
        parts = [arrays.as_array(one, "a sequence") for one in sequences]
        self.offsets = np.concatenate([[0], np.cumsum([len(one) for one in parts])]).astype(np.int64)
        self.values = np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)
        self.y = None if y is None else arrays.as_array(y, "y")
        self.w = None if w is None else arrays.as_array(w, "sample_weight")

    def open(self, context, keep):
        views = []
        for array in (self.values, self.y, self.w):
            made, kept = arrays.view(array) if array is not None else (None, None)
            views.append(None if made is None else ctypes.byref(made))
            keep.append((made, kept))
        keep.append(self.offsets)
        count = len(self.offsets) - 1
        return context.build(n.lib.bw_from_sequences, context.pointer, views[0], self.offsets.ctypes.data, count, *views[1:])


# ---- Files

_READING = {
    "scale": float,
    "shape": tuple,
    "target": str,
    "header": bool,
    "missing": {"error": n.BW_MISSING_ERROR, "mean": n.BW_MISSING_MEAN, "zero": n.BW_MISSING_ZERO, "skip": n.BW_MISSING_SKIP},
    "categorical": str,
    "text": str,
    "ignore": str,
    "bad_records": float,
    "like": None,
    "input": str,
    "take": int,
    "na": str,
    "part": str,
    "unpack_any": bool,
}


def read_options(reading, context, keep):
    """The options of bw_read from keywords; lists of columns may be lists."""
    unknown = sorted(set(reading) - set(_READING))
    if unknown:
        raise TypeError(f"Dataset() has no argument {unknown[0]!r}; for files there are {', '.join(_READING)}")
    made = n.options(n.bw_read_options)
    for name, value in reading.items():
        if value is None:
            continue
        if name == "shape":
            made.ndim = len(value)
            made.shape[: len(value)] = value
        elif name == "header":
            made.header = n.BW_HEADER_YES if value else n.BW_HEADER_NO
        elif name == "missing":
            if value not in _READING["missing"]:
                raise _errors.InvalidArgument(f"missing={value!r}: expected one of {', '.join(_READING['missing'])}")
            made.missing = _READING["missing"][value]
        elif name == "like":
            made.like = like_pointer(value, context, keep)
        elif _READING[name] is str:
            text = ",".join(str(one) for one in value) if isinstance(value, (list, tuple)) else str(value)
            setattr(made, name, text.encode())
        else:
            setattr(made, name, value)
            made.scale_given = made.scale_given or name == "scale"
    return made


def like_pointer(value, context, keep):
    """Whose statistics, columns and categories are used: a dataset's, or those that a model was trained on."""
    if not hasattr(value, "gradients"):
        native = value.native(context)
        keep.append((value, native))
        return native.pointer
    if value.context is not context:
        raise _errors.InvalidArgument("like: samples that are like those of one model are used with another")
    recipe = n.lib.bw_model_data(value.pointer)
    if not recipe:
        raise _errors.InvalidArgument("like: the model keeps nothing of its samples, since they were not read from a file or changed")
    return recipe


class FileSource:
    def __init__(self, path, reading):
        self.path, self.reading = path, dict(reading)

    def open(self, context, keep):
        options = read_options(self.reading, context, keep)
        return context.build(n.lib.bw_read, context.pointer, n.encoded(self.path), ctypes.byref(options))


class ModelFileSource:
    """A file, read as the training data of a model was."""

    def __init__(self, model, path, reading):
        self.model, self.path, self.reading = model, path, dict(reading)

    def open(self, context, keep):
        if context is not self.model.context:
            raise _errors.InvalidArgument("data that was read for one model is used with another")
        options = read_options(self.reading, context, keep)
        return context.build(n.lib.bw_read_for, self.model.pointer, n.encoded(self.path), ctypes.byref(options))


class PartSource:
    """One of the two parts that bw_split gives."""

    def __init__(self, dataset, share, part):
        self.dataset, self.share, self.part = dataset, float(share), part

    def open(self, context, keep):
        native = self.dataset.native(context)
        keep.append((self.dataset, native))
        parts = (ctypes.c_void_p * 2)()
        first, second = ctypes.c_void_p.from_buffer(parts), ctypes.c_void_p.from_buffer(parts, ctypes.sizeof(ctypes.c_void_p))
        context.call(n.lib.bw_split, native.pointer, self.share, ctypes.byref(first), ctypes.byref(second))
        n.lib.bw_dataset_free(parts[1 - self.part])
        return parts[self.part]


# ---- Functions

_NUMPY = {n.BW_F32: np.dtype(np.float32), n.BW_I32: np.dtype(np.int32)}


class Failure:
    """The first exception of a user's function, until it is raised again."""

    def __init__(self):
        self.exception = None

    def keep(self, exception, sample):
        self.exception = self.exception or exception
        if sample.error:
            reason = f"{type(exception).__name__}: {exception}".encode()[: n.BW_ERROR_TEXT - 1]
            ctypes.memmove(sample.error, reason + b"\0", len(reason) + 1)


def reraise(keep, status=n.BW_INTERNAL):
    """Raises what a user's function raised while a native call ran, if the call failed: a sample that was made ahead, and then not
    needed, may fail."""
    for one in keep:
        if isinstance(one, list):
            reraise(one, status)
        elif isinstance(one, Failure) and one.exception is not None:
            exception, one.exception = one.exception, None
            if status != n.BW_OK:
                raise exception


class Field:
    """A field's name, type and shape, and how a function reads and writes one sample's values of it."""

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, np.dtype(dtype), tuple(shape)
        self.count = int(np.prod(self.shape, dtype=np.int64))
        self.bytes = self.count * self.dtype.itemsize

    @classmethod
    def described(cls, name, given):
        """From what a user writes: a shape, or a pair of shape and dtype."""
        if isinstance(given, int):
            given = (given,)
        if len(given) == 2 and not isinstance(given[0], int):
            return cls(name, given[1], given[0])
        return cls(name, np.float32, given)

    def at(self, pointer):
        buffer = (ctypes.c_char * self.bytes).from_address(pointer)
        return np.frombuffer(buffer, self.dtype).reshape(self.shape)

    def write(self, pointer, value):
        value = np.asarray(value)
        if value.size != self.count:
            raise _errors.InvalidArgument(f"{self.name}: a value of shape {value.shape}, expected {self.shape}")
        self.at(pointer)[...] = value.reshape(self.shape)

    def native(self, to, count):
        to.name = self.name.encode()
        to.array, _ = arrays.view(np.empty((0, *self.shape), self.dtype))
        to.array.data = None
        to.array.shape[0] = count
        to.array.strides[:] = [0] * n.BW_MAX_NDIM


def fields_of(pointer):
    """The fields of a native dataset as its functions see them."""
    found, facts = [], n.bw_field_facts()
    while n.lib.bw_dataset_field_at(pointer, len(found), ctypes.byref(facts)):
        found.append(Field(n.text(facts.name), _NUMPY[facts.dtype], facts.shape[: facts.ndim]))
    return found


def declared(x, y, w):
    return [Field.described(name, given) for name, given in (("x", x), ("y", y), ("w", w)) if given is not None]


def native_fields(fields, count):
    native = (n.bw_field * len(fields))()
    for field, to in zip(fields, native):
        field.native(to, count)
    return native


def _values(result, fields):
    """What a function returned, as a list of as many values as there are fields."""
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(fields):
        names = ", ".join(field.name for field in fields)
        raise _errors.InvalidArgument(f"the function returned {len(result)} values, expected {len(fields)} ({names})")
    return result


def _generator(sample):
    """NumPy's generator of a sample's own stream: the same in every run, whatever the threads."""
    random = sample.random
    return np.random.Generator(np.random.Philox(key=[random.seed, random.stream], counter=[random.drawn, 0, 0, 0]))


def _extras(function):
    """What a function wants to know beside its sample, by the names of its parameters: `random`, the sample's generator; `cancelled`, a
    function that tells whether the sample is not wanted any more, for those that take long."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        names = ()
    makers = {"random": _generator, "cancelled": lambda sample: lambda: n.lib.bw_sample_cancelled(ctypes.byref(sample))}
    return [(name, maker) for name, maker in makers.items() if name in names]


class FunctionSource:
    def __init__(self, function, count, x, y, w):
        self.function, self.count = function, int(count)
        self.fields = declared(x, y, w)
        self.extras = _extras(function)

    def open(self, context, keep):
        failure = Failure()

        def make(_user, pointer, values):
            sample = pointer.contents
            try:
                more = {name: maker(sample) for name, maker in self.extras}
                made = _values(self.function(sample.number, sample.epoch, **more), self.fields)
                for i, field in enumerate(self.fields):
                    if values[i]:
                        field.write(values[i], made[i])
                return True
            except BaseException as exception:
                failure.keep(exception, sample)
                return False

        function = n.bw_sample_function(make)
        keep += [function, failure]
        native = native_fields(self.fields, self.count)
        return context.build(n.lib.bw_from_function, context.pointer, native, len(self.fields), function, None)


class GeneratorSource:
    def __init__(self, generator, fields):
        self.generator, self.fields = generator, fields

    def open(self, context, keep):
        failure = Failure()
        iterator = iter(self.generator() if callable(self.generator) else self.generator)

        def give(_user, pointer, values):
            try:
                try:
                    sample = next(iterator)
                except StopIteration:
                    return 0
                for i, (field, value) in enumerate(zip(self.fields, _values(sample, self.fields))):
                    if values[i]:
                        field.write(values[i], value)
                return 1
            except BaseException as exception:
                failure.keep(exception, pointer.contents)
                return -1

        function = n.bw_generator_function(give)
        keep += [function, failure]
        native = native_fields(self.fields, 0)
        return context.build(n.lib.bw_from_generator, context.pointer, native, len(self.fields), function, None)


class Map:
    def __init__(self, function, seed, x, y, w):
        self.function, self.seed = function, seed
        self.changed = {field.name: field for field in declared(x, y, w)}
        self.extras = _extras(function)

    def arguments(self, pointer, keep):
        """The arguments of bw_map for a dataset with these fields."""
        come = fields_of(pointer)
        go = [self.changed.get(field.name, field) for field in come]
        go += [field for name, field in self.changed.items() if name not in [one.name for one in come]]
        failure = Failure()

        def change(_user, at, source, target):
            sample = at.contents
            try:
                given = [field.at(source[i]).copy() for i, field in enumerate(come)]
                more = {name: maker(sample) for name, maker in self.extras}
                for i, (field, value) in enumerate(zip(go, _values(self.function(*given, **more), go))):
                    if target[i]:
                        field.write(target[i], value)
                return True
            except BaseException as exception:
                failure.keep(exception, sample)
                return False

        function, native = n.bw_map_function(change), native_fields(go, 0)
        options = n.options(n.bw_map_options, seed=self.seed, fields=native, field_count=len(go))
        keep += [function, failure, native]
        return [function, None, ctypes.byref(options)]


class Filter:
    def __init__(self, function):
        self.function = function

    def arguments(self, pointer, keep):
        fields, failure = fields_of(pointer), Failure()

        def choose(_user, at, source):
            try:
                return bool(self.function(*(field.at(source[i]).copy() for i, field in enumerate(fields))))
            except BaseException as exception:
                failure.keep(exception, at.contents)
                return False

        function = n.bw_filter_function(choose)
        keep += [function, failure]
        return [function, None]
