"""The notebooks of docs/notebooks run from the first cell to the last, and say what they promise."""

import os
import pathlib
import re

import keras
import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOKS = {
    "out-of-memory": ["Keras ran out of memory", "after 15 updates", "after 79 updates"],
    "batch-size": ["noise scale: ", "samples_per_s"],
    "table-with-scikit-learn": ["'class_0' 'class_1' 'class_2'", r"R2 (0\.9|1\.0)", "parameters:"],
}


def said(book):
    """Everything that the cells printed or returned, as text."""
    found = []
    for cell in book.cells:
        for output in cell.get("outputs", []):
            found.append(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(found)


def test_every_notebook_is_run():
    assert {path.stem for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")} == set(BOOKS)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="once is enough, on the backend that most have")
@pytest.mark.parametrize("name", BOOKS)
def test_notebook(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BATCHWISE_ROOT", str(ROOT))
    if "PYTHONPATH" in os.environ:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(ROOT / one) for one in os.environ["PYTHONPATH"].split(os.pathsep)))
    if "BATCHWISE_LIBRARY" in os.environ:
        monkeypatch.setenv("BATCHWISE_LIBRARY", str((ROOT / os.environ["BATCHWISE_LIBRARY"]).resolve()))
    book = nbformat.read(ROOT / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    kept = said(book)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    fresh = said(book)
    for promise in BOOKS[name]:
        assert re.search(promise, fresh), promise
        assert re.search(promise, kept), "execute the notebook and keep its outputs"
