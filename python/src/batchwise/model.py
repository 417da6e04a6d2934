"""Models: from an expression, a file or a Keras model; compiled, trained, evaluated and saved in Keras's words."""

from __future__ import annotations

import ctypes
import html
import os
import pathlib
import tempfile
from typing import Any, Callable

import numpy as np

from . import _errors, _training, loaders, loop, sources
from . import _native as n
from ._context import Context
from ._facts import Record, Table, as_bytes, html_table, text_table
from .callbacks import Caller
from .dataset import Dataset, as_dataset
from .history import History


def is_file(text):
    """Whether a text names a file that holds a model, rather than being an expression."""
    kind = n.bw_file_kind()
    return bool(n.lib.bw_file_kind_of(os.fsencode(text), ctypes.byref(kind)) and kind.loads)


class FileKinds(Table):
    """A row for each kind of file that holds a model or a part of one."""

    columns = ["extension", "holds", "loads", "loads_weights", "saves", "has_weights"]

    def __init__(self):
        kind, self.rows = n.bw_file_kind(), []
        while n.lib.bw_file_kind_at(len(self.rows), ctypes.byref(kind)):
            record = Record.of(kind)
            self.rows.append(tuple(record[name] for name in self.columns))


def file_kinds() -> FileKinds:
    """What `Model(path)`, `load_weights` and `save` read and write, by the file's extension."""
    return FileKinds()


def _listed(value):
    """Keras's argument of several losses or metrics as the library's text: a list in order, or a dict by output."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ",".join(f"{name}={one}" for name, one in value.items())
    return ",".join(_listed(one) for one in value)


class Model:
    """A model that this library trains.

    Model("conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)")    an expression
    Model("digits.keras")                                                a file: .keras, .json, .h5
    Model(keras_model)                                                   a copy of a Keras model, with its weights and optimizer

    `workers`, `memory`, `instruction_set` and `exact_kernels` are as in `configure`, for this model alone; `ranks` is its group.
    """

    def __init__(self, model: Any, **settings: Any) -> None:
        self._begin(settings)
        with self.context as context:
            if isinstance(model, (str, os.PathLike)):
                path = os.fspath(model)
                if isinstance(model, os.PathLike) or is_file(path):
                    self._pointer = context.build(n.lib.bw_load, context.pointer, n.encoded(path))
                else:
                    self._expression = path
                    self._pointer = context.build(n.lib.bw_model_parse, context.pointer, path.encode())
            elif hasattr(model, "get_config") and hasattr(model, "save"):
                from . import keras_bridge

                self._foreign = keras_bridge.own_training(model)
                with keras_bridge.saved(model) as path:
                    self._pointer = context.build(n.lib.bw_load, context.pointer, n.encoded(path))
            else:
                raise TypeError(f"Model() takes an expression, a path or a Keras model, not {type(model).__name__}")

    def _begin(self, settings):
        self.context = Context(**settings)
        self.stop_training = False
        self.history = None
        self._compiled = None
        self._foreign = None  # why a Keras model cannot be trained as it was compiled, though it predicts
        self._expression = None
        self._fits = 0
        self._pointer = None
        self._running = None  # the native history of the training that runs
        self._kept = []  # what the native model uses: custom operators

    @classmethod
    def _empty(cls, settings):
        """A model without layers, for Graph."""
        made = cls.__new__(cls)
        made._begin(settings)
        with made.context as context:
            made._pointer = context.build(n.lib.bw_model_new, context.pointer)
        return made

    @property
    def pointer(self):
        """The native model."""
        if not self.context.pointer:
            raise _errors.InvalidArgument("this model is closed")
        return self._pointer

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer's name and learning rate: `model.optimizer.learning_rate = 0.01` changes it while training, too."""
        return Optimizer(self)

    @property
    def loss(self) -> Any:
        """The loss by its name, or a list of them for several outputs; None where it is yet to be chosen."""
        text, found = ctypes.create_string_buffer(256), []
        for output in range(max(1, n.lib.bw_output_count(self.pointer))):
            known = n.lib.bw_loss_name(self.pointer, output, text, len(text))
            found.append(n.text(text.value) if known else None)
        return found[0] if len(found) == 1 else found

    @property
    def learning_rate(self) -> float:
        return n.lib.bw_learning_rate(self.pointer)

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        with self.context as context:
            context.call(n.lib.bw_set_learning_rate, self.pointer, float(rate))

    def cancel(self) -> None:
        """Stops a training or another long call of this model, from another thread."""
        self.context.cancel()

    def close(self) -> None:
        """Frees the model and everything that was made for it now, rather than when nobody refers to it any more."""
        self.context.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- Compiling and building

    def compile(self, optimizer: str | None = None, loss: Any = None, metrics: Any = None) -> None:
        """Chooses optimizer, loss and metrics by Keras's names: "adam(lr=0.001)", "mse", ["accuracy"]. What is None is chosen by
        `fit`: Adam, a loss that suits the last layer and the targets, accuracy for classes."""
        with self.context as context:
            texts = [None if one is None else str(one).encode() for one in (optimizer, _listed(loss), _listed(metrics))]
            context.call(n.lib.bw_compile, self.pointer, *texts)
        self._compiled, self._foreign = texts, None

    def _check_training(self):
        if self._foreign:
            raise _errors.Unimplemented(f"{self._foreign}; compile() the model with others to train or evaluate it")

    def recompile(self, optimizer: str | None = None, loss: Any = None, metrics: Any = None) -> None:
        """Changes what is given; the rest stays, an optimizer with its state."""
        with self.context as context:
            texts = [None if one is None else str(one).encode() for one in (optimizer, _listed(loss), _listed(metrics))]
            context.call(n.lib.bw_recompile, self.pointer, *texts)

    def build(self, input_shape: tuple[int, ...] | None = None, seed: int = 0) -> None:
        """Makes the variables for inputs of this shape (of one sample). A model that knows its inputs needs none."""
        shape = np.array(input_shape if input_shape is not None else (), np.int64)
        with self.context as context:
            data = shape.ctypes.data if input_shape is not None else None
            context.call(n.lib.bw_build, self.pointer, len(shape), data, int(seed))

    def adapt(self, x: Any) -> None:
        """Fits all Normalization layers to the samples."""
        with self.context as context:
            native = self._dataset(x).native(context)
            context.call(n.lib.bw_adapt, self.pointer, native.pointer)

    def _dataset(self, x, y=None, sample_weight=None):
        """Samples for this model: lists of arrays belong to its inputs and outputs in their order."""
        if loaders.is_loader(x) and y is None and sample_weight is None:
            return self._loaded(x)
        x, y = _only(x), _only(y)
        if is_arrays(x):
            x = dict(zip(self.input_names, x)) if len(x) > 1 else x[0]
        if is_arrays(y):  # None for an output without a loss
            y = {name: one for name, one in zip(self.output_names, y) if one is not None} if len(y) > 1 else y[0]
        if is_arrays(sample_weight):
            sample_weight = dict(zip(self.output_names, sample_weight))
        return as_dataset(self._sorted(x, "input_names"), self._sorted(y, "output_names"), self._sorted(sample_weight, "output_names"))

    def _sorted(self, value, names):
        """A dict in the order of the model's names, so that all samples of a training have their fields in the same order."""
        if not isinstance(value, dict):
            return value
        places = {name: place for place, name in enumerate(getattr(self, names))}
        return {name: value[name] for name in sorted(value, key=lambda name: (places.get(name, len(places)), name))}

    def _loaded(self, loader, **how):
        return Dataset._from_loader(loader, inputs=lambda: self.input_names, outputs=lambda: self.output_names, **how)

    # ---- Training

    def fit(
        self,
        x: Any,
        y: Any = None,
        batch_size: int | str | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        *,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> History:
        """Trains the model, and returns a History.

        x is an array, a dict of arrays by input, a path, a loader of batches (tf.data.Dataset, DataLoader, PyDataset, a generator) or
        a Dataset, whose own order, batches and targets count. shuffle: whether arrays are shuffled in each epoch. steps_per_epoch,
        validation_steps: of loaders, how many batches an epoch has. validation_split: the last samples are held out, as in Keras (of a
        Dataset: the last in the order of the first epoch). batch_size: a number, or a text such as "32@0,128@5". seed: of initial weights, order and
        random layers; without it the first training has 0, the second 1 and so on.

        Further options: memory (budget in bytes), accumulate, tile, lanes, drop_remainder, early_stopping and reduce_lr_on_plateau
        (Keras's arguments as a dict or a text), on_nan ("stop", "skip"), noise_every, trace_steps, checkpoint_dir,
        checkpoint_every, checkpoint_keep and resume, tensorboard (a folder), spill.
        """
        self._check_training()
        epochs = self._epochs(epochs, initial_epoch)
        seed = self._fits if seed is None else seed
        self._fits += 1
        check_loader(x, steps_per_epoch, validation_split, validation_data, validation_steps)
        if loaders.is_loader(x) and y is None and sample_weight is None:
            x = self._loaded(x, steps=steps_per_epoch, batch_size=batch_size)
        own = isinstance(x, (Dataset, str, os.PathLike))
        split = 0.0 if own or validation_data is not None else validation_split
        if split:
            x, y, sample_weight, validation_data = split_arrays(x, y, sample_weight, split)
        if not own:
            sample_weight = weights_for(x, sample_weight, validation_data)
        dataset = self._dataset(x, y, sample_weight)
        if shuffle and not isinstance(x, Dataset):
            dataset = dataset.shuffle(seed)
        keep = []
        with self.context:
            validation = None if validation_data is None else self._validation(validation_data, validation_steps)
            made = _training.fit_options(
                self.context,
                keep,
                epochs=epochs,
                batch_size=batch_size,
                validation_split=0.0 if split or validation is not None else validation_split,
                validation=validation,
                class_weight=class_weight,
                seed=seed,
                saves=bool(callbacks),
                **options,
            )
            steps = _training.steps_of(self.context, dataset, made) if callbacks else None
            caller = Caller(self, callbacks, epochs, initial_epoch, steps, 0 if verbose == 0 else 1)
            caller.begin()
            history = _training.run(self, dataset, made, keep, caller, verbose, initial_epoch)
            caller.end()
        return history

    @staticmethod
    def _epochs(epochs, initial_epoch):
        if epochs <= initial_epoch:
            raise _errors.InvalidArgument(f"epochs={epochs}: training goes on at initial_epoch={initial_epoch}, so nothing is left")
        return epochs - initial_epoch

    def _validation(self, data, steps=None):
        if loaders.is_loader(data):
            return self._loaded(data, steps=steps, validates=True)
        if isinstance(data, (tuple, list)) and 2 <= len(data) <= 3:
            return self._dataset(*data)
        return self._dataset(data)

    def evaluate(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        return_dict: bool = False,
        batch_size: int | None = None,
        verbose: Any = 0,
    ) -> Any:
        """Loss and metrics over the samples: the loss, or a list with the metrics after it, as in Keras; or a dict. Neither the
        result nor memory depends on a batch size."""
        del batch_size, verbose
        self._check_training()
        pointer = ctypes.c_void_p()
        with self.context as context:
            native = self._dataset(x, y, sample_weight).native(context)
            status = context.run(n.lib.bw_evaluate, self.pointer, native.pointer, ctypes.byref(pointer))
            sources.reraise(native.keep, status)
            context.call(lambda: status)
            columns = History.of(context, pointer.value).history
        values = {name: column[0] for name, column in columns.items()}
        if return_dict:
            return values
        ordered = [values.pop("loss"), *values.values()]
        return ordered if len(ordered) > 1 else ordered[0]

    def predict(self, x: Any, *, batch_size: int | None = None, verbose: Any = 0) -> Any:
        """The model's output for each sample, as float32; a list of arrays if there are several outputs. Neither the result nor
        memory depends on a batch size."""
        del batch_size, verbose
        if loaders.is_loader(x):
            return self._predict_batches(x)
        with self.context as context:
            dataset = self._dataset(x)
            native = dataset.native(context)
            self._build_for(dataset, context, native)
            count = n.lib.bw_dataset_count(native.pointer)
            if count < 0:
                raise _errors.InvalidArgument("predict: the number of samples of a stream is not known; take some of it")
            made = [np.empty((count, *facts.shape), np.float32) for facts in self.outputs]
            places = (ctypes.c_void_p * len(made))(*(one.ctypes.data for one in made))
            counts = (ctypes.c_size_t * len(made))(*(one.size for one in made))
            status = context.run(n.lib.bw_predict_all, self.pointer, native.pointer, places, counts, len(made))
            sources.reraise(native.keep, status)
            context.call(lambda: status)
        return made[0] if len(made) == 1 else made

    def _predict_batches(self, loader):
        """One batch after another, so that a loader need not know how many samples it has."""
        batches = loaders.inputs(loader, lambda: self.input_names)
        made = [self.predict(batch) for batch in batches]
        if isinstance(made[0], list):
            return [np.concatenate(parts) for parts in zip(*made)]
        return np.concatenate(made)

    def _build_for(self, dataset, context, native):
        """Builds a model that is not built yet for the samples' shape, as training would, so that its outputs are known."""
        if n.lib.bw_variable_count(self.pointer) > 0 or n.lib.bw_output_count(self.pointer) > 0:
            return
        shape = (ctypes.c_int64 * n.BW_MAX_NDIM)()
        ndim = n.lib.bw_dataset_shape(native.pointer, shape)
        context.call(n.lib.bw_build, self.pointer, ndim, shape, 0)

    def read(self, path: str | os.PathLike, **reading: Any) -> Dataset:
        """The samples of a file, read as the training data was: scale, columns, categories, statistics."""
        return Dataset._from_source(sources.ModelFileSource(self, os.fspath(path), reading))

    def tensorboard(self, folder: str | os.PathLike, *, histograms: int = 1, images: int = 4, graph: bool = True) -> _training.Board:
        """Event files for TensorBoard in a folder, to be given to `fit` or written by a loop of one's own: weights as histograms every
        so many epochs (0: never), so many images of the inputs, and the model as a graph."""
        return _training.Board(self.context, folder, histograms=histograms, images=images, graph=graph)

    def running(self) -> Record | None:
        """In a callback: the facts of the training so far, such as its updates, seconds and bytes; None if no training runs."""
        pointer = self._running
        if not pointer:
            return None
        self.context.call(n.lib.bw_history_refresh, pointer)
        return Record.of(n.lib.bw_history_facts(pointer))

    # ---- Custom loops and checkpoints

    def iterate(self, data: Any, epoch: int = 0) -> loop.Iterator:
        """The batches of one epoch of a dataset, for custom loops."""
        return loop.iterate(self.context, data if isinstance(data, Dataset) else self._dataset(data), epoch)

    def gradients(self, **options: Any) -> loop.Gradients:
        """A sum of gradients for custom loops; options as in `fit`: memory, tile, lanes, seed, class_weight."""
        self._check_training()
        return loop.Gradients(self, options)

    def checkpoint(self, folder: str | os.PathLike, step: int, values: dict[str, np.ndarray] | None = None, keep: int = 3) -> None:
        """Writes a checkpoint of a custom loop: variables, optimizer and `values`, a dict of arrays of the program's own."""
        loop.checkpoint(self, folder, step, values, keep)

    def resume(self, folder: str | os.PathLike, values: dict[str, np.ndarray] | None = None) -> int | None:
        """Loads the newest checkpoint of a custom loop, and the arrays in `values` in their places. Returns its step, or None."""
        return loop.resume(self, folder, values)

    def apply_averages(self) -> None:
        """With use_ema: makes the averaged weights the model's."""
        with self.context as context:
            context.call(n.lib.bw_apply_averages, self.pointer)

    # ---- Files

    def save(self, path: str | os.PathLike) -> None:
        """Saves by the file's ending: .keras, .weights.h5, .safetensors, .json, .onnx, .c."""
        with self.context as context:
            context.call(n.lib.bw_save, self.pointer, n.encoded(path))

    def load_weights(self, path: str | os.PathLike) -> None:
        """Loads weights from .keras, .weights.h5 or .safetensors."""
        with self.context as context:
            context.call(n.lib.bw_load_weights, self.pointer, n.encoded(path))

    def __reduce__(self):
        """Models that are built travel as .keras files; others as their expression."""
        if self.built:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.keras"
                self.save(path)
                return _restored, (path.read_bytes(), None, self.context.settings), {"_foreign": self._foreign}
        return _restored, (None, (self.expression, self._compiled), self.context.settings)

    # ---- Facts

    @property
    def built(self) -> bool:
        return n.lib.bw_variable_count(self.pointer) > 0

    @property
    def expression(self) -> str:
        """The model as an expression, without weights."""
        if self._expression is not None:
            return self._expression
        with self.context as context:
            return n.text(context.build(n.lib.bw_model_expression, self.pointer))

    @property
    def hash(self) -> int:
        """A hash of all variables, equal for equal bits."""
        return n.lib.bw_model_hash(self.pointer)

    @property
    def facts(self) -> Record:
        """Name, parameters and number of layers."""
        facts = n.bw_model_facts()
        with self.context as context:
            context.call(n.lib.bw_model_describe, self.pointer, ctypes.byref(facts))
        return Record.of(facts)

    @property
    def layers(self) -> list[Record]:
        """The layers in Keras's order: name, class_name, shape of one output sample, parameters, and `inputs`, the name of the layer
        that each input comes from, None for the samples, and which of its uses."""
        found, facts = [], n.bw_layer_facts()
        with self.context as context:
            for i in range(self.facts.layers):
                context.call(n.lib.bw_layer_describe, self.pointer, i, ctypes.byref(facts))
                found.append(Record.of(facts))
                found[-1].inputs = [self._layer_input(i, k) for k in range(facts.inputs)]
        for layer in found:
            layer.inputs = [(found[at].name if at >= 0 else None, use) for at, use in layer.inputs]
        return found

    def _layer_input(self, layer, number):
        at, use = ctypes.c_int(), ctypes.c_int()
        self.context.call(n.lib.bw_layer_input, self.pointer, layer, number, ctypes.byref(at), ctypes.byref(use))
        return at.value, use.value

    @property
    def outputs(self) -> list[Record]:
        """The outputs: name, shape, what they mean."""
        found, facts = [], n.bw_output_facts()
        with self.context as context:
            for i in range(n.lib.bw_output_count(self.pointer)):
                context.call(n.lib.bw_output_describe, self.pointer, i, ctypes.byref(facts))
                found.append(Record.of(facts))
        return found

    @property
    def output_names(self) -> list[str]:
        return [one.name for one in self.outputs]

    @property
    def input_names(self) -> list[str]:
        return [layer.name for layer in self.layers if layer.class_name == "InputLayer"]

    @property
    def classes(self) -> list[str]:
        """The names of the classes that the model predicts, as far as its training data had them."""
        names = []
        while (name := n.lib.bw_model_class(self.pointer, len(names))) is not None:
            names.append(n.text(name))
        return names

    def count_params(self) -> int:
        facts = self.facts
        return facts.trainable + facts.non_trainable

    # ---- Variables

    @property
    def variables(self) -> list[Record]:
        """The variables in Keras's order: name, shape, trainable."""
        shape, found = (ctypes.c_int64 * n.BW_MAX_NDIM)(), []
        for i in range(n.lib.bw_variable_count(self.pointer)):
            ndim = n.lib.bw_variable_shape(self.pointer, i, shape)
            name, trainable = n.text(n.lib.bw_variable_name(self.pointer, i)), n.lib.bw_variable_trainable(self.pointer, i)
            found.append(Record(name=name, shape=tuple(shape[:ndim]), trainable=trainable))
        return found

    def get_weights(self) -> list[np.ndarray]:
        """All variables as a list of arrays, in Keras's order."""
        with self.context as context:
            values = [np.empty(one.shape, np.float32) for one in self.variables]
            for i, one in enumerate(values):
                context.call(n.lib.bw_variable_get, self.pointer, i, one.ctypes.data, one.size)
        return values

    def set_weights(self, weights: Any) -> None:
        """Sets all variables, in Keras's order."""
        variables = self.variables
        if len(weights) != len(variables):
            raise _errors.InvalidArgument(f"set_weights: {len(weights)} arrays for {len(variables)} variables")
        given = [np.ascontiguousarray(one, np.float32) for one in weights]
        for variable, one in zip(variables, given):
            if one.shape != variable.shape:
                raise _errors.InvalidArgument(f"{variable.name}: an array of shape {one.shape}, expected {variable.shape}")
        with self.context as context:
            for i, one in enumerate(given):
                context.call(n.lib.bw_variable_set, self.pointer, i, one.ctypes.data, one.size)

    # ---- Showing

    def _table(self):
        return ["layer", "type", "output", "parameters"], [(one.name, one.class_name, one.shape, one.parameters) for one in self.layers]

    def _totals(self):
        facts = self.facts
        total = facts.trainable + facts.non_trainable
        return (
            f"parameters: {total:,} ({as_bytes(4 * total)}), trainable {facts.trainable:,}, others {facts.non_trainable:,}; "
            f"the optimizer keeps {facts.optimizer:,} numbers"
        )

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Prints the layers as a table."""
        print_fn(f'Model "{self.facts.name}"\n\n{text_table(*self._table())}\n\n{self._totals()}')

    def _repr_html_(self):
        if not self.built:
            return f"<pre>{html.escape(repr(self))}</pre>"
        return html_table(*self._table(), f'Model "{self.facts.name}"') + f"<p>{html.escape(self._totals())}</p>"

    def __repr__(self):
        if not self.built:
            return f"Model({self._expression!r}, not built)" if self._expression else "Model(not built)"
        facts = self.facts
        return f"Model({facts.name!r}, {facts.layers} layers, {facts.trainable + facts.non_trainable:,} parameters)"


def as_model(model, x=None):
    """A Model from what `plan`, `tune` and the others are given: a Model itself, an expression, a file or a Keras model, which may
    leave it to the samples how long its inputs are."""
    if isinstance(model, Model):
        model._check_training()
        return model
    if not hasattr(model, "get_config"):
        return Model(model)
    from . import keras_bridge

    return keras_bridge.copy_of(model, x)


class Optimizer:
    """What callbacks ask of a model's optimizer."""

    def __init__(self, model):
        self._model = model

    @property
    def name(self):
        return n.text(n.lib.bw_optimizer_name(self._model.pointer))

    @property
    def learning_rate(self):
        return self._model.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        self._model.learning_rate = rate

    def __repr__(self):
        return f"Optimizer({self.name!r}, learning_rate={self.learning_rate})"


def _restored(content, unbuilt, settings):
    """A model from what __reduce__ gave."""
    if content is None:
        expression, compiled = unbuilt
        model = Model(expression, **settings)
        if compiled:
            model.compile(*(n.text(one) for one in compiled))
        return model
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        path.write_bytes(content)
        return Model(path, **settings)


def is_arrays(value):
    """Whether it is a list of arrays, or of arrays and None. Numbers and texts of NumPy have a shape as well, an empty one."""
    if not isinstance(value, (list, tuple)) or all(one is None for one in value):
        return False
    return all(one is None or getattr(one, "shape", ()) for one in value)


def _only(value):
    """A dict or a list of a single array is that array."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def _sliced(value, part):
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: _sliced(one, part) for name, one in value.items()}
    if is_arrays(value):
        return [_sliced(one, part) for one in value]
    if hasattr(value, "iloc"):
        return value.iloc[part]
    return (value if hasattr(value, "shape") else np.asarray(value))[part]


def _count(value):
    if isinstance(value, dict):
        return _count(next(iter(value.values())))
    if is_arrays(value):
        return _count(next(one for one in value if one is not None))
    return len(value)


def check_loader(x, steps, split, validation, validation_steps):
    """Refuses arguments that only loaders take, or that loaders do not take."""
    for name, value, given in (("steps_per_epoch", steps, x), ("validation_steps", validation_steps, validation)):
        if value is not None and not loaders.is_loader(given):
            raise _errors.Unimplemented(f"{name}: an epoch is a pass over all samples here; use Dataset(...).take(count)")
        if value is not None and (int(value) != value or value < 1):
            raise _errors.InvalidArgument(f"{name}={value}: expected at least 1")
    if split and validation is None and loaders.is_loader(x):
        raise _errors.InvalidArgument(f"validation_split: {type(x).__name__} has an order of its own; give validation_data")


def weights_for(x, sample_weight, validation_data):
    """Sample weights of 1 for training where only validation has weights: the library wants both to have the same fields."""
    if (
        sample_weight is not None
        or not isinstance(validation_data, (tuple, list))
        or len(validation_data) < 3
        or validation_data[2] is None
    ):
        return sample_weight
    ones = np.ones(_count(x), np.float32)
    return {name: ones for name in validation_data[2]} if isinstance(validation_data[2], dict) else ones


def split_arrays(x, y, w, share):
    """Keras's validation_split of arrays: the last samples, before any shuffling."""
    if not 0 < share < 1:
        raise _errors.InvalidArgument(f"validation_split={share}: expected a share between 0 and 1")
    count = _count(x)
    first = int(np.floor(count * (1 - share)))
    if first in (0, count):
        raise _errors.InvalidArgument(f"validation_split={share} of {count} samples leaves none for one of the two parts")
    training, held = slice(None, first), slice(first, None)
    validation = (_sliced(x, held), _sliced(y, held)) + ((_sliced(w, held),) if w is not None else ())
    return _sliced(x, training), _sliced(y, training), _sliced(w, training), validation
