"""Results as data: structs of the library as records, and tables that print in terminals and notebooks."""

from __future__ import annotations

import ctypes
import html
import math

from . import _native as n


class Record:
    """The members of a native struct as attributes. `dict(record)` and `record.to_dict()` give them by name."""

    def __init__(self, **members):
        self.__dict__.update(members)

    @classmethod
    def of(cls, struct):
        """Copies a struct, with all texts and arrays in it, since the library only lends them."""
        members = {}
        for name in (field[0] for field in struct._fields_):
            if name == "size":
                continue
            value = getattr(struct, name)
            if isinstance(value, bytes):
                value = n.text(value)
            elif isinstance(value, ctypes.Structure):
                value = Record.of(value)
            elif isinstance(value, ctypes.Array):
                value = tuple(value)
            members[name] = value
        if "ndim" in members and "shape" in members:
            members["shape"] = members["shape"][: members.pop("ndim")]
        return cls(**members)

    def keys(self):
        return self.__dict__.keys()

    def __getitem__(self, name):
        return self.__dict__[name]

    def __eq__(self, other):
        return isinstance(other, Record) and self.__dict__ == other.__dict__

    def to_dict(self):
        """A dict, with records within it as dicts."""
        return {name: value.to_dict() if isinstance(value, Record) else value for name, value in self.__dict__.items()}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def _repr_html_(self):
        return html_table(["", ""], self.__dict__.items())


def shown(value):
    """A value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def as_bytes(count):
    """12.5 MiB and so on."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def text_table(columns, rows):
    """Columns of text: numbers to the right, everything else to the left."""
    cells = [[shown(value) for value in row] for row in rows]
    widths = [max([len(name)] + [len(row[i]) for row in cells]) for i, name in enumerate(columns)]
    numeric = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(columns))]

    def line(row):
        return "  ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric)).rstrip()

    return "\n".join(line(row) for row in [list(columns), *cells])


def html_table(columns, rows, caption=""):
    def row(tag, cells):
        return "<tr>" + "".join(f"<{tag}>{html.escape(shown(cell))}</{tag}>" for cell in cells) + "</tr>"

    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    body = "".join(row("td", one) for one in rows)
    return f"<table>{head}<thead>{row('th', columns)}</thead><tbody>{body}</tbody></table>"


class Table:
    """A result with rows. Subclasses have `columns` and `rows`, and may have `caption`."""

    columns: list[str] = []
    rows: list[tuple] = []
    caption = ""

    def to_frame(self):
        """A pandas DataFrame."""
        import pandas

        return pandas.DataFrame([dict(zip(self.columns, row)) for row in self.rows], columns=self.columns)

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        table = text_table(self.columns, self.rows)
        return f"{self.caption}\n{table}" if self.caption else table

    def _repr_html_(self):
        return html_table(self.columns, self.rows, self.caption)
