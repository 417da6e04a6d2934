"""Arrays without copies: anything that is like an array as NumPy's, and NumPy's as the library's view of it."""

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


def _from_other(value, name):
    """Data frames, tensors of other libraries, lists. Their own conversions share memory where they can."""
    if hasattr(value, "to_numpy"):
        return np.asarray(value.to_numpy())
    if hasattr(value, "detach"):  # torch: a tensor that takes part in autograd does not convert
        value = value.detach().cpu()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as failure:
        raise _errors.InvalidArgument(f"{name} cannot be read as an array: {failure}") from failure


def _numbers(array, name):
    """Arrays of objects (mixed columns of a data frame) and of other kinds of numbers (bfloat16) that convert without loss."""
    if array.dtype.kind in "OV":
        try:
            return array.astype(np.float32 if array.dtype.kind == "V" else np.float64)
        except (TypeError, ValueError) as failure:
            raise _errors.InvalidArgument(f"{name} holds something other than numbers: {failure}") from failure
    raise _errors.InvalidArgument(f"{name} has the type {array.dtype}; numbers or truth values are expected")


def view(array):
    """The library's view of an array from `as_array`, and the array whose memory it uses: the same one, or a copy if its strides
    cannot be taken."""
    strides = array.strides
    if any(step < 0 for step in strides) or (array.size > 1 and not any(strides)):
        array = np.ascontiguousarray(array)
        strides = array.strides
    made = n.bw_array(data=array.ctypes.data, dtype=_DTYPES[array.dtype.str[1:]], ndim=array.ndim)
    made.shape[: array.ndim] = array.shape
    made.strides[: array.ndim] = strides
    return made, array


def address(array):
    """The address of an array that is contiguous, for functions that read or write numbers."""
    return array.ctypes.data
