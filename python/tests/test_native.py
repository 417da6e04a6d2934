"""The table of the header: written anew it is the same, and the compiler agrees with every size, offset, value and type in it."""

import ctypes
import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

from batchwise import _native_table as table
from batchwise._native import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_native", ROOT / "python" / "tools" / "make_native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def header(maker):
    return maker.Header(maker.HEADER.read_text())


def test_the_table_is_what_the_header_gives(maker, header):
    assert maker.TABLE.read_text() == maker.table(header), "run python/tools/make_native.py"


def _c_type(kind):
    if isinstance(kind, tuple):
        return f"{kind[1]} (*)({', '.join(_c_type(one) for _, one in kind[2])})"
    return kind


def test_the_compiler_agrees(header, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed"
    lines = ["#include <batchwise.h>", "int main(void) {"]
    for name in header.structs:
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{member[0]} %zu\\n", offsetof({name}, {member[0]}));' for member in header.structs[name]]
    for values in header.enums.values():
        lines += [f'printf("{one} %d\\n", (int){one});' for one in values]
    lines += [f'printf("{one} %d\\n", {one});' for one in header.defines]
    for name, (result, arguments) in header.functions.items():
        kinds = ", ".join(_c_type(kind) for _, kind in arguments) or "void"
        lines.append(f'_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), {result} (*)({kinds})), "{name}");')
    source, program = tmp_path / "check.c", tmp_path / "check"
    source.write_text("\n".join([*lines, "return 0; }", ""]))
    subprocess.run([compiler, "-std=gnu11", "-c", f"-I{ROOT / 'include'}", source, "-o", tmp_path / "check.o"], check=True)
    subprocess.run([compiler, tmp_path / "check.o", "-o", program], check=True)
    told = dict(line.split() for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    for name, value in told.items():
        struct, _, member = name.partition(".")
        mine = getattr(table, struct)
        if member:
            mine = getattr(mine, member).offset
        elif isinstance(mine, type):
            mine = ctypes.sizeof(mine)
        assert mine == int(value), name


def test_every_exported_function_is_in_the_table():
    exported = subprocess.run(["nm", "-D", "--defined-only", lib.path], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].partition("@")[0] for line in exported.splitlines()}  # without the symbol's version
    names = {name for name in names if name.startswith("bw_")}
    assert names == set(table.FUNCTIONS)


def test_defaults(maker, header):
    assert table.bw_fit_options._defaults_ == {"epochs": 1, "batch": -1, "accumulate": 1}
    assert table.bw_tensorboard_options._defaults_ == {"histograms": 1, "images": 4, "graph": True}
    with_size = {name for name, members in header.structs.items() if members[0][0] == "size"}
    assert with_size - set(header.defaults) == {"bw_operator"}


# What has no face of its own in Python, and what does its work there.
ELSEWHERE = {
    "bw_from_arrays": "bw_from_fields",
    "bw_predict": "bw_predict_all",
    "bw_model_free": "bw_close: a model has a context of its own",
    "bw_plan_print": "repr(plan)",
    "bw_vectorize": "fit, evaluate and predict, which do it by themselves; custom loops over texts are for C",
    "bw_findings_count": "bw_findings_at",
    "bw_random_uniform": "NumPy's generator of a sample",
    "bw_random_normal": "likewise",
    "bw_random_below": "likewise",
    "bw_random_category": "likewise",
    "bw_random_permute": "likewise",
}


def test_everything_in_the_header_has_a_face():
    package = pathlib.Path(table.__file__).parent
    text = "\n".join(path.read_text() for path in package.glob("*.py") if path.name != "_native_table.py")
    words = set(re.findall(r"\bbw_\w+", text))
    assert set(table.FUNCTIONS) - words == set(ELSEWHERE)
