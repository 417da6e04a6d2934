import numpy as np
import pytest

import batchwise as bw


class Recorder(bw.Callback):
    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            calls = object.__getattribute__(self, "calls")

            def record(*arguments):
                calls.append((name, *arguments))

            return record
        return object.__getattribute__(self, name)


def test_calls_and_their_order(line):
    recorder = Recorder()
    bw.Model("dense(1)").fit(*line, batch_size=32, epochs=2, validation_split=0.5, callbacks=[recorder], verbose=0)
    names = [name for name, *_ in recorder.calls]
    epoch = ["on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_test_begin", "on_test_end", "on_epoch_end"]
    assert names == ["on_train_begin", *epoch, *epoch, "on_train_end"]
    by_name = {name: arguments for name, *arguments in recorder.calls}
    assert by_name["on_epoch_end"][0] == 1 and set(by_name["on_epoch_end"][1]) == {"loss", "val_loss"}
    assert by_name["on_train_batch_end"][0] == 0 and set(by_name["on_train_batch_end"][1]) == {"loss"}


@pytest.mark.parametrize(
    "options, steps",
    [
        ({}, 2),
        ({"batch_size": 10}, 7),
        ({"batch_size": 10, "drop_remainder": True}, 6),
        ({"batch_size": 10, "accumulate": 3}, 3),
        ({"batch_size": 10, "validation_split": 0.25}, 5),
        ({"batch_size": "10,20"}, None),
    ],
)
def test_steps_are_known_before_the_first_one(line, options, steps):
    x, y = line[0][:64], line[1][:64]
    recorder = Recorder()
    bw.Model("dense(1)").fit(x, y, callbacks=[recorder], verbose=0, **options)
    assert recorder.params["steps"] == steps
    assert steps in (None, sum(name == "on_train_batch_end" for name, *_ in recorder.calls))


def test_steps_of_datasets(line):
    recorder = Recorder()
    samples = bw.Dataset(line[0][:64], line[1][:64]).batch(24)
    bw.Model("dense(1)").fit(samples, callbacks=[recorder], verbose=0)
    assert recorder.params["steps"] == 3
    bw.Model("dense(1)").fit(samples.repeat(2), callbacks=[recorder], verbose=0)
    assert recorder.params["steps"] is None


def test_a_method_that_is_never_called_is_named(line):
    class Batches(bw.Callback):
        def on_test_batch_end(self, batch, logs=None):
            raise AssertionError

    with pytest.warns(UserWarning, match="Batches.on_test_batch_end is not called"):
        bw.Model("dense(1)").fit(*line, validation_split=0.5, callbacks=[Batches()], verbose=0)


def test_logs_are_those_of_the_history(digits):
    seen = []
    history = bw.Model("flatten dense(10,softmax)").fit(
        *digits, epochs=3, callbacks=[lambda epoch, logs: seen.append((epoch, logs))], verbose=0
    )
    assert [epoch for epoch, _ in seen] == [0, 1, 2]
    assert [logs["loss"] for _, logs in seen] == history["loss"]


def test_stopping(line):
    class Stop(bw.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 2

    model = bw.Model("dense(1)")
    history = model.fit(*line, batch_size=8, epochs=5, callbacks=[Stop()], verbose=0)
    assert history.facts.updates == 3


def test_an_exception_stops_and_is_raised(line):
    def fail(epoch, logs):
        raise KeyError("mine")

    model = bw.Model("dense(1)")
    with pytest.raises(KeyError, match="mine"):
        model.fit(*line, epochs=5, callbacks=[fail], verbose=0)
    assert len(model.history.epoch) == 1
    model.fit(*line, verbose=0)


def test_learning_rate_and_weights_within_callbacks(line):
    rates, kernels = [], []

    class Halve(bw.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.5**epoch
            rates.append(self.model.learning_rate)

        def on_epoch_end(self, epoch, logs=None):
            kernels.append(self.model.get_weights()[0][0, 0])

    model = bw.Model("dense(1)")
    model.compile("sgd", "mse")
    model.fit(*line, epochs=3, callbacks=[Halve()], verbose=0)
    assert rates == [1, 0.5, 0.25]
    assert len(set(kernels)) == 3 and kernels[-1] == model.get_weights()[0][0, 0]


def test_initial_epoch(line):
    epochs = []
    history = bw.Model("dense(1)").fit(
        *line, epochs=5, initial_epoch=3, callbacks=[lambda epoch, _: epochs.append(epoch)], verbose=0
    )
    assert epochs == history.epoch == [3, 4]
    with pytest.raises(bw.InvalidArgument, match="nothing is left"):
        bw.Model("dense(1)").fit(*line, epochs=3, initial_epoch=3, verbose=0)


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_where_python_catches_output(line, capsys, verbose):
    bw.Model("dense(1)").fit(*line, epochs=2, verbose=verbose)
    out = capsys.readouterr().out
    assert "Epoch 2/2" in out and out.count("loss: ") >= 2


def test_progress_in_a_file(line, capfd):
    bw.Model("dense(1)").fit(*line, epochs=2, verbose=1)
    assert "Epoch 2/2" in capfd.readouterr().out


def test_the_callback_sees_an_update_each(line):
    losses = []

    class Losses(bw.Callback):
        def on_train_batch_end(self, batch, logs=None):
            losses.append(logs["loss"])

    bw.Model("dense(1)").fit(*line, batch_size=16, epochs=1, callbacks=[Losses()], verbose=0)
    assert len(losses) == 4 and all(np.isfinite(losses))
