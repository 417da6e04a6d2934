import pickle

import numpy as np
import pytest

import batchwise as bw


def test_arrays_of_every_type_are_read_as_they_are():
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?", ">f4", ">i2", "longdouble"):
        x = np.array([[0, 1], [1, 0], [1, 1]], dtype)
        assert np.array_equal(bw.Dataset(x).values("x"), x.astype(np.float32)), dtype


def test_strides():
    x = np.arange(120, dtype=np.float32).reshape(10, 3, 4)
    for one in (
        x[::2],
        x[:, :, ::2],
        x.transpose(0, 2, 1),
        x[:, 1:2],
        np.asfortranarray(x),
        x[::-1],
        np.broadcast_to(x[:1, :1, :1], (4, 2, 2)),
        x[:, None, :, 0],
    ):
        assert np.array_equal(bw.Dataset(one).values("x"), one)


def test_nothing_is_copied():
    x = np.zeros((4, 2), np.float32)
    data = bw.Dataset(x[:, ::-1][:, ::-1])
    assert data.values("x").sum() == 0
    x[1, 1] = 5
    assert data.values("x")[1, 1] == 5


def test_arrays_live_as_long_as_the_dataset():
    def make():
        return bw.Dataset(np.full((1000, 100), 7.0), np.full(1000, 3))

    data = make()
    assert len(data) == 1000
    np.random.default_rng(0).normal(size=(1000, 100))
    assert data.values("x").min() == 7 == data.values("x").max()


def test_what_is_no_number_is_refused():
    for x in (
        np.array([1 + 2j]),
        np.array([object()]),
        np.datetime64("2020-01-01") + np.arange(3),
        np.float32(3),
    ):
        with pytest.raises(ValueError):
            bw.Dataset(x)
    with pytest.raises(ValueError):
        len(bw.Dataset(np.zeros(3), np.zeros(4)))


def test_texts_are_for_layers_that_take_them():
    texts, labels = np.array(["good", "bad", "fine", "poor"] * 8), np.array([1, 0, 1, 0] * 8)
    model = bw.Model("text_vectorization(10,length=1) embedding(10,4) flatten dense(1,sigmoid)")
    model.fit(texts, labels, batch_size=8, epochs=60, verbose=0)
    assert np.array_equal(model.predict(list(texts[:4])) > 0.5, [[True], [False], [True], [False]])
    with pytest.raises(ValueError):
        bw.Model("dense(1)").fit(texts, labels, verbose=0)


def _texts_as():
    """The same texts as everything that may hold them."""
    texts = ["good one", "bad", "fine", "so poor"] * 8
    yield "list", texts
    yield "bytes", [text.encode() for text in texts]
    yield "array", np.array(texts)
    yield "objects", np.array(texts, dtype=object)
    pandas = pytest.importorskip("pandas")
    yield "series", pandas.Series(texts)
    yield "string", pandas.Series(texts, dtype="string")
    yield "frame", pandas.DataFrame({"text": texts})
    arrow = pytest.importorskip("pyarrow")
    yield "arrow", arrow.array(texts)
    yield "table", arrow.table({"text": texts})


def test_texts_of_every_kind_train_alike():
    labels, found = np.array([1, 0, 1, 0] * 8), {}
    for kind, texts in _texts_as():
        model = bw.Model("text_vectorization(10,length=2) embedding(10,4) flatten dense(2,softmax)")
        history = model.fit(texts, labels, epochs=2, validation_split=0.25, class_weight={0: 2.0}, verbose=0)
        found[kind] = (model.hash, history["val_loss"], model.predict(texts).tolist())
    assert len(found) == 9
    assert all(one == found["list"] for one in found.values())


def test_texts_that_are_missing_are_told():
    pandas = pytest.importorskip("pandas")
    model = bw.Model("text_vectorization(10,length=2) embedding(10,4) flatten dense(2,softmax)")
    for missing in (None, float("nan"), pandas.NA):
        for texts in (["a", missing, "b", missing], pandas.Series(["a", missing, "b", missing])):
            with pytest.raises(ValueError, match="2 of 4 texts are missing, the first one at position 1"):
                model.fit(texts, [0, 1, 0, 1], verbose=0)
    with pytest.raises(ValueError, match="number the classes"):
        bw.Model("dense(2,softmax)").fit(np.zeros((2, 2)), ["yes", "no"], verbose=0)


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    assert np.array_equal(bw.Dataset(frame, frame["a"]).values("x"), frame.to_numpy(np.float32))
    assert np.array_equal(bw.Dataset(frame, frame["a"]).values("y"), [1, 2, 3])


def test_order_and_parts():
    x = np.arange(100, dtype=np.float32)
    data = bw.Dataset(x)
    shuffled = data.shuffle(3).values("x")
    assert sorted(shuffled) == list(x) and list(shuffled) != list(x)
    assert list(data.skip(10).take(3).values("x")) == [10, 11, 12]
    assert list(data.shard(10, 3).values("x")) == list(range(3, 100, 10))
    assert list(data.take(2).repeat(2).values("x")) == [0, 1, 0, 1]
    assert list(data.take(2).concatenate(data.skip(98)).values("x")) == [0, 1, 98, 99]
    assert list(data.take(3).interleave(data.skip(97)).values("x")) == [0, 97, 1, 98, 2, 99]
    first, second = data.split(0.25)
    assert len(first) == 75 and list(second.values("x")) == list(range(75, 100))
    assert list(data.zip(bw.Dataset(2 * x)).values("y")[:3]) == [0, 2, 4]


def test_map_and_filter():
    x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
    data = bw.Dataset(x, y)
    assert np.array_equal(data.map(lambda x, y: (x + 1, y)).values("x"), x + 1)
    assert np.array_equal(data.map(lambda x, y: (x.sum(), 2 * y), x=()).values("x"), x.sum(1))
    assert list(data.filter(lambda x, y: y % 2 == 0).values("y")) == [0, 2, 4]
    one = data.map(lambda x, y, random: (random.normal(size=2), y), seed=1)
    assert np.array_equal(one.values("x"), one.values("x")) and np.unique(one.values("x")).size == 12


def test_an_exception_of_a_function_is_raised():
    data = bw.Dataset(np.zeros((4, 2))).map(lambda x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        data.values("x")
    with pytest.raises(bw.InvalidArgument, match="expected 1"):
        bw.Dataset(np.zeros((4, 2))).map(lambda x: (x, x)).values("x")
    with pytest.raises(ZeroDivisionError):
        bw.Model("dense(1)").fit(bw.Dataset(np.zeros((4, 2)), np.zeros(4)).map(lambda x, y: 1 / 0), verbose=0)


def test_functions_and_generators():
    data = bw.Dataset.from_function(lambda number, epoch: (np.full(3, number), number % 2), 10, x=(3,), y=((), np.int32))
    assert list(data.values("x")[:, 0]) == list(range(10))
    assert list(data.values("y")) == [0, 1] * 5

    def numbers():
        for i in range(20):
            yield np.array([i], np.float32), i

    stream = bw.Dataset.from_generator(numbers, x=(1,), y=())
    with pytest.raises(TypeError):
        len(stream)
    history = bw.Model("dense(1)").fit(stream.batch(5), epochs=2, verbose=0)
    assert history.facts.updates == 8


def test_sequences():
    data = bw.Dataset.from_sequences([[1, 2, 3], [4], [5, 6]])
    assert np.array_equal(data.values("x"), [[1, 2, 3], [4, 0, 0], [5, 6, 0]])


def test_batches():
    data = bw.Dataset(np.arange(10, dtype=np.float32), np.arange(10)).batch(4)
    assert [list(batch["x"]) for batch in data] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [len(batch["x"]) for batch in data.batch(4, drop_remainder=True)] == [4, 4]


def test_tables(tmp_path):
    (tmp_path / "t.csv").write_text("city,size,price\nRome,1,10\nOslo,2,\nRome,3,30\n")
    with pytest.raises(ValueError, match="line 3"):
        bw.Dataset(tmp_path / "t.csv", target="size").values("x")
    filled = bw.Dataset(tmp_path / "t.csv", target="size", missing="mean")
    assert filled.values("x")[1, -1] == 20
    assert {name: sorted(values or []) for name, values in filled.columns.items()} == {"city": ["Oslo", "Rome"], "price": []}
    with pytest.raises(TypeError, match="no argument 'wrong'"):
        len(bw.Dataset(tmp_path / "t.csv", wrong=1))


def test_files_read_for_a_model(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,kind\n" + "\n".join(f"{i},{i % 3},{'yes' if i % 2 else 'no'}" for i in range(40)))
    model = bw.Model("dense(2,softmax)")
    model.fit(bw.Dataset(tmp_path / "t.csv", target="kind").standardise(), verbose=0)
    assert sorted(model.classes) == ["no", "yes"]
    (tmp_path / "u.csv").write_text("a,b\n1,2\n3,1\n")
    assert model.predict(model.read(tmp_path / "u.csv")).shape == (2, 2)


def test_datasets_are_pickled(digits_file):
    data = bw.Dataset(digits_file).shuffle(2).batch(16)
    other = pickle.loads(pickle.dumps(data))
    assert np.array_equal(data.values("y"), other.values("y"))


def test_digits_from_file_and_from_arrays_train_alike(digits_file):
    with np.load(digits_file) as file:
        x, y = file["x"], file["y"]
    models = [bw.Model("flatten dense(10,softmax)") for _ in range(2)]
    models[0].fit(str(digits_file), verbose=0)
    models[1].fit(x, y, verbose=0)
    assert models[0].hash == models[1].hash


def test_repr(digits_file):
    data = bw.Dataset(digits_file).shuffle()
    assert "1797" in repr(data) and "shuffle" in data._repr_html_()
