"""Data that tests share: the digits that come with the project, and a small table."""

import pathlib
import signal

import numpy as np
import pytest

# A shell that starts tests in the background has interrupts ignored, which programs inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(scope="session")
def digits_file():
    return DATA / "digits.npz"


@pytest.fixture(scope="session")
def digits(digits_file):
    with np.load(digits_file) as file:
        return (file["x"] / 16).astype(np.float32), file["y"].astype(np.int64)


@pytest.fixture
def line():
    """Points of y = 3x - 1."""
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
    return x, 3 * x - 1
