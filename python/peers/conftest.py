"""Part of make test-keras: the package beside the real Keras, on the backend that KERAS_BACKEND names."""

import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits():
    with np.load(pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.npz") as file:
        return (file["x"] / 16).astype(np.float32)[:512], file["y"].astype(np.int64)[:512]


@pytest.fixture
def line():
    """Points of y = 3x - 1."""
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
    return x, 3 * x - 1
