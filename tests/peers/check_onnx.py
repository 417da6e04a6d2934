#!/usr/bin/env python3
"""ONNX files that the C test wrote (BW_MODELS_OUT=FOLDER tests/unit/file/onnx): the real checker, and ONNX Runtime's predictions
beside Batchwise's within 1e-4.

  check_onnx.py FOLDER
"""
import glob, os, sys
import numpy as np
import onnx, onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32}


def check(path):
    stem = path[: -len(".onnx")]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {i.name: np.fromfile(f"{stem}.in{k}", TYPES[i.type]).reshape([-1] + list(i.shape[1:])) for k, i in enumerate(session.get_inputs())}
    worst = 0.0
    for k, got in enumerate(session.run(None, feed)):
        expected = np.fromfile(f"{stem}.out{k}", np.float32).reshape(got.shape)
        worst = max(worst, float(np.max(np.abs(got - expected) / np.maximum(1, np.abs(expected)))))
    return worst


def main(folder):
    failures, worst, paths = 0, 0.0, sorted(glob.glob(os.path.join(folder, "*.onnx")))
    for path in paths:
        try:
            off = check(path)
            worst = max(worst, off)
            wrong = None if off <= 1e-4 else f"differs by {off:.1e}"
        except Exception as e:
            wrong = f"{type(e).__name__}: {e}"
        if wrong:
            failures += 1
            print(f"{os.path.basename(path)}: {wrong}")
    print(f"{len(paths)} ONNX files, {failures} failures, largest difference {worst:.1e}")
    return failures > 0 or not paths


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
