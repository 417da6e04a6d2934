"""Callbacks: the methods and the logs are Keras's, so Keras's own callbacks and those of its users work.

The library calls back after a step and after an epoch, on the thread that trains. An exception in a callback stops training after
that step and is raised by `fit`.
"""

from __future__ import annotations

import ctypes
import sys
import warnings

from . import _native as n

_METHODS = [f"on_{what}_{when}" for what in ("train", "epoch", "train_batch", "test") for when in ("begin", "end")]
_NEVER = ["on_test_batch_begin", "on_test_batch_end"]
# Columns that do not come from the samples; an epoch has them, a step has not.
ADDED = ("learning_rate", "noise_scale")


class Callback:
    """What `fit` calls. `self.model` is the model, `self.params` has epochs, steps and verbose; `self.model.stop_training = True`
    stops after the step."""

    model = None
    params: dict = {}

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self.model = model

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_train_end(self, logs=None):
        """After the last epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before an epoch, from 0."""

    def on_epoch_end(self, epoch, logs=None):
        """After an epoch and its validation, with both's values."""

    def on_train_batch_begin(self, batch, logs=None):
        """Before an update, from 0 in each epoch."""

    def on_train_batch_end(self, batch, logs=None):
        """After an update, with the running means of the epoch."""

    def on_test_begin(self, logs=None):
        """Before validation."""

    def on_test_end(self, logs=None):
        """After validation, with its values."""


class Function(Callback):
    """A plain function as a callback: `function(epoch, logs)` after each epoch; True stops training."""

    def __init__(self, function):
        self.function = function

    def on_epoch_end(self, epoch, logs=None):
        if self.function(epoch, logs) is True:
            self.model.stop_training = True


def _bases():
    """The classes whose methods do nothing."""
    found = [Callback]
    keras = sys.modules.get("keras")
    if keras is not None:
        found.append(keras.callbacks.Callback)
    return found


def overrides(callback, name):
    """Whether a callback does something in a method, in its class or, as Keras's LambdaCallback, in the object itself."""
    method = getattr(callback, name, None)
    if method is None:
        return False
    plain = getattr(method, "__func__", method)
    return all(getattr(base, name, None) is not plain for base in _bases())


def _last_value():
    """bw_history_last without letting go of Python's lock, which a step would do for each column."""
    function = ctypes.PyDLL(n.lib.path).bw_history_last
    function.restype, function.argtypes = n.lib.bw_history_last.restype, n.lib.bw_history_last.argtypes
    return function


class Caller:
    """Calls callbacks from the library's two: after a step, and after an epoch.

    `before` and `after` are called around the callbacks of a step or an epoch, for what must be brought up to date in between.
    """

    def __init__(self, model, callbacks, epochs, initial_epoch=0, steps=None, verbose=0):
        self.model = model
        self.callbacks = [one if hasattr(one, "on_epoch_end") else Function(one) for one in callbacks or []]
        self.epochs, self.initial_epoch = epochs, initial_epoch
        self.exception = None
        self.columns = None
        self.told = False
        self.last = None
        self.last_value = _last_value()
        params = {"verbose": verbose, "epochs": epochs + initial_epoch, "steps": steps}
        self.called = {}
        for callback in self.callbacks:
            callback.set_params(params)
            callback.set_model(model)
            for name in _METHODS:
                if overrides(callback, name):
                    self.called.setdefault(name, []).append(getattr(callback, name))
            for when in ("begin", "end"):  # as in Keras, where on_train_batch_end calls on_batch_end unless it is overridden
                if overrides(callback, f"on_batch_{when}") and not overrides(callback, f"on_train_batch_{when}"):
                    self.called.setdefault(f"on_train_batch_{when}", []).append(getattr(callback, f"on_batch_{when}"))
            for name in _NEVER:
                if overrides(callback, name):
                    warnings.warn(f"{type(callback).__name__}.{name} is not called: validation runs as a whole", stacklevel=3)
        self.batch_begins = self.called.get("on_train_batch_begin", ())
        self.batch_ends = self.called.get("on_train_batch_end", ())
        self.hooked = type(self).before is not Caller.before or type(self).after is not Caller.after
        self.wants_steps = bool(self.batch_begins or self.batch_ends)
        self.wants_epochs = bool(self.called)

    def call(self, name, *arguments):
        for method in self.called.get(name, ()):
            method(*arguments)

    def tell(self, history):
        """Lets the model tell how far its training is; None: it is over."""
        self.model._running = history

    def place(self, name):
        """Hook: where a column stands in the logs; equal places leave the library's order."""
        return 0

    def before(self):
        """Hook: callbacks are about to be called."""

    def after(self):
        """Hook: callbacks have been called."""

    def begun_validation(self):
        """Hook: `on_test_begin` has been called."""

    def begin(self):
        self.model.stop_training = False
        self.call("on_train_begin", {})
        self._begin_epoch(0)
        self.after()

    def _begin_epoch(self, epoch):
        self.call("on_epoch_begin", epoch + self.initial_epoch, {})
        self.call("on_train_batch_begin", 0, {})

    def end(self):
        self.before()
        self.call("on_train_end", self.last or {})
        self.after()

    def logs(self, history, step):
        """The columns of the library's logs that have a value; within an epoch without those of validation."""
        if self.columns is None:
            names = [n.lib.bw_history_column(history, i) for i in range(n.lib.bw_history_columns(history))]
            self.columns = sorted(((name.decode(), name) for name in names), key=lambda one: self.place(one[0]))
            self.running = [one for one in self.columns if not one[0].startswith("val_") and one[0] not in ADDED]
        last = self.last_value
        if step:
            return {name: last(history, encoded) for name, encoded in self.running}
        values = {name: last(history, encoded) for name, encoded in self.columns}
        return {name: value for name, value in values.items() if value == value or name == "loss"}

    def step(self, progress):
        """Runs at every step, so it does nothing that the callbacks do not ask for."""
        step = progress.step
        if self.hooked:
            self.before()
        logs = self.logs(progress.logs, True)
        for method in self.batch_ends:
            method(step - 1, logs)
        if self.batch_begins and step < progress.steps:
            self.call("on_train_batch_begin", step, {})
        if self.hooked:
            self.after()
        return not self.model.stop_training

    def epoch(self, progress):
        self.before()
        logs = self.last = self.logs(progress.logs, False)
        validation = {name[4:]: value for name, value in logs.items() if name.startswith("val_")}
        if validation:
            self.call("on_test_begin", {})
            self.begun_validation()
            self.call("on_test_end", validation)
        self.call("on_epoch_end", progress.epoch + self.initial_epoch, logs)
        go_on = not self.model.stop_training
        if go_on and progress.epoch + 1 < progress.epochs:
            self._begin_epoch(progress.epoch + 1)
        self.after()
        return go_on

    def install(self, options, more_steps=None, more_epochs=None):
        """Puts the library's callbacks into its options. `more_...`: functions of our own, such as a progress bar, called first."""

        def guarded(functions):
            def run(_user, progress):
                try:
                    progress = progress.contents
                    if not self.told:
                        self.told = True
                        self.tell(progress.history)
                    go_on = True
                    for function in functions:
                        go_on = function(progress) is not False and go_on
                    return go_on
                except BaseException as exception:
                    self.exception = exception
                    return False

            return n.bw_callback(run)

        steps = [one for one in (more_steps, self.step if self.wants_steps else None) if one]
        epochs = [one for one in (more_epochs, self.epoch if self.wants_epochs else None) if one]
        if steps:
            options.on_step = guarded(steps)
        if epochs:
            options.on_epoch = guarded(epochs)

    def reraise(self):
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception
