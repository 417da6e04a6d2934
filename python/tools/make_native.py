#!/usr/bin/env python3
"""Writes src/batchwise/_native_table.py from include/batchwise.h: enums, structs with their defaults, functions, constants.

    python/tools/make_native.py            writes the table
    python/tools/make_native.py --check    fails if the table is not what the header gives

The header is plain C without surprises (clang-format lays it out), so a small reader suffices. tests/test_native.py lets the
compiler confirm what it read: every size and offset, every value of an enum, and the type of every function.
"""

import argparse
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / "include" / "batchwise.h"
TABLE = HERE.parent / "src" / "batchwise" / "_native_table.py"

SCALARS = {
    "bool": "c.c_bool",
    "char": "c.c_char",
    "int": "c.c_int",
    "float": "c.c_float",
    "double": "c.c_double",
    "size_t": "c.c_size_t",
    "int64_t": "c.c_int64",
    "uint64_t": "c.c_uint64",
}


class Header:
    """What the header declares, as text: nothing in here knows ctypes but `ctype`."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.defines = dict(re.findall(r"^#define (BW_[A-Z_]+) (\d+)$", text, flags=re.M))
        self.defaults = self._defaults(text)
        text = re.sub(r"^#(?:.*\\\n)*.*$", " ", text, flags=re.M)
        text = re.sub(r'extern "C" \{', " ", text)
        text = re.sub(r"\s+", " ", text)
        self.opaque = re.findall(r"typedef struct (\w+) \1;", text)
        self.enums = {}
        self.structs = {}
        self.callbacks = {}
        self.functions = {}
        for name, body in re.findall(r"typedef enum (\w+) \{([^}]*)\} \1;", text):
            self.enums[name] = self._enumerators(body)
        for body in re.findall(r"(?<!typedef )\benum \{([^}]*)\};", text):
            self.enums.setdefault("", {}).update(self._enumerators(body))
        for name, body in re.findall(r"typedef struct (\w+) \{([^}]*)\} \1;", text):
            self.structs[name] = [member for part in body.split(";") if part.strip() for member in self._members(part)]
        for result, name, arguments in re.findall(r"typedef ([\w ]+?) \(\*(\w+)\)\(([^;]*)\);", text):
            self.callbacks[name] = (result, self._arguments(arguments))
        for result, name, arguments in re.findall(r"BW_API ([\w ]+?[ *])(bw_\w+)\(([^;]*)\);", text):
            self.functions[name] = (result.strip(), self._arguments(arguments))

    @staticmethod
    def _defaults(text):
        found = {}
        for body in re.findall(r"#define BW_\w+_DEFAULT((?:[^\n]*\\\n)+[^\n]*)", text):
            values = dict(re.findall(r"\.(\w+) = ([^,}\\\n]+)", body))
            values = {name: value.strip() for name, value in values.items()}
            struct = re.fullmatch(r"sizeof\((\w+)\)", values.pop("size")).group(1)
            found[struct] = values
        return found

    @staticmethod
    def _enumerators(body):
        values, following = {}, 0
        for part in filter(None, (one.strip() for one in body.split(","))):
            name, _, value = (one.strip() for one in part.partition("="))
            following = int(value) if value else following
            values[name] = following
            following += 1
        return values

    @staticmethod
    def _declarator(text):
        """Splits "const char *name[4]" into its type, its name and its extents."""
        text, *extents = re.split(r"\[(\w+)\]", text.strip())
        text = text.strip()
        name = re.search(r"(\w+)$", text).group(1)
        return text[: -len(name)].strip(), name, [one for one in extents if one]

    def _members(self, text):
        function = re.fullmatch(r"\s*([\w ]+?[ *])\(\*(\w+)\)\((.*)\)\s*", text)
        if function:
            result, name, arguments = function.groups()
            return [(name, ("function", result.strip(), self._arguments(arguments)), [])]
        first, *more = text.split(",")
        kind, name, extents = self._declarator(first)
        members = [(name, kind, extents)]
        base = kind.rstrip("* ")
        for other in more:
            stars, other_name, other_extents = self._declarator(other)
            members.append((other_name, (base + " " + stars).strip(), other_extents))
        return members

    def _arguments(self, text):
        """Splits a list of parameters at the commas that are not within another one."""
        if text.strip() == "void":
            return []
        parts, depth, begin = [], 0, 0
        for place, letter in enumerate(text + ","):
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                parts.append(text[begin:place].strip())
                begin = place + 1
        arguments = []
        for part in parts:
            function = re.fullmatch(r"([\w ]+?[ *])\(\*(\w+)\)\((.*)\)", part)
            if function:
                result, name, inner = function.groups()
                arguments.append((name, ("function", result.strip(), self._arguments(inner))))
            else:
                kind, name, _ = self._declarator(part)
                arguments.append((name, kind))
        return arguments

    def ctype(self, kind, place):
        """The ctypes type of a C type. `place`: "argument" of a function, "member" of a struct, or "callback" for the parameters of
        a function that Python provides, which must be able to look through pointers."""
        if isinstance(kind, tuple):
            return self.function_type(kind[1], [one for _, one in kind[2]])
        plain = kind.replace("const", " ").split("*")[0].strip()
        stars = kind.count("*")
        if stars == 0:
            if plain in self.enums:
                return "c.c_int"
            if plain in self.callbacks or plain in self.structs:
                return plain
            return "None" if plain == "void" else SCALARS[plain]
        if stars == 1 and plain == "char":
            writable = "const" not in kind.split("*")[0]
            return "c.c_void_p" if writable and place != "argument" else "c.c_char_p"
        if stars == 1 and plain in self.structs:
            return f"c.POINTER({plain})"
        if place == "callback" and plain in SCALARS and stars == 1:
            return f"c.POINTER({SCALARS[plain]})"
        if place == "callback" and stars == 2:
            return "c.POINTER(c.c_void_p)"
        return "c.c_void_p"

    def function_type(self, result, arguments):
        parts = [self.ctype(result, "callback")] + [self.ctype(one, "callback") for one in arguments]
        return f"c.CFUNCTYPE({', '.join(parts)})"


def struct_lines(header, name):
    lines = [f"class {name}(c.Structure):"]
    defaults = header.defaults.get(name)
    if defaults is not None:
        given = {one: value.replace("true", "True").replace("false", "False") for one, value in defaults.items()}
        lines.append("    _defaults_ = {" + ", ".join(f'"{one}": {value}' for one, value in given.items()) + "}")
    lines.append("    _fields_ = [")
    for member, kind, extents in header.structs[name]:
        ctype = header.ctype(kind, "member")
        for extent in reversed(extents):
            ctype += f" * {extent}"
        lines.append(f'        ("{member}", {ctype}),')
    return lines + ["    ]", ""]


def dependencies(header, text):
    return [name for name in list(header.structs) + list(header.callbacks) if re.search(rf"\b{name}\b", text)]


def ordered_types(header):
    """Structs and callback types, each after those that it refers to: Python has no declarations in advance."""
    done, lines = [], []

    def visit(name):
        if name in done:
            return
        done.append(name)
        if name in header.structs:
            own = struct_lines(header, name)
        else:
            result, arguments = header.callbacks[name]
            own = [f"{name} = {header.function_type(result, [one for _, one in arguments])}", ""]
        for other in dependencies(header, "\n".join(own)):
            visit(other)
        lines.extend(own)

    for name in [*header.structs, *header.callbacks]:
        visit(name)
    return lines


def table(header):
    lines = [
        '"""The public header for ctypes. Written by tools/make_native.py from include/batchwise.h: change that one."""',
        "",
        "import ctypes as c",
        "",
    ]
    lines += [f"{name} = {value}" for name, value in header.defines.items()]
    lines.append("")
    for name, values in header.enums.items():
        lines += [f"# {name}"] if name else []
        lines += [f"{one} = {value}" for one, value in values.items()]
        lines.append("")
    lines += ordered_types(header)
    lines.append("# The functions: what each returns, and its parameters.")
    lines.append("FUNCTIONS = {")
    for name, (result, arguments) in header.functions.items():
        result = "c.c_char_p" if result == "const char *" else header.ctype(result, "argument")
        kinds = ", ".join(header.ctype(one, "argument") for _, one in arguments)
        lines.append(f'    "{name}": ({result}, [{kinds}]),')
    return "\n".join([*lines, "}", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the table that is there")
    check = parser.parse_args().check
    text = table(Header(HEADER.read_text()))
    if not check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE.name} is not what {HEADER.name} gives: run python/tools/make_native.py")


if __name__ == "__main__":
    main()
