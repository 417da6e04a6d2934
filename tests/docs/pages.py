#!/usr/bin/env python3
"""What pages say of each other and of the header is true: links lead somewhere, names of functions exist, every public name has a comment,
and docs/reference/data.md covers every kind of file, synthetic set and option of reading.
"""
import os
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = (TOP / "include" / "batchwise.h").read_text()
failures = 0


def complain(text):
    global failures
    failures += 1
    print("FAILED:", text)


def without_blocks(text):
    return re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.S | re.M)


def anchors(path):
    """The anchors of a page as GitHub and MkDocs make them of its headings."""
    for heading in re.findall(r"^#+ (.*)$", without_blocks(path.read_text()), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def check_links(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists():
            complain(f"{path.relative_to(TOP)}: {target} leads nowhere")
        elif anchor and other.suffix == ".md" and anchor not in anchors(other):
            complain(f"{path.relative_to(TOP)}: {target}: there is no such heading")


def known_names():
    """The header's names, and options of the build and of tests."""
    known = set(re.findall(r"\b(?:bw|BW)_\w+", HEADER))
    for file in [TOP / "CMakeLists.txt", *(TOP / "cmake").glob("*.cmake"), *(TOP / "tests").rglob("*.sh"), *(TOP / "tests").rglob("*.py")]:
        known |= set(re.findall(r"\bBW_\w+", file.read_text()))
    return known


def check_names(path, known):
    """Functions, types and constants that a page names; `bw_gradients_...` stands for several."""
    for name in sorted(set(re.findall(r"\b(?:bw|BW)_\w+", path.read_text()))):
        if name not in known and not (name.endswith("_") and any(other.startswith(name) for other in known)):
            complain(f"{path.relative_to(TOP)}: {name} is not in batchwise.h")


def check_comments():
    """A declaration has a comment above or behind it, or follows one that has, without a blank line between; the functions that give a
    struct, and the structs themselves, may have theirs at its members."""
    structs = set(re.findall(r"^} (bw_\w+);", HEADER, re.M))
    documented = False
    lines = HEADER.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            documented = False
        elif line.lstrip().startswith(("/*", "*")) or "*/" in line:
            documented = True
        elif line.startswith("typedef struct bw_") and line.endswith("{"):
            documented = documented or "/*" in "".join(lines[number:lines.index("} " + line.split()[2] + ";", number)])
            if not documented:
                complain(f"batchwise.h:{number}: no comment: {line}")
        elif line.startswith("BW_API") and not documented:
            name = re.search(r"(bw_\w+)\(", line).group(1)
            plain = name.endswith(("_free", "_count")) or name[:-1] + "(" in HEADER  # bw_history_events counts what bw_history_event gives
            if not plain and not structs & set(re.findall(r"bw_\w+", line)):
                complain(f"batchwise.h:{number}: no comment: {line}")


def check_data():
    page = (TOP / "docs" / "reference" / "data.md").read_text() + (TOP / "docs" / "reference" / "pipeline.md").read_text()
    options = re.search(r"typedef struct bw_read_options \{(.*?)\} bw_read_options;", HEADER, re.S).group(1)
    options = re.sub(r"/\*.*?\*/", "", options, flags=re.S)
    for name in re.findall(r"(\w+)(?:\[\w+\])?(?=[;,])", options):
        if name != "size" and f"`{name}`" not in page:
            complain(f"docs/reference/data.md does not have the option {name} of bw_read_options")
    source = "".join(f.read_text() for f in sorted((TOP / "src" / "data" / "read").rglob("*.c")))
    for extension in sorted(set(re.findall(r'"(\.[a-z0-9]+)"', source))):
        if f"`{extension}`" not in page:
            complain(f"docs/reference/data.md does not have files that end in {extension}")


def check_layers():
    """Every row of the table of layers that has a name in expressions is in docs/reference/layers.md."""
    page = (TOP / "docs" / "reference" / "layers.md").read_text()
    source = "".join(f.read_text() for f in sorted((TOP / "src" / "layer").glob("*.c")))
    rows = re.findall(r'bwi_layer_row bwi_layer_\w+ =\s*\{\s*"(\w+)",\s*"\w*",\s*"(\w+)[ "]', source)
    if len(rows) < 30:
        complain(f"only {len(rows)} layers were found in src/layer")
    for keras, name in rows:
        if f"`{name}`" not in page:
            complain(f"docs/reference/layers.md does not have {name} ({keras})")


def main():
    pages = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "CHANGELOG.md", TOP / "SECURITY.md", *sorted((TOP / "docs").rglob("*.md"))]
    known = known_names()
    for path in pages:
        check_links(path)
        if "contributing" not in path.parts and path.name not in ("CHANGELOG.md", "CONTRIBUTING.md"):
            check_names(path, known)
    check_comments()
    check_data()
    check_layers()
    return failures > 0


if __name__ == "__main__":
    os.chdir(TOP)
    sys.exit(main())
