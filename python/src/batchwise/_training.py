"""One training: options, callbacks, progress, and how it ends. Shared by Model.fit and by fit for Keras's models."""

import ctypes

import numpy as np

from . import _errors, sources
from . import _native as n
from ._progress import Progress
from .history import History

_ON_NAN = {"stop": n.BW_NAN_STOP, "skip": n.BW_NAN_SKIP}


def arguments_text(value):
    """Arguments of the library's own callbacks, "patience=3,restore_best_weights=true": a text, a dict, or True for defaults."""
    if value is None or isinstance(value, str):
        return value
    if value is True:
        return ""

    def one(value):
        return str(value).lower() if isinstance(value, bool) else str(value)

    return ",".join(f"{name}={one(given)}" for name, given in value.items())


def fit_options(
    context,
    keep,
    *,
    epochs=1,
    batch_size=None,
    validation_split=0.0,
    validation=None,
    seed=0,
    memory=None,
    tile=None,
    lanes=None,
    accumulate=1,
    early_stopping=None,
    reduce_lr_on_plateau=None,
    class_weight=None,
    drop_remainder=False,
    noise_every=None,
    trace_steps=None,
    spill=None,
    checkpoint_dir=None,
    checkpoint_every=None,
    checkpoint_keep=None,
    resume=False,
    on_nan="stop",
    tensorboard=None,
    saves=False,
):
    """The library's options from keywords. What they point to is added to `keep`."""
    if on_nan not in _ON_NAN:
        raise _errors.InvalidArgument(f"on_nan={on_nan!r}: expected stop or skip")
    made = n.options(
        n.bw_fit_options,
        epochs=int(epochs),
        validation_split=float(validation_split or 0),
        seed=int(seed) & 0xFFFFFFFFFFFFFFFF,
        memory=memory,
        tile=tile,
        lanes=lanes,
        accumulate=int(accumulate),
        early_stopping=arguments_text(early_stopping),
        reduce_lr_on_plateau=arguments_text(reduce_lr_on_plateau),
        drop_remainder=bool(drop_remainder),
        noise_every=noise_every,
        trace_steps=trace_steps,
        spill=n.encoded(spill),
        checkpoint_dir=n.encoded(checkpoint_dir),
        checkpoint_every=None if checkpoint_every is None else str(checkpoint_every),
        checkpoint_keep=checkpoint_keep,
        resume=bool(resume),
        on_nan=_ON_NAN[on_nan],
        saves=bool(saves),
    )
    if isinstance(batch_size, str):
        made.batch_sizes = batch_size.encode()
    elif batch_size is not None:
        made.batch = int(batch_size)
    if validation is not None:
        native = validation.native(context)
        keep += [validation, native]
        made.validation = native.pointer
    if class_weight is not None:
        weights = class_weights(class_weight)
        keep.append(weights)
        made.class_weight, made.class_count = weights.ctypes.data, len(weights)
    if tensorboard is not None:
        board = tensorboard if isinstance(tensorboard, Board) else Board(context, tensorboard)
        made.tensorboard = board.pointer
        keep.append(board)
    return made


class Board:
    """Event files for TensorBoard. `board["dropout"] = 0.2` adds a hyperparameter, a number or a text, before training."""

    def __init__(self, context, folder, **options):
        self.context, self.pointer = context, None
        made = n.options(n.bw_tensorboard_options, **options)
        with context:
            self.pointer = context.build(n.lib.bw_tensorboard_new, context.pointer, n.encoded(folder), ctypes.byref(made))

    def __setitem__(self, name, value):
        with self.context as context:
            if isinstance(value, str):
                context.call(n.lib.bw_tensorboard_text, self.pointer, name.encode(), value.encode())
            else:
                context.call(n.lib.bw_tensorboard_number, self.pointer, name.encode(), float(value))

    def scalar(self, tag, step, value, run="train"):
        """Writes a point of a curve at once."""
        with self.context as context:
            context.call(n.lib.bw_tensorboard_scalar, self.pointer, run.encode(), tag.encode(), int(step), float(value))

    def __del__(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            self.context.free(n.lib.bw_tensorboard_free, pointer)


def class_weights(given):
    """Keras's dict of class to weight as an array; classes that it does not name weigh 1."""
    if not isinstance(given, dict):
        return np.ascontiguousarray(given, np.float32)
    if not given or any(int(number) != number or number < 0 for number in given):
        raise _errors.InvalidArgument("class_weight: expected weights by class, numbers from 0 on")
    weights = np.ones(int(max(given)) + 1, np.float32)
    for number, weight in given.items():
        weights[int(number)] = weight
    return weights


# Steps of a dataset after which batches are not simply as many as fit into it.
_UNEVEN = {"bw_batch_sizes", "bw_bucket", "bw_repeat", "bw_concatenate"}


def steps_of(context, dataset, options):
    """The updates of an epoch, which callbacks learn before the first one; None where only training finds out."""
    if options.batch_sizes or options.validation_split or _UNEVEN & {name for name, _ in dataset._steps}:
        return None
    with context:
        count = n.lib.bw_dataset_count(dataset.native(context).pointer)
    if count < 0:
        return None
    sizes = [arguments[0] for name, arguments in dataset._steps if name == "bw_batches"]
    size = options.batch if options.batch > 0 else sizes[-1] if sizes else 32
    batches = count // size if options.drop_remainder else -(-count // size)
    return -(-batches // options.accumulate)


def run(model, dataset, options, keep, caller, verbose, initial_epoch=0):
    """Trains and returns the history. An exception of a callback or of a function that makes samples is raised after the step, as
    is KeyboardInterrupt; the model keeps its last update, and `model.history` the epochs that are complete."""
    context = model.context
    with context:
        native = dataset.native(context)
        history = ctypes.c_void_p()
        progress = Progress(verbose, options.epochs, initial_epoch)
        try:
            options.progress = progress.file
            caller.install(options, progress.step, progress.epoch)
            status = context.run(n.lib.bw_fit, model.pointer, native.pointer, ctypes.byref(options), ctypes.byref(history))
        finally:
            progress.close()
            caller.tell(None)
            if history.value:
                model.history = History.of(context, history.value, initial_epoch)
        for operator in model._kept:
            operator.reraise()
        caller.reraise()
        for one in (native.keep, *(getattr(kept, "keep", []) for kept in keep)):
            sources.reraise(one if isinstance(one, list) else [], status)
        if status == n.BW_CANCELLED:
            raise _errors.from_context(context.pointer, status)
        context.call(lambda: status)
    return model.history
