"""Datasets: where samples come from and what happens to them on their way, described step by step.

A dataset is a description, which never changes: each method returns a new one. Native datasets are made from it in the context
of the model that uses it, and live as long as the description does, so that what `cache` holds is there for the next call.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from . import _errors, loaders, sources
from . import _native as n
from ._context import Context, Handle
from ._facts import html_table, text_table


class Dataset:
    """Samples for training, evaluation and prediction.

    Dataset(x, y, sample_weight)          arrays: NumPy, pandas, Arrow, DLPack; dicts for several inputs or outputs
    Dataset("train.csv", target="price")  files: .npz, .npy, .csv, IDX, HDF5, TFRecord, libsvm, folders of images, "synth:..."
    Dataset(loader)                       batches: tf.data.Dataset, PyTorch's DataLoader, Keras's PyDataset, generators
    Dataset.from_function(...)            samples that a function makes by number
    Dataset.from_generator(...)           samples that come one after another
    Dataset.from_sequences(...)           sequences of varying length

    Arrays are used where they are: keep them unchanged while the dataset is used.
    """

    def __init__(self, data: Any, y: Any = None, sample_weight: Any = None, **reading: Any) -> None:
        self._own = None
        if loaders.is_loader(data):
            if y is not None or sample_weight is not None or reading:
                raise _errors.InvalidArgument(f"{type(data).__name__} has its own targets and weights: nothing else must be given")
            made = Dataset._from_loader(data)
            self._source, self._steps = made._source, made._steps
        else:
            self._source, self._steps = sources.source(data, y, sample_weight, reading), ()

    @classmethod
    def _from_source(cls, source, steps=()):
        made = cls.__new__(cls)
        made._source, made._steps, made._own = source, steps, None
        return made

    @classmethod
    def _from_loader(cls, loader, **how):
        """The samples of a loader in its order and its batches; one thread asks for them, so that they come in that order."""
        source, size = loaders.source(loader, **how)
        made = cls._from_source(source).batch(size)
        return made.prefetch(source.ahead, threads=1) if hasattr(source, "ahead") else made

    @classmethod
    def from_function(cls, function, count, x, y=None, w=None):
        """Samples that `function(number, epoch, random)` returns as x, (x, y) or (x, y, w), on several threads at once.

        x, y and w describe one sample each: a shape such as (28, 28, 1), or a pair of shape and dtype. `random` is a NumPy
        generator that depends on the sample and the epoch alone, and may be left out. So may a parameter `cancelled`, a function
        that tells whether the sample is not wanted any more.
        """
        return cls._from_source(sources.FunctionSource(function, count, x, y, w))

    @classmethod
    def from_generator(cls, generator, x, y=None, w=None):
        """Samples that `generator()`, a function that returns an iterator, gives one after another as x, (x, y) or (x, y, w)."""
        return cls._from_source(sources.GeneratorSource(generator, sources.declared(x, y, w)))

    @classmethod
    def from_sequences(cls, sequences, y=None, sample_weight=None):
        """Sequences of varying length, each an array whose first axis is time; samples are padded with zeros at their ends."""
        return cls._from_source(sources.SequenceSource(sequences, y, sample_weight))

    # ---- Steps; each is the function of that name in the header

    def _then(self, name, *arguments):
        return Dataset._from_source(self._source, self._steps + ((name, arguments),))

    def shuffle(self, seed=0) -> Dataset:
        """An exact random order over all samples, a new one in each epoch."""
        return self._then("bw_shuffle", _seed(seed))

    def batch(self, size, drop_remainder=False) -> Dataset:
        """The batch size: a number, or a text such as "32,64" (alternating), "32/64" (by epochs), "32@0,128@5", "full"."""
        if isinstance(size, str) or drop_remainder:
            return self._then("bw_batch_sizes", str(size).encode(), bool(drop_remainder))
        return self._then("bw_batches", int(size))

    def take(self, count) -> Dataset:
        """The first `count` samples."""
        return self._then("bw_take", int(count))

    def skip(self, count) -> Dataset:
        """All but the first `count` samples."""
        return self._then("bw_skip", int(count))

    def shard(self, count, index) -> Dataset:
        """Every count-th sample from the index-th on."""
        return self._then("bw_shard", int(count), int(index))

    def repeat(self, times) -> Dataset:
        """The same samples several times, each time as in an epoch of its own."""
        return self._then("bw_repeat", int(times))

    def cache(self, path=None) -> Dataset:
        """Keeps samples once they have been made: in memory, or in a file that later runs use again."""
        return self._then("bw_cache_file", n.encoded(path)) if path is not None else self._then("bw_cache")

    def prefetch(self, samples=0, threads=0, seconds=0.0) -> Dataset:
        """How many samples that are slow to make are held ahead, by how many threads, and after how long a source has stalled."""
        return self._then("bw_prefetch", n.options(n.bw_prefetch_options, samples=samples, threads=threads, seconds=seconds))

    def augment(self, text, seed=0) -> Dataset:
        """Changes images at random during training: "flip,shift=0.1,rotate=15"."""
        return self._then("bw_augment", text.encode(), _seed(seed))

    def standardise(self, like=None) -> Dataset:
        """Scales inputs to mean 0 and standard deviation 1; with `like`, by the statistics of that dataset or of the
        samples that this model was trained on."""
        return self._then("bw_standardise", like)

    def normalise(self, like=None) -> Dataset:
        """Scales inputs to the range 0 to 1; with `like`, by the statistics of that dataset or of the samples that this model was
        trained on."""
        return self._then("bw_normalise", like)

    def one_hot(self, classes=0) -> Dataset:
        """Turns class numbers into rows of zeros and a one."""
        return self._then("bw_one_hot", int(classes))

    def bucket(self, lengths) -> Dataset:
        """Computes each sequence at the shortest of these lengths that holds it."""
        lengths = np.ascontiguousarray(lengths, np.int64)
        return self._then("bw_bucket", lengths, len(lengths))

    def allow_bad(self, share) -> Dataset:
        """Drops samples that cannot be made, up to this share of them."""
        return self._then("bw_allow_bad", float(share))

    def concatenate(self, other) -> Dataset:
        """The samples of another dataset after these."""
        return self._then("bw_concatenate", _Taken(other))

    def interleave(self, other, block=1) -> Dataset:
        """Alternating blocks of these samples and another dataset's."""
        return self._then("bw_interleave", _Taken(other), int(block))

    def zip(self, other) -> Dataset:
        """Joined sample by sample with another dataset, whose inputs become the targets if there are none."""
        return self._then("bw_zip", _Taken(other))

    def map(self, function, seed=0, x=None, y=None, w=None) -> Dataset:
        """Applies `function(x)`, `function(x, y)` or `function(x, y, w)`, as the dataset has fields, to each sample, on several
        threads at once. It returns as many; x, y and w say how those look whose shape changes. A parameter named `random` gets
        the sample's own generator."""
        return self._then("bw_map", sources.Map(function, _seed(seed), x, y, w))

    def filter(self, function) -> Dataset:
        """Keeps the samples for which `function(x, y)` is true; called once for each."""
        return self._then("bw_filter", sources.Filter(function))

    # ---- Facts

    def native(self, context):
        """The native dataset in a context; made once."""
        handle = context.datasets.get(self)
        if handle is None:
            handle = context.datasets[self] = self._make(context)
        return handle

    def _make(self, context):
        keep = []
        pointer = self._source.open(context, keep)
        for name, arguments in self._steps:
            try:
                pointer = self._apply(context, pointer, name, arguments, keep)
            except _errors.Error:
                raise
            except BaseException:
                n.lib.bw_dataset_free(pointer)
                raise
        return _Native(context, pointer, keep)

    @staticmethod
    def _apply(context, pointer, name, arguments, keep):
        function = getattr(n.lib, name)
        native = []
        for one in arguments:
            if isinstance(one, (sources.Map, sources.Filter)):
                native += one.arguments(pointer, keep)
            elif isinstance(one, _Taken):
                taken = one.dataset._make(context)
                keep.append(taken.keep)
                native.append(taken.release())
            elif isinstance(one, Dataset) or hasattr(one, "gradients"):
                native.append(sources.like_pointer(one, context, keep))
            elif isinstance(one, np.ndarray):
                keep.append(one)
                native.append(one.ctypes.data)
            elif isinstance(one, ctypes.Structure):
                native.append(ctypes.byref(one))
            else:
                native.append(one)
        made = function(pointer, *native)
        sources.reraise(keep, n.BW_OK if made else n.BW_INTERNAL)
        return made if made else context.build(lambda: made)

    def _facts(self):
        """A context for questions about the dataset itself."""
        if self._own is None:
            self._own = Context()
        return self._own

    def __len__(self) -> int:
        with self._facts() as context:
            count = n.lib.bw_dataset_count(self.native(context).pointer)
        if count < 0:
            raise TypeError("the end of a stream is not known")
        return count

    def field_shape(self, name="x"):
        """The shape of one sample's field, "x", "y", "w" or "x_<input>", or None if there is no such field."""
        shape = (ctypes.c_int64 * n.BW_MAX_NDIM)()
        with self._facts() as context:
            ndim = n.lib.bw_dataset_field(self.native(context).pointer, name.encode(), shape)
        return None if ndim < 0 else tuple(shape[:ndim])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one sample's input."""
        shape = (ctypes.c_int64 * n.BW_MAX_NDIM)()
        with self._facts() as context:
            ndim = n.lib.bw_dataset_shape(self.native(context).pointer, shape)
        return None if ndim < 0 else tuple(shape[:ndim])

    @property
    def classes(self) -> list[str]:
        """The names of the classes where the targets are text or folders; otherwise empty."""
        with self._facts() as context:
            pointer, names = self.native(context).pointer, []
            while (name := n.lib.bw_dataset_class(pointer, len(names))) is not None:
                names.append(n.text(name))
        return names

    @property
    def columns(self) -> dict:
        """The columns of a table that are inputs: a dict of name to the list of its categories, or None for a number."""
        found, name, count = {}, ctypes.c_char_p(), ctypes.c_int()
        with self._facts() as context:
            pointer = self.native(context).pointer
            while n.lib.bw_dataset_column(pointer, len(found), ctypes.byref(name), ctypes.byref(count)):
                column = len(found)
                values = [n.text(n.lib.bw_dataset_category(pointer, column, i)) for i in range(count.value)]
                found[n.text(name.value) or column] = values if count.value else None
        return found

    def has_part(self, part):
        """Whether the file has the part "train", "validation" or "test"."""
        with self._facts() as context:
            return bool(n.lib.bw_dataset_has_part(self.native(context).pointer, part.encode()))

    def file(self, position: int) -> str | None:
        """The path of the file that the sample at a position is, of images; None if samples are no files."""
        text = ctypes.create_string_buffer(4096)
        with self._facts() as context:
            found = n.lib.bw_dataset_file(self.native(context).pointer, int(position), text, len(text))
        return n.text(text.value) if found else None

    def values(self, name: str = "x", first: int = 0, count: int | None = None) -> np.ndarray:
        """A field's values of `count` samples from `first` on, in the order of the first epoch, as float32."""
        count = len(self) - first if count is None else count
        shape = self.field_shape(name)
        if shape is None:
            raise _errors.NotFound(f"the dataset has no field {name}")
        values = np.empty((count, *shape), np.float32)
        with self._facts() as context:
            native = self.native(context)
            status = context.run(
                n.lib.bw_dataset_values, native.pointer, name.encode(), first, count, values.ctypes.data, values.size
            )
            sources.reraise(native.keep, status)
            context.call(lambda: status)
        return values

    def _sample_like(self):
        """Zeros that look like a batch of one sample, by field: no sample is asked of the source."""
        with self._facts() as context:
            fields = sources.fields_of(self.native(context).pointer)
        return {field.name: np.zeros((1, *field.shape), field.dtype) for field in fields}

    def split(self, share: float) -> tuple[Dataset, Dataset]:
        """Two datasets: the samples before floor(n * (1 - share)) and those from there on, in the order of the first epoch."""
        return (
            Dataset._from_source(sources.PartSource(self, share, 0)),
            Dataset._from_source(sources.PartSource(self, share, 1)),
        )

    def __iter__(self):
        """The batches of the first epoch: dicts of float32 arrays by field."""
        from .loop import iterate

        with self._facts() as context:
            for batch in iterate(context, self, 0):
                yield batch.fields()

    def __reduce__(self):
        return Dataset._from_source, (self._source, self._steps)

    def _rows(self):
        try:
            count = len(self)
        except TypeError:
            count = "a stream"
        rows = [("samples", count), ("input", self.shape)]
        rows += [("target", shape)] if (shape := self.field_shape("y")) is not None else []
        rows += [("steps", ", ".join(name[3:] for name, _ in self._steps))] if self._steps else []
        return rows

    def __repr__(self):
        rows = self._rows()
        return f"Dataset({', '.join(f'{name}={value}' for name, value in rows)})"

    def _repr_html_(self):
        return html_table(["", "dataset"], self._rows())

    def __str__(self):
        return text_table(["", "dataset"], self._rows())


class _Taken:
    """A dataset that a step joins with this one, and whose native form it takes."""

    def __init__(self, dataset):
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)


class _Native(Handle):
    """A dataset in a context, which holds it: so it does not hold the context."""

    def __init__(self, context, pointer, keep):
        super().__init__(weakref.proxy(context), pointer, n.lib.bw_dataset_free, keep)

    def release(self):
        pointer, self.pointer = self.pointer, None
        return pointer


def _seed(seed):
    return int(seed) & 0xFFFFFFFFFFFFFFFF


def as_dataset(data, y=None, sample_weight=None):
    """What fit and the others are given, as a dataset."""
    if isinstance(data, Dataset):
        if y is not None or sample_weight is not None:
            raise _errors.InvalidArgument("a Dataset has its own targets and weights: y and sample_weight must not be given")
        return data
    return Dataset(data, y, sample_weight)
