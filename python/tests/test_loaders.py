"""Batches that come one after another: generators, classes of Keras's kind, any iterable."""

import multiprocessing
import threading

import numpy as np
import pytest

import batchwise as bw

EXPRESSION = "dense(8,relu) dense(3,softmax)"


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 5)).astype(np.float32)
    return x, x[:, :3].argmax(axis=1)


def batches(x, y, size):
    for first in range(0, len(x), size):
        yield x[first : first + size], y[first : first + size]


class Loader:
    """As PyTorch's: can be asked again, knows how many batches there are, and counts its passes."""

    def __init__(self, x, y, size):
        self.x, self.y, self.size, self.passes = x, y, size, 0

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __iter__(self):
        self.passes += 1
        return batches(self.x, self.y, self.size)


class Indexed:
    """As Keras's PyDataset."""

    def __init__(self, x, y, size):
        self.x, self.y, self.size, self.ends = x, y, size, 0

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __getitem__(self, i):
        part = slice(i * self.size, (i + 1) * self.size)
        return self.x[part], self.y[part]

    def on_epoch_end(self):
        self.ends += 1


def fitted(*data, **options):
    model = bw.Model(EXPRESSION)
    history = model.fit(*data, seed=4, verbose=0, **options)
    return model, history


@pytest.mark.parametrize("size", [16, 64, 200])
def test_a_loader_trains_as_its_samples_do(table, size):
    loader = Loader(*table, size)
    model, history = fitted(loader, epochs=3, validation_data=Indexed(*table, 50))
    expected, columns = fitted(*table, batch_size=size, epochs=3, shuffle=False, validation_data=table)
    assert model.hash == expected.hash
    assert history.history == columns.history
    assert loader.passes <= 1 + 3 + 1  # one counts the samples, and one may be begun ahead of an epoch that does not come
    assert np.array_equal(model.predict(loader), expected.predict(table[0]))
    assert model.evaluate(loader) == expected.evaluate(*table)


def test_any_batch_size_whatever_the_loader_has(table):
    model, _ = fitted(Loader(*table, 7), batch_size=96, epochs=2)
    expected, _ = fitted(*table, batch_size=96, epochs=2, shuffle=False)
    assert model.hash == expected.hash


def test_batches_by_number(table):
    data = Indexed(*table, 32)
    model, _ = fitted(data, epochs=2)
    assert data.ends >= 1  # before the second epoch
    assert model.hash == fitted(*table, batch_size=32, epochs=2, shuffle=False)[0].hash


def test_each_epoch_asks_again(table):
    """What a loader gives may differ from epoch to epoch: it is seen as it is."""
    x, y = table

    class Moving(Loader):
        def __iter__(self):
            self.passes += 1
            return batches(np.full_like(self.x, self.passes), self.y, self.size)

    seen = []
    model = bw.Model("dense(1)")
    model.compile("sgd(lr=0)", "mse")
    model.build((5,))
    model.set_weights([np.full((5, 1), 0.2), [0.0]])
    loader = Moving(x, np.zeros(len(x), np.float32), 40)
    model.fit(loader, epochs=3, verbose=0, callbacks=[lambda epoch, logs: seen.append(logs["loss"])])
    assert np.allclose(seen, [1.0, 9.0, 16.0])  # the second pass counted the samples


class Forking(Loader):
    """As PyTorch's with workers: a pass begins with a process of its own, which ends in order."""

    def __iter__(self):
        threading.current_thread()  # from now on the thread has an object of Python's, whoever made it
        child = multiprocessing.get_context("fork").Process(target=id, args=(0,))
        child.start()
        child.join()
        self.codes = [*getattr(self, "codes", []), child.exitcode]
        return super().__iter__()


def test_processes_that_a_pass_begins_with_end_in_order(table):
    loader = Forking(*table, 40)
    fitted(loader, epochs=3)
    assert len(loader.codes) >= 3 and set(loader.codes) == {0}

    class Failing(Loader):
        def __iter__(self):
            if self.passes == 2:
                raise KeyError("mine")
            return super().__iter__()

    with pytest.raises(KeyError, match="mine"):
        fitted(Failing(*table, 40), epochs=9)


def test_a_generator_is_kept_for_later_epochs(table):
    model, history = fitted(batches(*table, 32), epochs=3)
    expected, columns = fitted(*table, batch_size=32, epochs=3, shuffle=False)
    assert model.hash == expected.hash and history.history == columns.history


def test_steps_per_epoch_go_on_where_the_last_epoch_ended(table):
    x, y = table

    def forever():
        while True:
            yield from batches(x, y, 40)

    model, history = fitted(forever(), steps_per_epoch=2, epochs=5)
    assert history.facts.updates == 10
    assert model.hash == fitted(Loader(x, y, 40), steps_per_epoch=2, epochs=5)[0].hash
    by_hand = bw.Model(EXPRESSION)
    by_hand.fit(*table, batch_size=40, epochs=2, shuffle=False, seed=4, verbose=0)
    assert np.allclose(model.get_weights()[0], by_hand.get_weights()[0], atol=1e-6)


def test_a_generator_that_ends_with_the_last_epoch(table):
    model, history = fitted(batches(*table, 40), steps_per_epoch=5, epochs=1)
    assert history.facts.updates == 5


def test_steps_of_other_sizes_than_the_loaders(table):
    x, y = table
    model, _ = fitted(Loader(x, y, 30), batch_size=50, steps_per_epoch=2, epochs=4)
    assert np.allclose(model.get_weights()[0], fitted(x, y, batch_size=50, epochs=2, shuffle=False)[0].get_weights()[0], atol=1e-6)


def test_several_inputs_by_name(table):
    x, y = table
    graph = bw.Graph()
    a, b = graph.input((3,), "a"), graph.input((2,), "b")
    graph.output(graph.merge("concat", [a, b]).layer("dense(3,softmax)"), "kind")
    model = graph.model()
    named = [({"a": x[:100, :3], "b": x[:100, 3:]}, y[:100]), ({"a": x[100:, :3], "b": x[100:, 3:]}, y[100:])]
    model.fit(iter(named), epochs=2, verbose=0)
    listed = [((one["a"], one["b"]), y) for one, y in named]
    assert np.array_equal(model.predict(iter(listed)), model.predict({"a": x[:, :3], "b": x[:, 3:]}))


def test_weights_of_samples(table):
    x, y = table
    weights = np.linspace(0, 2, len(x)).astype(np.float32)
    three = [(x[i : i + 50], y[i : i + 50], weights[i : i + 50]) for i in range(0, 200, 50)]
    model, _ = fitted(iter(three), epochs=2)
    assert model.hash == fitted(x, y, sample_weight=weights, batch_size=50, epochs=2, shuffle=False)[0].hash


def test_a_loader_as_a_dataset(table):
    data = bw.Dataset(Loader(*table, 40)).map(lambda x, y: (2 * x, y))
    assert len(data) == 200 and data.shape == (5,)
    assert np.allclose(next(iter(data))["x"], 2 * table[0][:40])


def test_what_goes_wrong(table):
    x, y = table
    with pytest.raises(ValueError, match="validation_split"):
        fitted(Loader(x, y, 32), validation_split=0.2)
    with pytest.raises(NotImplementedError, match="steps_per_epoch"):
        fitted(x, y, steps_per_epoch=3)
    with pytest.raises(ValueError, match="no batches"):
        fitted(iter([]))
    with pytest.raises(ValueError, match="its own targets"):
        fitted(Loader(x, y, 32), y)
    with pytest.raises(ValueError, match="different numbers of samples"):
        fitted(iter([(x[:10], y[:9])]))
    with pytest.raises(ValueError, match=r"\(4,\) in one batch and \(5,\)"):
        fitted(iter([(x[:10], y[:10]), (x[:10, :4], y[:10])]))
    with pytest.raises(IndexError, match="ended after 200 of the 320"):
        fitted(batches(x, y, 32), steps_per_epoch=10)

    def failing():
        yield x[:10], y[:10]
        raise KeyError("mine")

    for more in ({}, {"steps_per_epoch": 5}):
        with pytest.raises(KeyError, match="mine"):
            fitted(failing(), **more)


def test_batches_of_lists_of_numbers(table):
    """A list of NumPy's numbers is one array, not several inputs."""
    x, y = table
    lists = [([list(row) for row in x[i : i + 8]], list(y[i : i + 8])) for i in range(0, len(x), 8)]
    ours = bw.Model("dense(1)").fit(iter(lists), seed=0, verbose=0)
    assert ours["loss"] == pytest.approx(bw.Model("dense(1)").fit(batches(x, y, 8), seed=0, verbose=0)["loss"])
