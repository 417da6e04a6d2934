"""Keras models: trained here, and given back with weights, optimizer state and a Keras History.

A model travels as a .keras file in a temporary folder, there and back, since that holds everything that training needs: layers,
weights, loss, metrics, the optimizer and its state. Callbacks see the Keras model. It is brought up to date when one asks for it
(`self.model`), not after every step; what callbacks change (learning rate, weights, stop_training) is taken over.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import tempfile
import zipfile
from typing import Any

import numpy as np

from . import _errors, _training, loaders
from .callbacks import ADDED, Caller
from .dataset import Dataset
from .keras_check import losses_of, refuse_own_layers, refuse_own_training, untold
from .model import Model, check_loader, is_arrays, split_arrays, weights_for
from .ranks import Ranks


@contextlib.contextmanager
def saved(model, shapes=None):
    """A .keras file of a Keras model, for as long as the body runs. `shapes` are those of a sample's inputs, for models that take any
    length."""
    refuse_own_layers(model)
    with tempfile.TemporaryDirectory(prefix=_errors.TEMPORARY) as folder:
        path = pathlib.Path(folder) / "model.keras"
        with _fixed(model, shapes), _complete(model):
            model.save(path)
        yield path


@contextlib.contextmanager
def _complete(model):
    """Lets losses tell all that they were given, while the body runs: Huber's configuration leaves out its delta."""
    changed = [(one, one.get_config, untold(one)) for one in losses_of(model)]
    for one, get_config, more in changed:
        if more:
            one.get_config = functools.partial(_config_with, get_config, more)
    try:
        yield
    finally:
        for one, _, more in changed:
            if more:
                del one.get_config


def _config_with(get_config, more):
    return {**get_config(), **more}


def own_training(model):
    """Why a model cannot be trained here as it was compiled, or None."""
    try:
        refuse_own_training(model)
    except _errors.Unimplemented as failure:
        return str(failure)
    return None


@contextlib.contextmanager
def _fixed(model, shapes):
    """Lets the input layers of a model tell the lengths of the samples where they take any, while the body runs."""
    before = []
    try:
        for layer, shape in zip(_input_layers(model) if shapes else (), shapes or ()):
            free = getattr(layer, "_batch_shape", None)
            if free is not None and shape is not None and len(free) == len(shape) + 1:
                before.append((layer, free))
                layer._batch_shape = (free[0], *(given if one is None else one for one, given in zip(free[1:], shape)))
        yield
    finally:
        for layer, free in before:
            layer._batch_shape = free


def _input_layers(model):
    """The layers of the inputs, in their order."""
    made = [getattr(one, "_keras_history", (None,))[0] for one in getattr(model, "inputs", None) or ()]
    return made if all(one is not None for one in made) else []


def _shapes(model, x):
    """The shape of a sample of each input, where the model leaves a length open; otherwise nothing."""
    inputs = getattr(model, "inputs", None) or []
    if x is None or all(None not in one.shape[1:] for one in inputs):
        return None
    if isinstance(x, (str, os.PathLike)):
        x = Dataset(x)
    if isinstance(x, Dataset):
        return [x.field_shape(f"x_{one.name}") or x.shape for one in inputs]
    if isinstance(x, dict):
        x = [x.get(one.name) for one in inputs]
    elif not is_arrays(x):
        x = [x]
    return [None if one is None else np.shape(one)[1:] for one in x]


def copy_of(model, x=None, **settings):
    """A Model like a Keras model, to be trained with samples like x."""
    refuse_own_training(model)
    with saved(model, _shapes(model, x)) as path:
        return Model(path, **settings)


def fit(
    model: Any,
    x: Any = None,
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
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int = 1,
    *,
    seed: int | None = None,
    workers: int | None = None,
    ranks: Ranks | None = None,
    **options: Any,
) -> Any:
    """Trains a Keras model of any backend, and gives it back with weights and optimizer state: `model.fit` may go on.

    The arguments and the History that is returned are Keras's. A model that is not compiled gets Adam, a loss that suits its last
    layer and the targets, and accuracy for classes. `memory` (a budget in bytes) and the other options of `Model.fit` may be given.
    What cannot be trained here is refused before training, by the name of the layer. A `batchwise.Model` has its own `fit`.
    """
    if validation_freq != 1:
        raise _errors.Unimplemented("validation_freq: validation runs after each epoch here")
    if isinstance(model, Model):
        if workers is not None or ranks is not None:
            raise _errors.InvalidArgument("workers and ranks belong to a Model from its beginning: Model(..., workers=2)")
        return model.fit(
            x, y, batch_size, epochs, verbose, callbacks, validation_split, validation_data, shuffle, class_weight,
            sample_weight, initial_epoch, steps_per_epoch=steps_per_epoch, validation_steps=validation_steps, seed=seed, **options,
        )  # fmt: skip
    check_loader(x, steps_per_epoch, validation_split, validation_data, validation_steps)
    del validation_batch_size  # changes neither the result nor memory
    if loaders.is_loader(x) and y is None and sample_weight is None:
        names = {"inputs": lambda: [one.name for one in model.inputs], "outputs": lambda: list(model.output_names)}
        x = Dataset._from_loader(x, steps=steps_per_epoch, batch_size=batch_size, **names)
    _build(model, x)
    bridge = Bridge(model, x, workers=workers, ranks=ranks)
    native = bridge.native
    epochs_left = native._epochs(epochs, initial_epoch)
    own = isinstance(x, (Dataset, str, os.PathLike))
    if validation_split and validation_data is None and not own:
        x, y, sample_weight, validation_data = split_arrays(x, y, sample_weight, validation_split)
        validation_split = 0.0
    if not own:
        sample_weight = weights_for(x, sample_weight, validation_data)
    if seed is None:
        seed = bridge.iterations()
    dataset = native._dataset(x, y, sample_weight)
    if shuffle and not isinstance(x, Dataset):
        dataset = dataset.shuffle(seed)
    keep = []
    made = _training.fit_options(
        native.context,
        keep,
        epochs=epochs_left,
        batch_size=batch_size,
        validation_split=0.0 if validation_data is not None else validation_split,
        validation=None if validation_data is None else native._validation(validation_data, validation_steps),
        class_weight=class_weight,
        seed=seed,
        saves=True,
        **options,
    )
    return bridge.train(dataset, made, keep, callbacks, verbose, epochs_left, initial_epoch)


def _build(model, x):
    """Builds a Keras model that waits for its first samples, with Keras's own initial values."""
    if model.built and all(layer.built for layer in getattr(model, "layers", ())):
        return
    if isinstance(x, Dataset):
        model.build((None, *x.shape))
    elif hasattr(x, "shape"):
        model.build((None, *x.shape[1:]))
    else:
        raise _errors.InvalidArgument("the model is not built: call model.build(input_shape) first")


class Bridge:
    """A Keras model and its native twin."""

    def __init__(self, model, x, **settings):
        self.model = model
        self.native = copy_of(model, x, **{name: value for name, value in settings.items() if value is not None})
        self.rate = None  # the Keras optimizer's rate when it was last looked at

    @property
    def compiled(self):
        return getattr(self.model, "compiled", False) and self.model.optimizer is not None

    @property
    def complete(self):
        """Whether Keras could train the model: it may be compiled without a loss, which is then chosen here."""
        return self.compiled and (self.model.loss is not None or self.native.loss is None)

    def iterations(self):
        """The updates of the model so far, from which the order of samples follows: a second training is no repetition."""
        return int(_numpy(self.model.optimizer.iterations)) if self.compiled else 0

    def train(self, dataset, options, keep, callbacks, verbose, epochs, initial_epoch):
        import keras

        history = keras.callbacks.History()
        flat = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        if (options.validation or options.validation_split) and any(isinstance(one, keras.callbacks.SwapEMAWeights) for one in flat):
            raise _errors.Unimplemented("callbacks: SwapEMAWeights validates with averaged weights; train without validation")
        steps = _training.steps_of(self.native.context, dataset, options) if flat else None
        caller = KerasCaller(self, [*flat, history], dataset, epochs, initial_epoch, steps, verbose)
        try:
            caller.begin()
            _training.run(self.native, dataset, options, keep, caller, verbose, initial_epoch)
        finally:
            if self.native.history is not None:  # training began: what it reached comes back, whatever ended it
                self.bring(full=True)
            caller.detach()
        caller.end()
        self.model.history = history
        return history

    def rate_of_keras(self):
        """The learning rate that Keras's optimizer has, or None if a schedule decides or there is no optimizer yet."""
        if not self.compiled:
            return None
        optimizer = self.model.optimizer
        if not hasattr(optimizer._learning_rate, "assign"):
            return None
        return float(_numpy(optimizer._learning_rate))

    def bring(self, full):
        """Brings the Keras model up to date: weights, and with `full` the optimizer's state, compiled as training was."""
        if not full:
            self.model.set_weights(self.native.get_weights())
        else:
            with tempfile.TemporaryDirectory(prefix=_errors.TEMPORARY) as folder:
                path = pathlib.Path(folder) / "model.keras"
                self.native.save(path)
                if not self.complete:
                    self._compile(path)
                if not self.model.optimizer.built:
                    self.model.optimizer.build(self.model.trainable_variables)
                self.model.load_weights(path)
        self.rate = self.rate_of_keras()

    def _compile(self, path):
        """Compiles the Keras model as training was, with the optimizer that it has."""
        import keras

        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))["compile_config"]
        if not self.compiled:
            self.model.compile_from_config(config)
            return
        given = keras.saving.deserialize_keras_object({name: config[name] for name in ("loss", "metrics") if name in config})
        self.model.compile(optimizer=self.model.optimizer, **given)

    def take_rate(self):
        """Takes over a learning rate that a callback set in the Keras optimizer."""
        rate = self.rate_of_keras()
        if rate is not None and rate != self.rate:
            self.native.learning_rate = rate
            self.rate = rate


class KerasCaller(Caller):
    """Calls Keras's callbacks with the Keras model, which is up to date for those that ask for it."""

    def __init__(self, bridge, callbacks, dataset, epochs, initial_epoch, steps, verbose):
        import keras

        self.bridge, self.dataset = bridge, dataset
        self.stale = False  # the Keras model lags behind its twin
        self.asked = False  # a callback has looked at the model, and may have changed it
        self.brought = None
        bridge.rate = bridge.rate_of_keras()
        module = keras.callbacks
        plain = {module.History, module.CSVLogger, module.ProgbarLogger, module.TerminateOnNaN}
        plain |= {module.LearningRateScheduler, module.ReduceLROnPlateau}
        self.eager = any(isinstance(one, module.LambdaCallback) or not isinstance(one, module.Callback) for one in callbacks)
        self.changed_classes = []
        for one in callbacks:
            if isinstance(one, module.Callback) and type(one) not in plain:
                self._attach(one, full=type(one) is not module.EarlyStopping)
        super().__init__(bridge.model, callbacks, epochs, initial_epoch, steps, 0 if verbose == 0 else 1)

    def _attach(self, callback, full):
        """Lets the callback's `model` bring the model up to date first, by a subclass of its own for as long as training runs."""
        original, caller = type(callback), self

        def model(self):
            caller.update(full)
            return super(watched, self).model

        watched = type(original.__name__, (original,), {"model": property(model), "__module__": original.__module__})
        try:
            callback.__class__ = watched
            self.changed_classes.append((callback, original))
        except TypeError:  # a class with a layout of its own
            self.eager = True

    def detach(self):
        for callback, original in self.changed_classes:
            callback.__class__ = original
        self.changed_classes = []

    def tell(self, history):
        self.bridge.native._running = history

    def update(self, full):
        self.asked = True
        if self.stale:
            self.bridge.take_rate()
            self.bridge.bring(full)
            self.stale = False
            self.brought = self.bridge.model.get_weights()

    def before(self):
        self.stale, self.asked, self.brought = True, False, None

    def epoch(self, progress):
        if not self.bridge.complete:
            self.bridge.bring(full=True)
        if progress.epoch == 0:
            self._name_metrics()
        go_on = super().epoch(progress)
        self.bridge.take_rate()
        return go_on

    def begin(self):
        super().begin()
        self.bridge.take_rate()

    def place(self, name):
        """Keras sorts its logs by name, those of validation after the others; what callbacks add comes last."""
        return name in ADDED, name.startswith("val_"), name

    def logs(self, history, step):
        if self.eager and not step:
            self.update(True)
        return super().logs(history, step)

    def _name_metrics(self):
        """Lets Keras build its metrics, from a sample, as its own `fit` does at first: EarlyStopping and others learn from them
        whether more is better."""
        model = self.bridge.model
        if any(hasattr(one, "monitor") for one in self.callbacks) and hasattr(model, "_symbolic_build"):
            fields = self.dataset._sample_like()
            x = {name[2:]: value for name, value in fields.items() if name[0] == "x"}
            y = {name[2:]: value for name, value in fields.items() if name[0] == "y"}
            model._symbolic_build(data_batch=(_one_or_all(x), _one_or_all(y)))

    def after(self):
        if self.asked:
            self.bridge.take_rate()
        if self.brought is not None:
            now = self._changed()
            if now is not None:
                self.bridge.native.set_weights(now)
            self.brought = None

    def _changed(self):
        """The weights, if callbacks have set others since they were brought up to date."""
        now = self.bridge.model.get_weights()
        return now if any(not np.array_equal(a, b) for a, b in zip(self.brought, now)) else None

    def begun_validation(self):
        if self.brought is not None and self._changed() is not None:
            raise _errors.Unimplemented("on_test_begin: a callback sets weights to validate with, which validation has not seen")

    def end(self):
        """Training is over, and the Keras model has all of it: what callbacks do now is done to that one alone."""
        self.call("on_train_end", self.last or {})


def _one_or_all(fields):
    return fields[""] if list(fields) == [""] else fields


def _numpy(value):
    import keras

    return np.asarray(keras.ops.convert_to_numpy(value))
