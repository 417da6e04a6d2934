"""plan, tune, doctor, profile, verify, checkpoints and custom loops."""

import numpy as np
import pytest

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


def test_plan_does_not_grow_with_the_batch(digits):
    pytest.importorskip("pandas")
    plan = bw.plan("conv2d(8,3,relu) flatten dense(10,softmax)", *digits, batch_size=[64, 512, 1797])
    frame = plan.to_frame()
    assert list(frame.batch) == [64, 512, 1797]
    assert frame.whole_batch_bytes.is_monotonic_increasing
    assert frame.peak_bytes.max() < 2 * frame.peak_bytes.min()
    assert sum(plan[0].items.values()) == plan[0].facts.peak_bytes
    assert "conv2d" in repr(plan[0]) and "<table" in plan._repr_html_()


def test_plan_without_samples_and_with_too_little_memory():
    assert bw.plan("input(8) dense(4)", batch_size=16).peak_bytes > 0
    with pytest.raises(bw.ResourceExhausted):
        bw.plan("input(1000) dense(1000)", memory=10_000)
    with pytest.raises(bw.InvalidArgument):
        bw.plan("dense(4)")


def test_tune_gives_the_model_back(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, verbose=0)
    before = model.hash
    tuning = bw.tune(model, *digits, seconds=1, largest=256)
    assert model.hash == before
    assert {32, 64} <= {row[0] for row in tuning.rows}
    assert "<table" in tuning._repr_html_() and tuning.reason in repr(tuning)
    if tuning.decided:
        tuning.apply()
        assert model.learning_rate == pytest.approx(tuning.rate)
        assert "<svg" in tuning.plot()


def test_doctor_finds_unscaled_inputs(digits):
    x, y = digits
    findings = bw.doctor("flatten dense(10,softmax)", x * 4000, y, seconds=0)
    ids = [one.id for one in findings]
    assert "unscaled-inputs" in ids
    assert "unscaled-inputs" in repr(findings) and "unscaled-inputs" in findings._repr_html_()
    assert {one.severity for one in findings} <= {"note", "warning", "error"}


def test_doctor_finds_unshuffled_labels(digits):
    x, y = digits
    order = np.argsort(y, kind="stable")
    assert "unshuffled-labels" in {one.id for one in bw.doctor(EXPRESSION, x[order], y[order], seconds=0.2)}


def test_review(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, verbose=0)
    assert isinstance(repr(bw.review(model, *digits)), str)
    with pytest.raises(ValueError, match="not trained"):
        bw.review(bw.Model(EXPRESSION), *digits)


def test_profile_leaves_the_model(digits):
    model = bw.Model(EXPRESSION)
    model.fit(*digits, verbose=0)
    before = model.hash
    profile = bw.profile(model, *digits, seconds=0.3)
    assert model.hash == before
    assert {"forward", "backward"} <= {row[0] for row in profile.rows}
    assert sum(one.seconds for one in profile.parts) == pytest.approx(profile.facts.step_seconds * profile.facts.workers, rel=1e-3)
    assert profile.predict().step_seconds == pytest.approx(profile.facts.step_seconds, rel=1e-3)
    assert "us" in repr(profile)


def test_trace_and_noise(digits, tmp_path):
    model = bw.Model(EXPRESSION)
    history = model.fit(*digits, batch_size=256, trace_steps=3, noise_every=1, verbose=0)
    history.save_trace(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").read_text().startswith(("{", "["))
    assert len(history.events()) > 3
    assert "noise_scale" in history.history and history.noise.steps > 0


def test_verify(digits):
    model = bw.Model(EXPRESSION)
    proof = bw.verify(model, *digits, batch_size=64)
    assert proof.proven and bool(proof)
    assert [row[0] for row in proof.rows] == ["workers", "ranks", "accumulation", "tile"]
    assert not model.built


def test_a_killed_run_goes_on_with_the_same_bits(digits, tmp_path):
    def fit(folder, **options):
        model = bw.Model(EXPRESSION)
        history = model.fit(*digits, epochs=4, seed=1, verbose=0, checkpoint_dir=folder, **options)
        return model.hash, history

    def stop(epoch, logs):
        return epoch == 1

    whole, _ = fit(tmp_path / "a")
    fit(tmp_path / "b", callbacks=[stop])
    again, history = fit(tmp_path / "b", resume=True)
    assert again == whole and history.facts.resumed_step > 0


def test_a_custom_loop_is_fit(digits):
    x, y = digits
    data = bw.Dataset(x, y).shuffle(3).batch(64)
    by_fit, by_hand = bw.Model(EXPRESSION), bw.Model(EXPRESSION)
    for model in (by_fit, by_hand):
        model.compile("adam", "sparse_categorical_crossentropy")
        model.build((8, 8, 1), seed=3)
    by_fit.fit(data, epochs=2, seed=3, verbose=0)
    gradients = by_hand.gradients(seed=3)
    for epoch in range(2):
        for batch in by_hand.iterate(data, epoch):
            gradients.add(batch)
            gradients.apply()
    assert by_hand.hash == by_fit.hash


def test_gradients_by_hand(line):
    x, y = line
    model = bw.Model("dense(1)")
    model.compile("sgd", "mse")
    model.build((1,))
    model.set_weights([[[0.5]], [0.0]])
    gradients = model.gradients()
    batch = next(model.iterate(bw.Dataset(x, y).batch(64)))
    error = 0.5 * x - y
    assert gradients.add(batch) == pytest.approx((error**2).mean(), rel=1e-6)
    assert gradients.get(0)[0, 0] == pytest.approx((2 * error * x).mean(), rel=1e-5)
    assert gradients.norm() == pytest.approx(np.hypot((2 * error * x).mean(), (2 * error).mean()), rel=1e-5)
    assert np.allclose(gradients.losses(batch), (error**2)[:, 0], rtol=1e-5)
    assert np.allclose(gradients.predict(batch), 0.5 * x)
    assert list(batch.select([3, 5]).numbers) == [3, 5]
    assert np.array_equal(batch.x, x)


def test_checkpoints_of_a_custom_loop(line, tmp_path):
    model, other = bw.Model("dense(1)"), bw.Model("dense(1)")
    for one in (model, other):
        one.compile("adam", "mse")
        one.build((1,))
    model.fit(*line, verbose=0)
    model.checkpoint(tmp_path, 7, {"epoch": np.array([3])})
    epoch = np.zeros(1, int)
    assert other.resume(tmp_path, {"epoch": epoch}) == 7
    assert epoch[0] == 3 and other.hash == model.hash
    assert other.resume(tmp_path / "none") is None


def test_machine():
    assert bw.machine().flops > 1e8
