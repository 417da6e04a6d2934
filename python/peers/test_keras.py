"""fit beside Keras's own: the same numbers, the same logs to the same callbacks, and a model that Keras trains on."""

import csv
import os
import pickle
import signal
import subprocess
import sys
import threading

import keras
import numpy as np
import pytest

import batchwise as bw

layers = keras.layers


def make(compiled=True, optimizer="adam"):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    if compiled:
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def numbers(variables):
    return [np.array(keras.ops.convert_to_numpy(one), np.float64) for one in variables]


def close(ours, theirs, tolerance=2e-4):
    for one, other in zip(ours, theirs):
        assert np.abs(one - other).max(initial=0) <= tolerance * max(1.0, np.abs(other).max(initial=0))


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(2e-3),
    "momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    "rmsprop": lambda: keras.optimizers.RMSprop(1e-3, centered=True),
    "adamw": lambda: keras.optimizers.AdamW(1e-3, weight_decay=0.01, clipnorm=1.0),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_numbers_are_those_of_keras_and_keras_goes_on(digits, name):
    x, y = digits
    ours, theirs = make(optimizer=OPTIMIZERS[name]()), make(optimizer=OPTIMIZERS[name]())
    options = {"batch_size": 64, "epochs": 2, "shuffle": False, "verbose": 0, "validation_split": 0.25}
    mine, other = bw.fit(ours, x, y, **options), theirs.fit(x, y, **options)
    assert isinstance(mine, keras.callbacks.History) and mine.epoch == other.epoch
    assert list(mine.history) == list(other.history)
    for column, values in other.history.items():
        assert np.allclose(mine.history[column], values, rtol=2e-3, atol=2e-3), column
    close(numbers(ours.weights), numbers(theirs.weights))
    close(numbers(ours.optimizer.variables), numbers(theirs.optimizer.variables))
    assert int(ours.optimizer.iterations) == 12
    again, expected = ours.fit(x, y, **options), theirs.fit(x, y, **options)
    for column, values in expected.history.items():
        assert np.allclose(again.history[column], values, rtol=4e-3, atol=4e-3), column


@pytest.mark.parametrize("kind", ["sample_weight", "class_weight"])
def test_weights_of_samples_and_classes(digits, kind):
    x, y = digits
    ours, theirs = make(), make()
    weights = np.linspace(0, 2, len(x)).astype(np.float32)
    options = {"batch_size": 128, "shuffle": False, "verbose": 0}
    options[kind] = weights if kind == "sample_weight" else {1: 3.0, 4: 0.5}
    data = (x[:100], y[:100], weights[:100])
    mine = bw.fit(ours, x, y, validation_data=data, **options)
    other = theirs.fit(x, y, validation_data=data, **options)
    for column, values in other.history.items():
        assert np.allclose(mine.history[column], values, rtol=2e-3, atol=2e-3), column
    close(numbers(ours.weights), numbers(theirs.weights))


def two_by_two():
    keras.utils.set_random_seed(2)
    a, b = layers.Input((6,), name="a"), layers.Input((3,), name="b")
    shared = layers.Dense(5, activation="tanh", name="shared")
    join = layers.Concatenate(name="join")([shared(a), layers.Dense(4, name="other")(b)])
    model = keras.Model([a, b], [layers.Dense(1, name="p")(join), layers.Dense(2, activation="softmax", name="q")(join)])
    losses = {"p": "mse", "q": "sparse_categorical_crossentropy"}
    model.compile("sgd", losses, loss_weights={"p": 0.5, "q": 2.0}, metrics={"q": ["accuracy"]})
    return model


@pytest.mark.parametrize("named", [True, False])
def test_several_inputs_and_outputs(named):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(96, 6)).astype("f4"), random.normal(size=(96, 3)).astype("f4")
    p, q = a.sum(1, keepdims=True), (b[:, 0] > 0).astype(int)
    x, y = ({"a": a, "b": b}, {"p": p, "q": q}) if named else ([a, b], [p, q])
    ours, theirs = two_by_two(), two_by_two()
    options = {"batch_size": 32, "epochs": 2, "shuffle": False, "verbose": 0}
    mine, other = bw.fit(ours, x, y, **options), theirs.fit(x, y, **options)
    for column, values in other.history.items():
        assert np.allclose(mine.history[column], values, rtol=2e-3, atol=2e-3), column
    close(numbers(ours.weights), numbers(theirs.weights))


def test_a_model_that_is_not_compiled(digits):
    model = make(compiled=False)
    history = bw.fit(model, *digits, epochs=2, verbose=0)
    assert set(history.history) == {"accuracy", "loss"}
    assert model.compiled and int(model.optimizer.iterations) == 32
    assert model.fit(*digits, verbose=0).history["accuracy"][0] > history.history["accuracy"][0]


def test_a_model_that_is_not_built(digits):
    model = keras.Sequential([layers.Flatten(), layers.Dense(10, activation="softmax")])
    bw.fit(model, *digits, verbose=0)
    assert model.predict(digits[0], verbose=0).shape == (512, 10)


def test_a_second_training_goes_on_in_another_order(digits):
    one, other = make(), make()
    for model in (one, other):
        bw.fit(model, *digits, epochs=1, verbose=0)
        bw.fit(model, *digits, epochs=1, verbose=0)
    close(numbers(one.weights), numbers(other.weights), 0)
    assert int(one.optimizer.iterations) == 32


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_begin(self, logs=None):
        self.seen.append("begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.seen.append(("epoch begin", epoch))

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(("batch begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(("batch", batch, list(logs)))

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(("epoch", epoch, list(logs)))

    def on_train_end(self, logs=None):
        self.seen.append(("end", sorted(logs or {})))


def test_a_callback_is_called_as_by_keras(digits):
    options = {"batch_size": 256, "epochs": 2, "verbose": 0, "validation_split": 0.25}
    ours, theirs = Recorder(), Recorder()
    bw.fit(make(), *digits, callbacks=[ours], **options)
    make().fit(*digits, callbacks=[theirs], **options)
    assert ours.seen == theirs.seen
    assert ours.params == theirs.params == {"verbose": 0, "epochs": 2, "steps": 2}


def test_callbacks_of_keras(digits, tmp_path):
    kernels = []

    class Mine(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            kernels.append(self.model.get_weights()[0].copy())

    model = make()
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.01 if epoch == 0 else rate / 2),
        keras.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}.keras")),
        keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        Mine(),
    ]
    history = bw.fit(model, *digits, batch_size=64, epochs=3, verbose=0, callbacks=callbacks)
    assert np.allclose(history.history["learning_rate"], [0.01, 0.005, 0.0025])
    assert type(callbacks[3]) is Mine
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == pytest.approx(history.history["loss"])
    for epoch in range(3):
        kept = keras.models.load_model(tmp_path / f"{epoch + 1}.keras")
        assert int(kept.optimizer.iterations) == 8 * (epoch + 1)
        assert np.array_equal(kept.get_weights()[0], kernels[epoch])
    assert np.array_equal(model.get_weights()[0], kernels[2])


def test_early_stopping_restores_the_best_weights(digits):
    kernels = []

    class Mine(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            kernels.append(self.model.get_weights()[0].copy())

    model = make(optimizer=keras.optimizers.Adam(0.1))
    stop = keras.callbacks.EarlyStopping("val_accuracy", patience=2, restore_best_weights=True)
    history = bw.fit(model, *digits, epochs=60, validation_split=0.25, verbose=0, callbacks=[stop, Mine()])
    assert len(history.epoch) < 60
    best = int(np.argmax(history.history["val_accuracy"]))
    assert np.array_equal(model.get_weights()[0], kernels[best])


def test_reduce_on_plateau_and_lambda(digits):
    model, seen = make(), []
    callbacks = [
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.1, patience=1, min_delta=1e9),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(int(model.optimizer.iterations))),
    ]
    bw.fit(model, *digits, batch_size=256, epochs=3, verbose=0, callbacks=callbacks)
    assert seen == [2, 4, 6]
    assert float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)) < 2e-4


def test_weights_for_validation_alone_are_refused(digits):
    class Mine(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            self.model.set_weights([0 * one for one in self.model.get_weights()])

    swap, options = keras.callbacks.SwapEMAWeights(swap_on_epoch=True), {"shuffle": False, "verbose": 0}
    for callback in (swap, Mine()):
        with pytest.raises(NotImplementedError, match="validat"):
            bw.fit(make(), *digits, validation_split=0.25, callbacks=[callback], **options)
    ours, theirs = (make(optimizer=keras.optimizers.Adam(use_ema=True, ema_momentum=0.9)) for _ in range(2))
    bw.fit(ours, *digits, callbacks=[swap], **options)
    theirs.fit(*digits, callbacks=[keras.callbacks.SwapEMAWeights(swap_on_epoch=True)], **options)
    close(numbers(ours.weights), numbers(theirs.weights))


def test_weights_that_a_callback_sets_are_trained_on(digits):
    class Zero(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.set_weights([0 * one for one in self.model.get_weights()])

    model = make(optimizer=keras.optimizers.SGD(0.0))
    bw.fit(model, *digits, epochs=2, verbose=0, callbacks=[Zero()])
    assert all(np.abs(one).max() == 0 for one in model.get_weights()[:2])


def test_an_exception_and_an_interrupt_keep_what_was_learnt(digits):
    class Fail(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise KeyError("mine")

    model = make()
    with pytest.raises(KeyError, match="mine"):
        bw.fit(model, *digits, batch_size=64, epochs=5, verbose=0, callbacks=[Fail()])
    assert int(model.optimizer.iterations) == 16

    class Interrupt(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        bw.fit(model, *digits, batch_size=64, epochs=1_000_000, verbose=0, callbacks=[Interrupt()])
    assert int(model.optimizer.iterations) > 16
    model.fit(*digits, verbose=0)


@keras.saving.register_keras_serializable()
class Strange(layers.Layer):
    def call(self, x):
        return x * 2


def test_what_is_not_supported_is_refused_by_name_before_training(digits):
    model = keras.Sequential([layers.Input((8, 8, 1)), Strange(name="very_strange"), layers.Flatten(), layers.Dense(10)])
    before = model.get_weights()
    with pytest.raises(bw.Error, match="(?i)strange"):
        bw.fit(model, *digits, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
    with pytest.raises(NotImplementedError, match="steps_per_epoch"):
        bw.fit(make(), *digits, steps_per_epoch=3)


def test_a_copy_of_a_keras_model_predicts_the_same(digits):
    model = make()
    model.fit(*digits, verbose=0)
    assert np.allclose(bw.Model(model).predict(digits[0]), model.predict(digits[0], verbose=0), atol=1e-5)


@pytest.mark.parametrize("order", [("keras", "batchwise"), ("batchwise", "keras")])
def test_import_in_either_order_and_fork(order):
    program = f"""
import {order[0]}, {order[1]}
import os
import numpy as np, keras, batchwise as bw
x = np.random.default_rng(0).normal(size=(64, 4)).astype("f4"); y = (x[:, 0] > 0).astype(int)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
for _ in range(2):
    model.fit(x, y, verbose=0)
    bw.fit(model, x, y, verbose=0)
twin = bw.Model(model)
pid = os.fork()
if pid == 0:
    os._exit(0 if twin.predict(x).shape == (64, 2) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


class Own:
    """What has the name of something of Keras's, and computes something else."""

    @staticmethod
    def loss():
        def mean_squared_error(y, p):
            return 3 * keras.ops.mean((y - p) ** 2, axis=-1)

        return {"loss": mean_squared_error}, "loss: mean_squared_error"

    @staticmethod
    def metric():
        class MeanAbsoluteError(keras.metrics.Mean):
            pass

        return {"metrics": [MeanAbsoluteError()]}, "metrics: MeanAbsoluteError"

    @staticmethod
    def optimizer():
        class SGD(keras.optimizers.SGD):
            pass

        return {"optimizer": SGD(0.1)}, "optimizer: SGD"

    @staticmethod
    def layer():
        class Dense(layers.Dense):
            def call(self, x):
                return 2 * super().call(x)

        return {"layer": Dense(1, name="mine")}, "layer mine: Dense"

    @staticmethod
    def activation():
        def relu(x):
            return -x

        return {"layer": layers.Dense(1, activation=relu, name="mine")}, "layer mine: relu"


@pytest.mark.parametrize("kind", ["loss", "metric", "optimizer", "layer", "activation"])
def test_what_only_has_the_name_of_something_of_keras(kind, line):
    options, message = getattr(Own, kind)()
    model = keras.Sequential([layers.Input((1,)), options.pop("layer", layers.Dense(1))])
    model.compile(**{"optimizer": "sgd", "loss": "mse", **options})
    before = numbers(model.weights)
    with pytest.raises(NotImplementedError, match=message):
        bw.fit(model, *line, verbose=0)
    close(before, numbers(model.weights), 0)
    if kind in ("layer", "activation"):
        with pytest.raises(NotImplementedError, match=message):
            bw.Model(model)
    else:
        assert np.allclose(bw.Model(model).predict(line[0]), model.predict(line[0], verbose=0), atol=1e-6)


def test_a_refusal_names_no_temporary_file(line):
    model = keras.Sequential([layers.Input((1,)), layers.Dense(1, dtype="mixed_bfloat16", name="half")])
    with pytest.raises(NotImplementedError, match="^layer half: dtype='mixed_bfloat16' is not supported"):
        bw.fit(model, *line, verbose=0)


def test_methods_that_were_replaced_are_refused(line):
    def mine(*_):
        return {}

    for what, message in (("model", "model: mine is a function of your own"), ("layer", "layer changed: mine is a function of your own")):
        model = keras.Sequential([layers.Input((1,)), layers.Dense(1, name="changed")])
        model.compile("sgd", "mse")
        if what == "model":
            model.train_step = mine
        else:
            model.layers[0].call = mine
        with pytest.raises(NotImplementedError, match=message):
            bw.fit(model, *line, verbose=0)


def test_what_only_has_the_name_of_a_loss_is_not_trained_by_a_copy_either(line):
    options, message = Own.loss()
    model = keras.Sequential([layers.Input((1,)), layers.Dense(1)])
    model.compile("sgd", **options)
    for copy in (bw.Model(model), pickle.loads(pickle.dumps(bw.Model(model)))):
        for call in (copy.fit, copy.evaluate, lambda x, y: copy.gradients(), lambda x, y: bw.plan(copy, x, y)):
            with pytest.raises(NotImplementedError, match=f"{message}.*compile"):
                call(*line)
        copy.compile("sgd", "mse")
        copy.fit(*line, verbose=0)


def test_what_a_configuration_of_keras_does_not_tell(line):
    def build(loss, metrics=(), optimizer="sgd"):
        keras.utils.set_random_seed(6)
        model = keras.Sequential([layers.Input((1,)), layers.Dense(2)])
        model.compile(optimizer, loss, metrics=list(metrics))
        return model

    options = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
    x, y = line[0], np.concatenate([line[1], -line[1]], axis=1)
    ours, theirs = (build(keras.losses.Huber(0.25)) for _ in range(2))
    mine, other = bw.fit(ours, x, y, **options), theirs.fit(x, y, **options)
    assert np.allclose(mine.history["loss"], other.history["loss"], rtol=2e-3)
    close(numbers(ours.weights), numbers(theirs.weights))
    assert "delta" not in ours.loss.get_config(), "Keras's object is as it was"
    decay = keras.optimizers.AdamW(weight_decay=0.5)
    decay.exclude_from_weight_decay(var_names=["bias"])
    for model, message in (
        (build(keras.losses.CosineSimilarity(axis=0)), "CosineSimilarity: axis=0"),
        (build("mse", [keras.metrics.CosineSimilarity(axis=0)]), "CosineSimilarity: axis=0"),
        (build("mse", optimizer=decay), "AdamW: exclude_from_weight_decay"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            bw.fit(model, x, y, **options)


def test_validation_in_another_order_or_a_list(line):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(96, 6)).astype("f4"), random.normal(size=(96, 3)).astype("f4")
    p, q = a.sum(1, keepdims=True), (b[:, 0] > 0).astype(int)
    options = {"batch_size": 32, "shuffle": False, "verbose": 0}
    made = [
        bw.fit(two_by_two(), {"b": b, "a": a}, {"q": q, "p": p}, validation_data=validation, **options).history["val_loss"]
        for validation in (({"a": a, "b": b}, {"p": p, "q": q}), ([a, b], [p, q]), [{"b": b, "a": a}, {"p": p, "q": q}])
    ]
    other = two_by_two().fit([a, b], [p, q], validation_data=([a, b], [p, q]), **options).history["val_loss"]
    assert all(np.allclose(one, other, rtol=2e-3) for one in made)
    model = keras.Sequential([layers.Input((1,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    assert "val_loss" in bw.fit(model, *line, validation_data=list(line), verbose=0).history


def test_a_refusal_while_training_begins_names_no_temporary_file(line, caplog):
    model = keras.Sequential([layers.Input((1,)), layers.Dense(1)])
    model.compile("sgd", keras.losses.MeanSquaredError(reduction="none"))
    with pytest.raises(NotImplementedError, match="^compile_config: loss mean_squared_error: reduction='none'") as failure:
        bw.fit(model, *line, verbose=0)
    assert failure.value.path is None
    assert caplog.text and "model.keras" not in caplog.text


@pytest.mark.parametrize("functional", [True, False])
def test_inputs_of_any_length_take_that_of_the_samples(functional):
    random = np.random.default_rng(0)
    x, y = random.integers(0, 9, size=(48, 7)), random.normal(size=(48, 1)).astype("f4")

    def build():
        keras.utils.set_random_seed(4)
        parts = [layers.Embedding(9, 4), layers.LSTM(3), layers.Dense(1)]
        if functional:
            first = made = layers.Input((None,))
            for part in parts:
                made = part(made)
            model = keras.Model(first, made)
        else:
            model = keras.Sequential([layers.Input((None,)), *parts])
        model.compile("adam", "mse")
        return model

    ours, theirs = build(), build()
    options = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
    mine, other = bw.fit(ours, x, y, **options), theirs.fit(x, y, **options)
    assert np.allclose(mine.history["loss"], other.history["loss"], rtol=2e-3)
    close(numbers(ours.weights), numbers(theirs.weights))
    assert ours.predict(x[:, :3], verbose=0).shape == (48, 1), "the Keras model takes any length as before"
    long, short = (bw.plan(ours, part, y, batch_size=16).to_frame()["whole_batch_bytes"][0] for part in (x, x[:, :3]))
    assert long > short
    with pytest.raises(NotImplementedError, match="any length"):
        bw.plan(ours)


def test_a_model_that_is_compiled_without_a_loss(digits):
    model = make(compiled=False)
    optimizer = keras.optimizers.Adam(0.01)
    model.compile(optimizer)
    history = bw.fit(model, *digits, epochs=2, verbose=0)
    assert model.optimizer is optimizer and int(optimizer.iterations) == 32
    assert model.loss == "sparse_categorical_crossentropy"
    assert model.fit(*digits, verbose=0).history["loss"][0] < history.history["loss"][-1]


def test_an_output_without_a_loss(line):
    def build():
        keras.utils.set_random_seed(5)
        first = layers.Input((1,))
        model = keras.Model(first, [layers.Dense(1, name="p")(first), layers.Dense(2, name="q")(first)])
        model.compile("sgd", ["mse", None])
        return model

    ours, theirs, (x, y) = build(), build(), line
    options = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
    mine, other = bw.fit(ours, x, [y, None], **options), theirs.fit(x, [y, None], **options)
    for column, values in other.history.items():
        assert np.allclose(mine.history[column], values, rtol=2e-3, atol=2e-3), column
    close(numbers(ours.weights), numbers(theirs.weights))
