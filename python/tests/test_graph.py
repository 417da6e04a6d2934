import numpy as np
import pytest

import batchwise as bw


def test_two_inputs_and_a_shared_layer():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(40, 3)).astype("f4"), random.normal(size=(40, 3)).astype("f4")
    graph = bw.Graph()
    first, second = graph.input((3,), "a"), graph.input((3,), "b")
    one = first.layer("dense(2)")
    graph.output(graph.merge("add", [one, one.again(second)]), "sum")
    model = graph.model()
    model.compile("sgd", "mse")
    model.build()
    kernel, bias = model.get_weights()
    assert np.allclose(model.predict({"a": a, "b": b}), (a + b) @ kernel + 2 * bias, atol=1e-5)
    assert np.allclose(model.predict([a, b]), (a + b) @ kernel + 2 * bias, atol=1e-5)
    assert model.fit([a, b], np.zeros((40, 2)), epochs=3, verbose=0)["loss"][-1] > 0


def test_arithmetic_and_a_loss_of_ones_own():
    x = np.random.default_rng(1).normal(size=(32, 4)).astype("f4")
    y = x.sum(1, keepdims=True)
    graph = bw.Graph()
    out = graph.input((4,)).layer("dense(1)")
    graph.output(out)
    target = graph.target((1,))
    graph.add_loss(((1 - (target - out) ** 2 * -2 + 3) / 2 - 2).sum())
    model = graph.model()
    model.compile("sgd(lr=0)")
    model.build()
    kernel, bias = model.get_weights()
    expected = ((x @ kernel + bias - y) ** 2).mean()
    assert model.fit(x, y, verbose=0)["loss"][0] == pytest.approx(expected, rel=1e-4)


def test_an_operator_in_python():
    x = np.random.default_rng(2).normal(size=(64, 3)).astype("f4")
    y = (x**3).sum(1, keepdims=True)

    def make(custom):
        graph = bw.Graph()
        node = graph.input((3,)).layer("dense(3)")
        if custom:
            node = graph.custom("cube", [node], lambda x: x**3, lambda inputs, output, gradient: 3 * inputs[0] ** 2 * gradient)
        else:
            node = node * node * node
        graph.output(node.layer("dense(1)"))
        model = graph.model()
        model.compile("sgd(lr=0.001)", "mse")
        return model.fit(x, y, epochs=3, batch_size=16, verbose=0, seed=1)["loss"]

    assert make(True) == pytest.approx(make(False), rel=1e-4)


def test_an_exception_in_an_operator_is_raised():
    graph = bw.Graph()
    node = graph.custom("bad", [graph.input((3,))], lambda x: 1 / 0, lambda *_: None)
    graph.output(node.layer("dense(1)"))
    with pytest.raises(ZeroDivisionError):
        graph.model().fit(np.zeros((8, 3)), np.zeros((8, 1)), verbose=0)
    with pytest.raises(TypeError):
        bw.Graph().custom("worse", [bw.Graph().input((3,))], None, shape=lambda *_: None)
