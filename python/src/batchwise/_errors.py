"""Exceptions: one class for each status, each also the built-in that fits, with the location of the failure as data."""

from __future__ import annotations

import re

from . import _native as n

# The folder of the file by which a Keras model travels. Nobody knows that file, so messages do not name it.
TEMPORARY = "batchwise-keras-"
_UNKNOWN = re.compile(rf"[^\s:]*/{TEMPORARY}\w+/model\.keras: ")


def shown(text):
    """A message without the file that nobody knows."""
    return _UNKNOWN.sub("", text)


class Error(Exception):
    """What the library reports. The message names the thing, what was expected and what was found."""

    kind: str = "none"  # "usage", "file", "data", "model", "resources", "cancelled" or "internal"
    path: str | None = None  # the file
    line: int | None = None  # of that file, from 1
    column: int | None = None  # of a table, from 0
    argument: str | None = None  # the text that is wrong: "model", "optimizer"
    offset: int | None = None  # byte within that text, or else within the file
    layer: str | None = None  # its name
    sample: int | None = None  # its number in its source


class Cancelled(Error, RuntimeError):
    """Another thread called `cancel`, or another rank left the group."""


class InvalidArgument(Error, ValueError):
    """A value, shape or text that cannot be right."""


class NotFound(Error, LookupError):
    """There is no such file, member, layer or name."""


class MissingFile(NotFound, FileNotFoundError):
    """There is no such file."""


class ResourceExhausted(Error, MemoryError):
    """There is not enough memory, disk space or threads."""


class OutOfRange(Error, IndexError):
    """The end was reached."""


class Unimplemented(Error, NotImplementedError):
    """The request is understood, and not supported."""


class Internal(Error, RuntimeError):
    """A defect of the library or of one that it uses."""


class Unavailable(Error, ConnectionError):
    """Another rank is gone, or gives no sign of life."""


class DataLoss(Error, OSError):
    """A file is damaged."""


_BY_STATUS = {
    n.BW_CANCELLED: Cancelled,
    n.BW_INVALID_ARGUMENT: InvalidArgument,
    n.BW_NOT_FOUND: NotFound,
    n.BW_RESOURCE_EXHAUSTED: ResourceExhausted,
    n.BW_OUT_OF_RANGE: OutOfRange,
    n.BW_UNIMPLEMENTED: Unimplemented,
    n.BW_INTERNAL: Internal,
    n.BW_UNAVAILABLE: Unavailable,
    n.BW_DATA_LOSS: DataLoss,
}

_KINDS = ["none", "usage", "file", "data", "model", "resources", "cancelled", "internal"]


def from_context(pointer, status=None):
    """The exception of a context's last failure, which is thereby told and forgotten. `status`: what a call returned."""
    failure = n.lib.bw_last_error(pointer).contents
    status = status or failure.status or n.BW_INTERNAL
    kind = _BY_STATUS.get(status, Internal)
    if kind is NotFound and failure.kind == n.BW_ERROR_FILE:
        kind = MissingFile
    made = kind(shown(n.text(failure.message) or n.text(n.lib.bw_status_name(status))))
    made.kind = _KINDS[failure.kind]
    made.path, made.argument, made.layer = n.text(failure.path), n.text(failure.argument), n.text(failure.layer)
    if made.path and f"/{TEMPORARY}" in made.path:
        made.path = None
    for name in ("line", "column", "offset", "sample"):
        value = getattr(failure, name)
        setattr(made, name, None if value < 0 else value)
    return made
