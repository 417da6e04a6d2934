"""Finds and binds the library. `lib.bw_fit` and the others are called as the header says; types come from the table."""

import ctypes
import os
import pathlib

from . import _native_table as table
from ._native_table import *  # noqa: F403  the enums and structs, under the names that the header has


def _path():
    """The library that $BATCHWISE_LIBRARY names, or the one that lies in the package."""
    given = os.environ.get("BATCHWISE_LIBRARY")
    if given:
        return given
    found = sorted((pathlib.Path(__file__).parent / "lib").glob("libbatchwise.so*"))
    if not found:
        raise ImportError(
            "batchwise: the package holds no libbatchwise.so; install it by pip, or let BATCHWISE_LIBRARY name the library"
        )
    return str(found[0])


class Library:
    """The functions of the header, each with its types."""

    def __init__(self, path):
        self.path = path
        self.handle = ctypes.CDLL(path)
        for name, (result, arguments) in table.FUNCTIONS.items():
            function = getattr(self.handle, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)


lib = Library(_path())
__version__ = lib.bw_version().decode()


def options(kind, **given):
    """Makes an options struct with the header's defaults; what is None stays at its default."""
    made = kind(size=ctypes.sizeof(kind), **kind._defaults_)
    for name, value in given.items():
        if value is not None:
            setattr(made, name, value.encode() if isinstance(value, str) else value)
    return made


def text(value):
    """A C string as str; None stays None."""
    return None if value is None else value.decode("utf-8", "replace")


def encoded(value):
    """A str or a path as a C string; None stays None."""
    return None if value is None else os.fsencode(value)
