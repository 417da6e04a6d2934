"""Arrays are used where they lie: by address, and by the memory that a process takes."""

import subprocess
import sys

import numpy as np
import pytest

import batchwise as bw
from batchwise import arrays

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]


def shares(value, memory):
    """Whether the library reads a value in the memory of an array."""
    made, kept = arrays.view(arrays.as_array(value))
    low, high = np.lib.array_utils.byte_bounds(memory) if hasattr(np.lib, "array_utils") else np.byte_bounds(memory)
    return low <= made.data < high and np.shares_memory(kept, memory)


def layouts(array):
    """The same kind of values with other strides: every other row, columns in Fortran's order, backwards, broadcast, a part."""
    return {
        "whole": array,
        "every other": array[::2],
        "columns": np.asfortranarray(array),
        "backwards": array[::-1, ::-1],
        "part": array[1:, 1:3],
        "transposed": array[:4, :4].T,
        "broadcast": np.broadcast_to(array[:1], array.shape),
    }


@pytest.mark.parametrize("kind", DTYPES)
def test_numpy_of_any_type_and_strides(kind):
    base = np.arange(48).reshape(12, 4).astype(kind)
    for name, array in layouts(base).items():
        assert shares(array, array), name
        assert np.array_equal(bw.Dataset(array).values(), array.astype(np.float32)), name


def test_what_must_be_copied():
    for array in (np.broadcast_to(np.float32(3), (4, 2)), np.arange(6.0).astype(">f4"), np.arange(6, dtype=np.longdouble)):
        assert not shares(array, np.ascontiguousarray(array))
        assert np.array_equal(bw.Dataset(array).values(), array.astype(np.float32))


class Capsule:
    """What knows DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert shares(Capsule(array), array)
    assert np.array_equal(bw.Dataset(Capsule(array[:, ::2])).values(), array[:, ::2])


def test_frames_of_one_type():
    pandas = pytest.importorskip("pandas")
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    frame = pandas.DataFrame(array, columns=list("abc"), copy=False)
    assert shares(frame, array)
    assert shares(frame["b"], array)


def test_frames_of_several_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "number": np.array([1.5, 2, 3], np.float32),
            "count": np.array([7, 8, 9], np.int16),
            "truth": [True, False, True],
            "kind": pandas.Categorical(["b", "a", None], categories=["a", "b", "c"]),
            "missing": pandas.array([1, None, 3], dtype="Int64"),
        }
    )
    expected = [[1.5, 7, 1, 0, 1, 0, 1], [2, 8, 0, 1, 0, 0, np.nan], [3, 9, 1, 0, 0, 0, 3]]
    assert np.array_equal(arrays.as_array(frame), np.array(expected), equal_nan=True)
    assert arrays.as_array(frame[["count", "truth"]]).dtype == np.int16
    assert list(arrays.as_array(frame["kind"], "y")) == [1, 0, -1]
    frame["town"] = ["here", "there", "nowhere"]
    times = pandas.DataFrame({"n": [1.0, 2.0], "when": pandas.to_datetime(["2020-01-01", "2021-01-01"])})
    for timed in (times, times.assign(when=times["when"].dt.tz_localize("UTC")), times.assign(when=pandas.Timedelta(1))):
        with pytest.raises(ValueError, match="column 'when' has the type (date|time)"):
            arrays.as_array(timed)
    with pytest.raises(ValueError, match=r"column 'town'.*astype\('category'\)"):
        bw.Dataset(frame)


def test_what_is_no_array_of_numbers():
    class Sparse:
        tocsr = None

    with pytest.raises(bw.InvalidArgument, match=r"x is a sparse matrix \(Sparse\); give x.toarray\(\)"):
        arrays.as_array(Sparse())
    batches = [(np.zeros((4, 2)), np.zeros(4)), (np.zeros((4, 2)), np.zeros(4))]
    with pytest.raises(bw.InvalidArgument, match="x cannot be read as an array"):
        bw.Model("dense(1)").fit(batches)


def test_arrow():
    arrow = pytest.importorskip("pyarrow")
    numbers = np.arange(12, dtype=np.float64)
    column = arrow.array(numbers)
    assert shares(column, numbers)
    assert shares(arrow.chunked_array([column]), numbers)
    assert shares(arrow.table({"x": column}), numbers)
    lists = arrow.FixedSizeListArray.from_arrays(column, 3)
    assert shares(lists, numbers) and arrays.as_array(lists).shape == (4, 3)
    tensors = arrow.FixedShapeTensorArray.from_numpy_ndarray(numbers.reshape(2, 3, 2))
    assert shares(tensors, numbers) and arrays.as_array(tensors).shape == (2, 3, 2)


def test_arrow_tables():
    arrow = pytest.importorskip("pyarrow")
    array = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    even = arrow.table([arrow.array(array[:, i]) for i in range(3)], names=list("abc"))
    assert shares(even, array) and np.array_equal(arrays.as_array(even), array)
    mixed = arrow.table({"a": arrow.array([1.5, None, 3.0]), "b": arrow.array([1, 2, 3], arrow.int16())})
    assert np.array_equal(arrays.as_array(mixed), [[1.5, 1], [np.nan, 2], [3, 3]], equal_nan=True)
    chunks = arrow.concat_tables([mixed, mixed])
    assert arrays.as_array(chunks).shape == (6, 2)
    words = arrow.array(["u", "v", None, "u"]).dictionary_encode()
    assert arrays.as_array(words, "x").tolist() == [[True, False], [False, True], [False, False], [True, False]]
    assert arrays.as_array(words, "y").tolist() == [0, 1, -1, 0]
    assert arrays.as_array(arrow.array([7, 3, 7]).dictionary_encode(), "y").tolist() == [7, 3, 7], "numbers that are kept once"
    with pytest.raises(ValueError, match="column 'town' has the type string"):
        bw.Dataset(arrow.table({"n": [1, 2], "town": ["here", "there"]}))
    model = bw.Model("dense(1)")
    model.fit(even, array[:, 0], verbose=0)
    assert np.array_equal(model.predict(even), model.predict(array))


@pytest.mark.parametrize("layout", ["x", "x[:, ::-1]", "x[::2]", "np.moveaxis(x, 1, 2)"])
def test_training_takes_no_memory_for_samples(layout):
    """An array of 256 MB, of which training touches every value: what the process takes beside it stays far below."""
    program = f"""
import resource
import numpy as np, batchwise as bw
x = np.ones((4096, 128, 128), np.float32)
x = {layout}
y = np.zeros(len(x), np.int32)
model = bw.Model("flatten dense(2,softmax)", workers=1)
model.fit(x[:8], y[:8], verbose=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(x, y, batch_size=1024, verbose=0)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert grown < x.nbytes / 4, grown
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
