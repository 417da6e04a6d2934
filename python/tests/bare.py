"""The wheel where there is nothing but NumPy: it trains, plans and saves, with the library that it carries."""

import importlib.util
import pathlib
import tempfile

import numpy as np

import batchwise as bw
from batchwise import _native

for name in ("pandas", "sklearn", "keras", "pyarrow"):
    assert importlib.util.find_spec(name) is None, f"{name} is here: the environment is for NumPy alone"
assert pathlib.Path(_native.lib.path).parent == pathlib.Path(bw.__file__).parent / "lib", _native.lib.path

digits = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.npz"
with np.load(digits) as file:
    x, y = file["x"] / 16, file["y"]
model = bw.Model("conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)")
assert model.fit(x, y, epochs=10, verbose=0).history["accuracy"][-1] > 0.9
assert "peak_bytes" in str(bw.plan(model, x, y, batch_size=[32, 1024]))
with tempfile.TemporaryDirectory() as folder:
    for ending in (".keras", ".weights.h5", ".safetensors", ".onnx"):
        model.save(pathlib.Path(folder) / f"digits{ending}")
    again = bw.Model(pathlib.Path(folder) / "digits.keras")
    assert np.array_equal(again.predict(x), model.predict(x))
try:
    bw.plan(model, x, y).to_frame()
except ImportError as missing:
    assert "pandas" in str(missing)
else:
    raise AssertionError("a frame without pandas")
print("the wheel works with NumPy alone")
