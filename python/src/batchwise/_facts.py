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
                value = tuple(Record.of(one) if isinstance(one, ctypes.Structure) else one for one in value)
            members[name] = value
        if "ndim" in members and "shape" in members:
            members["shape"] = members["shape"][: members.pop("ndim")]
        if "growths" in members:
            members["growth"] = members["growth"][: members.pop("growths")]
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

    def to_frame(self):
        """A pandas DataFrame with one row; records within it have their members as columns, "raw.scale" for example."""
        import pandas

        return pandas.json_normalize(self.to_dict())

    def _repr_html_(self):
        return html_table(["", ""], [(name, _cell(name, value)) for name, value in self.__dict__.items()])


def shown(value):
    """A value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, Record):
        return ", ".join(f"{name} {shown(_cell(name, one))}" for name, one in value.__dict__.items())
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Record):
        return f"{len(value)} records"
    return str(value)


def _cell(name, value):
    """Bytes are shown in the unit that fits; frames have the numbers."""
    is_bytes = name.endswith("bytes") or name in ("budget", "gradients", "activations", "workspace", "whole batch")
    return as_bytes(value) if is_bytes and isinstance(value, int) and not isinstance(value, bool) else value


def _cells(columns, rows):
    return [[_cell(name, value) for name, value in zip(columns, row)] for row in rows]


def _is_numeric(rows, column):
    return all(isinstance(row[column], (int, float)) or row[column] is None for row in rows)


def as_bytes(count):
    """12.5 MiB and so on."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def text_table(columns, rows):
    """Columns of text: numbers to the right, everything else to the left."""
    cells = [[shown(value) for value in row] for row in _cells(columns, rows)]
    widths = [max([len(name)] + [len(row[i]) for row in cells]) for i, name in enumerate(columns)]
    numeric = [_is_numeric(rows, i) for i in range(len(columns))]

    def line(row):
        return "  ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric)).rstrip()

    return "\n".join(line(row) for row in [list(columns), *cells])


def html_table(columns, rows, caption=""):
    """A table for notebooks, which brings its own alignment: numbers to the right, the caption above on one line."""
    rows = list(rows)
    align = ["right" if rows and _is_numeric(rows, i) else "left" for i in range(len(columns))]

    def row(tag, cells):
        styled = (f'<{tag} style="text-align:{side};padding:2px 8px">{html.escape(shown(cell))}</{tag}>' for side, cell in zip(align, cells))
        return "<tr>" + "".join(styled) + "</tr>"

    style = "caption-side:top;text-align:left;white-space:nowrap;padding:2px 8px"
    head = f'<caption style="{style}">{html.escape(caption)}</caption>' if caption else ""
    body = "".join(row("td", one) for one in _cells(columns, rows))
    titles = f"<thead>{row('th', columns)}</thead>" if any(columns) else ""
    return f"<table>{head}{titles}<tbody>{body}</tbody></table>"


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
