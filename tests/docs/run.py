#!/usr/bin/env python3
"""run.py PAGE: does what a page of the documentation says, so that no command line and no C block in it is out of date.

- In ```sh blocks, and after "$ " in blocks without a language, every command line of batchwise is run, also behind mpirun, a pipe or
  build/; lines of other programs are not. All lines of a page run in one folder, in their order, so that later ones find what earlier
  ones wrote.
- A ```c block with a main is compiled and run, together with what the page has converted to C before. Another one is a part of a program: it
  is compiled in a function in which the usual names (ctx, model, dataset, ...) are declared.
- ```python blocks are parsed.
- <!-- not run: REASON --> in the line before a block leaves it out; `...` in a line does so for the line. <!-- fails: REASON -->: its
  command lines must fail.

Needs BATCHWISE, the path of the command. The folder has data/digits.npz, data/begun.keras, table.csv, photos/ and net.txt.
"""
import ast
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["BATCHWISE"]).parent
PRELUDE = """#include <batchwise.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""
NAMES = """    bw_context *ctx = NULL; bw_model *model = NULL; bw_dataset *dataset = NULL, *digits = NULL; bw_history *history = NULL;
    bw_status status = BW_OK; bw_gradients *gradients = NULL; bw_batch *batch = NULL; bw_iterator *batches = NULL; double loss = 0;
    bw_fit_options training = BW_FIT_OPTIONS_DEFAULT;
    (void)ctx, (void)model, (void)dataset, (void)digits, (void)history, (void)status, (void)gradients, (void)batch, (void)batches;
    (void)loss, (void)training;
    {
"""
failures = 0


def complain(place, text):
    global failures
    failures += 1
    print(f"FAILED: {place}: {text}")


def blocks(path):
    """Yields (line, language, text, whether it must fail) of the fenced blocks that are to be run."""
    lines = path.read_text().split("\n")
    i = 0
    while i < len(lines):
        found = re.match(r"^\s*```(\w*)$", lines[i])
        if not found:
            i += 1
            continue
        end = next(k for k in range(i + 1, len(lines)) if lines[k].strip() == "```")
        mark = lines[i - 1] if i else ""
        if not mark.startswith("<!-- not run:"):
            yield i + 2, found.group(1), "\n".join(lines[i + 1:end]), mark.startswith("<!-- fails:")
        i = end + 1


def png(path, value):
    """An 8x8 picture of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(value) * 8) * 8
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def prepare(folder):
    (folder / "data").mkdir()
    for place in (folder / "data", folder):
        shutil.copy(TOP / "data" / "digits.npz", place)
    shutil.copy(TOP / "data" / "begun.keras", folder / "data")
    (folder / "build").symlink_to(BUILD)
    rows = ["rooms,area,heating,price"]
    rows += [f"{i % 5 + 1},{20 + i * 7 % 90},{'gas' if i % 3 else 'oil'},{(i % 5 + 1) * 30 + i * 7 % 90}" for i in range(200)]
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    for i in range(16):
        place = folder / "photos" / ("blue" if i % 2 else "red")
        place.mkdir(parents=True, exist_ok=True)
        png(place / f"{i}.png", (10 * i, 20, 200) if i % 2 else (200, 10 * i, 20))
    (folder / "reviews.csv").write_text("review,label\n" + "".join(f'"The {a} was {b}!",{int(b in "great lovely")}\n' for a in ("film", "plot", "cast") for b in ("great", "lovely", "dull", "awful")))
    (folder / "net.txt").write_text("input(128,128,3) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)\n")


def commands(language, text):
    """The command lines of a block, those that a backslash continues joined."""
    for line in re.sub(r"\\\n\s*", "", text).split("\n"):
        if language == "":
            if not line.startswith("$ "):
                continue
            line = line[2:]
        line = line.strip()
        if re.search(r"(^|[|] *|^mpirun [^|]*)(build/)?batchwise ", line) and "..." not in line:
            yield line


def run_shell(place, language, text, fails, folder):
    for line in commands(language, text):
        if line.startswith("mpirun") and not shutil.which("mpirun"):
            continue
        environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_rmaps_base_oversubscribe="1", HOME=str(folder))
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if (done.returncode != 0) != fails:
            complain(place, f"{line}\n  ends with {done.returncode}: {done.stderr.strip()[-600:]}")


def run_c(place, text, folder):
    whole = "int main" in text
    source = folder / "block.c"
    source.write_text(text if whole else PRELUDE + "void block(void);\nvoid block(void)\n{\n" + NAMES + text + "\n    }\n}\n")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", f"-I{TOP / 'include'}"]
    compiler += ["block.c"] if whole else ["-fsyntax-only", "block.c"]
    if whole:
        others = [f.name for f in folder.glob("*.c") if f.name != "block.c"]
        compiler += others + ["-o", "block", f"-L{BUILD}", "-lbatchwise", f"-Wl,-rpath,{BUILD}", "-lm"]
    done = subprocess.run(compiler, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0 and whole:
        done = subprocess.run(["./block"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        complain(place, "this C block fails: " + (done.stderr or done.stdout).strip()[-800:])


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="batchwise-docs-") as name:
        folder = pathlib.Path(name)
        prepare(folder)
        for line, language, text, fails in blocks(page):
            place = f"{page.relative_to(TOP)}:{line}"
            if language in ("sh", ""):
                run_shell(place, language, text, fails, folder)
            elif language == "c":
                run_c(place, text, folder)
            elif language == "python":
                try:
                    ast.parse(text)
                except SyntaxError as error:
                    complain(place, f"this Python block does not parse: {error}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
