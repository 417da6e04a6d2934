import copy
import pickle

import numpy as np
import pytest

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


@pytest.fixture
def trained(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, epochs=2, verbose=0)
    return model


def test_digits_are_learnt(digits):
    x, y = digits
    model = bw.Model("conv2d(16,3,relu) maxpool2d(2) flatten dense(10,softmax)")
    model.compile("adam(lr=0.01)", metrics=["accuracy"])
    history = model.fit(x, y, batch_size=32, epochs=5, validation_split=0.2, verbose=0)
    assert set(history.history) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert history.epoch == [0, 1, 2, 3, 4]
    assert history["val_accuracy"][-1] > 0.9
    assert (model.predict(x).argmax(1) == y).mean() > 0.95
    assert history.facts.updates == 5 * -(-1437 // 32)


def test_validation_split_takes_the_last_samples_as_keras(line):
    x, y = line
    model = bw.Model("dense(1)")
    model.compile("sgd(lr=0)", "mse")
    history = model.fit(x, y, validation_split=0.25, verbose=0)
    assert history["val_loss"][0] == pytest.approx(model.evaluate(x[48:], y[48:]), rel=1e-6)
    assert history["loss"][0] == pytest.approx(model.evaluate(x[:48], y[:48]), rel=1e-6)


def test_gradient_descent_by_hand(line):
    x, y = line
    model = bw.Model("dense(1)")
    model.compile("sgd(lr=0.1)", "mse")
    model.build((1,))
    model.set_weights([np.array([[0.5]]), np.array([0.25])])
    model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
    error = 0.5 * x + 0.25 - y
    kernel, bias = model.get_weights()
    assert kernel[0, 0] == pytest.approx(0.5 - 0.1 * 2 * (error * x).mean(), abs=1e-6)
    assert bias[0] == pytest.approx(0.25 - 0.1 * 2 * error.mean(), abs=1e-6)


def test_evaluate_and_predict_agree(trained, digits):
    x, y = digits
    loss, accuracy = trained.evaluate(x, y)[0], trained.evaluate(x, y, return_dict=True)["accuracy"]
    p = trained.predict(x)
    assert p.dtype == np.float32 and p.shape == (len(x), 10)
    assert accuracy == pytest.approx((p.argmax(1) == y).mean())
    assert loss == pytest.approx(-np.log(p[np.arange(len(y)), y]).mean(), rel=1e-4)


def test_weights_of_samples_and_classes(digits):
    x, y = digits
    w = np.where(y == 3, 0.0, 1.0).astype(np.float32)
    models = [bw.Model(EXPRESSION) for _ in range(3)]
    models[0].fit(x, y, sample_weight=w, verbose=0)
    models[1].fit(x, y, class_weight={3: 0.0}, verbose=0)
    models[2].fit(x, y, verbose=0)
    assert models[0].hash == models[1].hash != models[2].hash


def test_weights_of_validation_alone(digits):
    x, y = digits
    models = [bw.Model(EXPRESSION) for _ in range(2)]
    weights = np.linspace(0, 2, 100)
    history = models[0].fit(x, y, validation_data=(x[:100], y[:100], weights), verbose=0)
    models[1].fit(x, y, verbose=0)
    assert models[0].hash == models[1].hash
    assert history["val_loss"][0] == pytest.approx(models[0].evaluate(x[:100], y[:100], weights)[0])


def test_save_load_and_copies_predict_the_same(trained, digits, tmp_path):
    x = digits[0][:7]
    expected = trained.predict(x)
    trained.save(tmp_path / "m.keras")
    for other in (
        bw.Model(tmp_path / "m.keras"),
        bw.Model(str(tmp_path / "m.keras")),
        pickle.loads(pickle.dumps(trained)),
        copy.deepcopy(trained),
    ):
        assert np.array_equal(other.predict(x), expected)
        assert other.optimizer.name == "adam"


def test_a_copy_trains_on_alike(trained, digits):
    other = copy.copy(trained)
    trained.fit(*digits, verbose=0, seed=5)
    other.fit(*digits, verbose=0, seed=5)
    assert trained.hash == other.hash


def test_unbuilt_models_are_copied():
    model = bw.Model(EXPRESSION)
    model.compile("sgd(lr=0.5)", metrics=["accuracy"])
    other = pickle.loads(pickle.dumps(model))
    assert (other.expression, other.optimizer.name, other.learning_rate) == (EXPRESSION, "sgd", 0.5)


def test_weights_in_and_out(trained, digits):
    weights = trained.get_weights()
    assert [one.shape for one in weights] == [(64, 16), (16,), (16, 10), (10,)]
    other = bw.Model(EXPRESSION)
    other.build((8, 8, 1))
    other.set_weights(weights)
    assert other.hash == trained.hash
    with pytest.raises(bw.InvalidArgument, match="expected"):
        other.set_weights([weights[1], *weights[1:]])


def test_facts(trained, capsys):
    assert trained.count_params() == 64 * 16 + 16 + 160 + 10
    assert [layer.class_name for layer in trained.layers] == ["Flatten", "Dense", "Dense"]
    assert trained.outputs[0].shape == (10,)
    trained.summary()
    assert "1,210" in capsys.readouterr().out
    assert "1,210" in repr(trained)


def test_targets_of_several_numbers(line):
    x, y = line
    model = bw.Model("input(1) dense(2)")
    model.fit(x, np.hstack([y, -y]), verbose=0)
    assert model.predict(x).shape == (64, 2)


def test_the_order_differs_between_trainings_and_not_between_runs(digits):
    def train():
        model = bw.Model(EXPRESSION)
        hashes = []
        for _ in range(2):
            model.fit(*digits, verbose=0)
            hashes.append(model.hash)
        return hashes

    assert train() == train()


def test_errors_are_the_fitting_built_ins(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'dense'") as caught:
        bw.Model("densee(10)")
    assert isinstance(caught.value, bw.InvalidArgument) and caught.value.argument == "model" and caught.value.offset == 0
    with pytest.raises(FileNotFoundError) as caught:
        bw.Model("nowhere.keras")
    assert isinstance(caught.value, bw.NotFound) and caught.value.path == "nowhere.keras"
    (tmp_path / "bad.keras").write_bytes(b"PK nonsense")
    with pytest.raises(bw.DataLoss):
        bw.Model(tmp_path / "bad.keras")


def test_too_little_memory_is_refused_before_training(digits):
    model = bw.Model("flatten dense(512,relu) dense(10,softmax)")
    with pytest.raises(MemoryError, match="memory|budget") as caught:
        model.fit(*digits, memory=100_000, verbose=0)
    assert caught.value.kind == "resources"
    model.fit(*digits, verbose=0)  # the failure is forgotten


def test_a_failure_does_not_stay(digits):
    model = bw.Model("flatten dense(10,softmax)")
    with pytest.raises(bw.InvalidArgument):
        model.compile("no_such_optimizer")
    model.compile("adam")
    model.fit(*digits, verbose=0)


def test_early_stopping_of_the_library(digits):
    model = bw.Model("flatten dense(10,softmax)")
    model.compile("adam(lr=0.1)")
    history = model.fit(
        *digits, epochs=50, validation_split=0.3, early_stopping={"patience": 1, "restore_best_weights": True}, verbose=0
    )
    assert len(history.epoch) < 50


def test_a_closed_model_is_refused(line):
    with bw.Model("dense(1)") as model:
        history = model.fit(*line, verbose=0)
    with pytest.raises(bw.InvalidArgument, match="closed"):
        model.predict(line[0])
    with pytest.raises(bw.InvalidArgument, match="closed"):
        _ = model.hash
    assert len(history["loss"]) == 1
