"""Arrays without copies: anything that is like an array as NumPy's, and NumPy's as the library's view of it."""

import ctypes

import numpy as np

from . import _errors
from . import _native as n

_DTYPES = {
    "u1": n.BW_U8,
    "i1": n.BW_I8,
    "u2": n.BW_U16,
    "i2": n.BW_I16,
    "u4": n.BW_U32,
    "i4": n.BW_I32,
    "u8": n.BW_U64,
    "i8": n.BW_I64,
    "f2": n.BW_F16,
    "f4": n.BW_F32,
    "f8": n.BW_F64,
    "b1": n.BW_BOOL,
}


def as_array(value, name="x"):
    """Returns a NumPy array of numbers, the caller's own memory wherever that is possible."""
    texts = _from_texts(value, name) if name[0] == "x" else None
    if texts is not None:
        return texts
    array = value if isinstance(value, np.ndarray) else _from_other(value, name)
    if array.dtype.kind not in "uifb":
        array = _numbers(array, name)
    if array.dtype.str[1:] not in _DTYPES:  # long double, for example
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.ndim == 0:
        raise _errors.InvalidArgument(f"{name} is a single number; an array whose first axis counts the samples is expected")
    if array.ndim > n.BW_MAX_NDIM:
        raise _errors.InvalidArgument(f"{name} has {array.ndim} axes, more than {n.BW_MAX_NDIM}")
    return array


# ---- Text

_TEXT = np.dtype([("bytes", np.uintp), ("size", np.int64)])  # bw_text


class _Texts(np.ndarray):
    """Texts as the library has them, with the bytes that they refer to."""

    def __array_finalize__(self, made):
        self.kept = getattr(made, "kept", None)


def _from_texts(value, name):
    """Lists of str, NumPy's arrays of text or of objects, columns of text of frames and of Arrow; None if it is none of these."""
    if isinstance(value, _Texts):
        return value
    array = _objects(value)
    if array is None or array.dtype.kind not in "OUST" or array.size == 0:
        return None
    texts = array.reshape(-1).tolist()
    if not all(isinstance(text, (str, bytes)) for text in texts):
        missing = [i for i, text in enumerate(texts) if _is_missing(text)]
        if missing and all(isinstance(text, (str, bytes)) or _is_missing(text) for text in texts) and len(missing) < len(texts):
            found = f"{len(missing)} of {len(texts)} texts are missing, the first one at position {missing[0]}"
            raise _errors.InvalidArgument(f"{name}: {found}; put a text there, such as ''")
        return None
    texts = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts]
    sizes = np.array([len(text) for text in texts], np.int64)
    made = np.empty(array.shape, _TEXT).view(_Texts)
    made.kept = b"".join(texts)
    first = ctypes.cast(ctypes.c_char_p(made.kept), ctypes.c_void_p).value
    made["bytes"] = (first + np.concatenate(([0], np.cumsum(sizes)[:-1]))).astype(np.uintp).reshape(array.shape)
    made["size"] = sizes.reshape(array.shape)
    return made


def _objects(value):
    """What may be texts, as an array of NumPy; None for what cannot be any."""
    if isinstance(value, (list, tuple)):
        first = value[0] if value else ()
        while isinstance(first, (list, tuple)) and first:
            first = first[0]
        first = first.flat[0] if isinstance(first, np.ndarray) and first.size else first
        return np.array(value, dtype=object) if isinstance(first, (str, bytes)) or _is_missing(first) else None
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if hasattr(value, "iloc"):
        kinds = [value.dtype] if value.ndim == 1 else list(value.dtypes)
        return np.array(value, dtype=object) if kinds and all(str(kind) in ("object", "string", "str") for kind in kinds) else None
    return _from_arrow_texts(value) if _is_arrow(value) else None


def _is_missing(value):
    """None, NaN, and pandas's NA."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def _from_arrow_texts(value):
    """Columns of text, side by side if there are several."""
    columns = value.columns if hasattr(value, "column_names") else [value]
    if not columns or not all(str(getattr(one, "type", "")) in ("string", "large_string", "string_view") for one in columns):
        return None
    if not hasattr(value, "column_names"):
        return np.array(value.to_pylist(), dtype=object)
    return np.array([one.to_pylist() for one in columns], dtype=object).T


def _from_other(value, name):
    """Data frames, tensors and tables of other libraries, lists. Memory is shared where their layout allows it."""
    if hasattr(value, "iloc"):  # pandas: a frame, or one column of it as a frame
        frame = value if value.ndim == 2 else value.to_frame()
        made = _from_frame(frame, name)
        return made if value.ndim == 2 else made[:, 0] if made.ndim == 2 and made.shape[1] == 1 else made
    if _is_arrow(value):
        return _from_arrow(value, name)
    if hasattr(value, "tocsr"):
        raise _errors.InvalidArgument(f"{name} is a sparse matrix ({type(value).__name__}); give {name}.toarray(), or a LibSVM file")
    if hasattr(value, "detach"):  # torch: a tensor that takes part in autograd, or lies on a device, does not convert
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    try:
        if hasattr(value, "to_numpy"):
            return np.asarray(value.to_numpy())
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, BufferError) as failure:
        raise _errors.InvalidArgument(f"{name} cannot be read as an array: {failure}") from failure


def _numbers(array, name):
    """Arrays of objects (mixed columns of a data frame) and of other kinds of numbers (bfloat16) that convert without loss."""
    if array.dtype.kind in "OV":
        try:
            return array.astype(np.float32 if array.dtype.kind == "V" else np.float64)
        except (TypeError, ValueError) as failure:
            raise _errors.InvalidArgument(f"{name} holds something other than numbers: {failure}") from failure
    remedy = "; number the classes (np.unique(y, return_inverse=True)), or use batchwise.sklearn.Classifier"
    remedy = remedy if name[0] == "y" else ""
    raise _errors.InvalidArgument(f"{name} has the type {array.dtype}; numbers or truth values are expected{remedy}")


# ---- pandas


def _from_frame(frame, name):
    """A frame whose columns have one type is used where it lies. Others are put side by side in the type that holds them all;
    columns of categories become one of zeros and ones for each category, or their numbers if they are a target."""
    kinds = list(frame.dtypes)
    if all(isinstance(kind, np.dtype) and kind.kind in "uif" for kind in kinds) or all(kind == np.bool_ for kind in kinds):
        return frame.to_numpy()
    columns = []
    for i, (label, kind) in enumerate(zip(frame.columns, kinds)):
        column = frame.iloc[:, i]
        if hasattr(kind, "categories"):
            codes = column.cat.codes.to_numpy()
            one = codes if name[0] == "y" else codes[:, None] == np.arange(len(kind.categories))
        else:
            one = _from_column(column, kind, label, name)
        columns.append(one)
    return _side_by_side(columns)


def _from_column(column, kind, label, name):
    """One column of a frame: NumPy's numbers, or those of pandas's own types, in which values may be missing."""
    if isinstance(kind, np.dtype) and kind.kind in "uifb":
        return column.to_numpy()
    try:
        if getattr(kind, "kind", "") in "Mm":  # times would become nanoseconds since 1970
            raise TypeError
        if isinstance(kind, np.dtype) or column.isna().any():
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return _numeric(np.asarray(column.to_numpy(dtype=getattr(kind, "numpy_dtype", np.float64))))
    except (TypeError, ValueError) as failure:
        raise _errors.InvalidArgument(
            f"{name}: column {label!r} has the type {kind}; expected numbers, truth values or categories (astype('category'))"
        ) from failure


def _numeric(array):
    if array.dtype.kind not in "uifb":
        raise TypeError(array.dtype)
    return array


def _side_by_side(columns):
    kind = np.result_type(*columns) if columns else np.float32
    columns = [one[:, None] if one.ndim == 1 else one for one in columns]
    table = np.empty((len(columns[0]) if columns else 0, sum(one.shape[1] for one in columns)), kind)
    return np.concatenate(columns, axis=1, out=table) if columns else table


# ---- Arrow


def _is_arrow(value):
    if type(value).__module__.partition(".")[0] == "pyarrow":
        return True
    arrow = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return arrow and not hasattr(value, "to_numpy")


def _from_arrow(value, name):
    """Tables, record batches and single columns of them. A column without missing values in one chunk is used where it lies, and so
    are the columns of a table that lie at equal distances, as those made from one array do."""
    import pyarrow

    if type(value).__module__.partition(".")[0] != "pyarrow":
        value = pyarrow.table(value) if hasattr(value, "__arrow_c_stream__") else pyarrow.array(value)
    if not hasattr(value, "column_names"):
        return _from_arrow_column(value, name, pyarrow)
    columns = [
        _from_arrow_column(value.column(i), f"{name}: column {label!r}", pyarrow) for i, label in enumerate(value.column_names)
    ]
    if len(columns) == 1:
        return columns[0]
    return _evenly_spaced(columns) if _are_evenly_spaced(columns) else _side_by_side(columns)


def _from_arrow_column(column, name, pyarrow):
    kinds = pyarrow.types
    if hasattr(column, "chunks"):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if hasattr(column, "to_numpy_ndarray"):  # tensors of one shape
        return column.to_numpy_ndarray()
    kind = column.type
    if kinds.is_fixed_size_list(kind):
        if column.null_count:
            raise _errors.InvalidArgument(f"{name} has {column.null_count} missing lists")
        return _from_arrow_column(column.flatten(), name, pyarrow).reshape(len(column), kind.list_size)
    if kinds.is_dictionary(kind):
        return _from_arrow_categories(column, name, pyarrow)
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        raise _errors.InvalidArgument(f"{name} has the type {kind}; numbers, truth values or lists of equal length are expected")
    return _numeric(column.to_numpy(zero_copy_only=column.null_count == 0 and not kinds.is_boolean(kind)))


def _from_arrow_categories(column, name, pyarrow):
    """A dictionary of numbers is just another way to keep them. Of others, as of pandas's categories, inputs get a column of zeros and
    ones for each, and targets their number."""
    if not pyarrow.types.is_string(column.type.value_type) and not pyarrow.types.is_large_string(column.type.value_type):
        return _from_arrow_column(column.dictionary_decode(), name, pyarrow)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes if name[0] == "y" else codes[:, None] == np.arange(len(column.dictionary))


def _are_evenly_spaced(columns):
    first, second = columns[:2]
    gap = second.ctypes.data - first.ctypes.data
    return gap > 0 and all(
        one.ndim == 1 and one.dtype == first.dtype and one.strides == first.strides and one.ctypes.data - first.ctypes.data == i * gap
        for i, one in enumerate(columns)
    )


class _Spaced:
    """Columns at equal distances as one array, by NumPy's array interface; holds their memory."""

    def __init__(self, columns):
        first, second = columns[:2]
        self.columns = columns
        self.__array_interface__ = {
            "version": 3,
            "data": (first.ctypes.data, True),
            "typestr": first.dtype.str,
            "shape": (len(first), len(columns)),
            "strides": (first.strides[0], second.ctypes.data - first.ctypes.data),
        }


def _evenly_spaced(columns):
    return np.asarray(_Spaced(columns))


# ---- The library's view


def view(array):
    """The library's view of an array from `as_array`, and the array whose memory it uses: the same one with any strides, but for a
    single number that is broadcast along all axes, since strides of zero alone mean that there are no gaps."""
    if array.size > 1 and not any(array.strides):
        array = np.ascontiguousarray(array)
    dtype = n.BW_TEXT if array.dtype == _TEXT else _DTYPES[array.dtype.str[1:]]
    made = n.bw_array(data=array.ctypes.data, dtype=dtype, ndim=array.ndim)
    made.shape[: array.ndim] = array.shape
    made.strides[: array.ndim] = array.strides
    return made, array
