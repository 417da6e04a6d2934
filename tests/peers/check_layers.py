#!/usr/bin/env python3
"""Models of every layer, written by the C test (BW_MODELS_OUT=FOLDER tests/unit/file/onnx), in the real Keras and safetensors:
each loads without a warning on the backend at hand, predicts the same within 1e-5, has the same weights in both files, and comes
back through files that Keras and safetensors wrote.

  check_layers.py FOLDER --batchwise build/batchwise      KERAS_BACKEND says which backend
"""
import argparse, glob, os, subprocess, sys, warnings

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import keras
import safetensors.numpy


def listed(values):
    return values if isinstance(values, (list, tuple)) else [values]


def load(path):
    """The model, and what Keras warns of; that a layer drops masks is a property of the model."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = keras.models.load_model(path)
    return model, [str(w.message)[:200] for w in caught if "destroy the mask" not in str(w.message)]


def predict(model, stem):
    x = [np.fromfile(f"{stem}.in{k}", "int32" if "int" in str(t.dtype) else "float32").reshape([-1] + list(t.shape[1:])) for k, t in enumerate(model.inputs)]
    return [np.asarray(p) for p in listed(model.predict(x if len(x) > 1 else x[0], verbose=0))]


def differs(model):
    """Keras on PyTorch pads uneven sides with copies and counts them in means; on the other backends it does not."""
    return keras.backend.backend() == "torch" and any(isinstance(l, (keras.layers.AveragePooling1D, keras.layers.AveragePooling2D)) and l.padding == "same" for l in model.layers)


def convert(batchwise, *arguments):
    run = subprocess.run([batchwise, "convert", "--quiet", *arguments], capture_output=True, text=True)
    return [] if run.returncode == 0 else [run.stderr.strip()[-200:]]


def named(layer):
    """The layer's variables by name; layers that hold others name their parts."""
    held = [getattr(layer, n) for n in ("forward_layer", "backward_layer") if hasattr(layer, n)]
    held = held or ([layer.layer] if isinstance(layer, keras.layers.TimeDistributed) else [])
    names = [p.name for p in held]
    if len(held) == 2:  # a backward_layer that was given keeps its own name
        names = [n if n.startswith(d) else d + n for d, n in zip(("forward_", "backward_"), names)]
    if held:
        return [(f"{layer.name}/{n}/{v.name}", v) for n, part in zip(names, held) for v in part.weights]
    if "attention" in type(layer).__name__.lower():
        return [(layer.name + "/" + v.path.split(layer.name + "/", 1)[-1], v) for v in layer.weights]
    return [(f"{layer.name}/{v.name}", v) for v in layer.weights]


def check(path, batchwise):
    stem = path[: -len(".keras")]
    keras.backend.clear_session()
    model, why = load(path)
    for k, p in enumerate(predict(model, stem)):
        expected = np.fromfile(f"{stem}.out{k}", "float32").reshape(p.shape)
        off = float(np.max(np.abs(p - expected) / np.maximum(1, np.abs(expected))))
        why += [f"output {k} differs by {off:.1e}"] if not off <= 1e-5 and not differs(model) else []
    tensors = safetensors.numpy.load_file(stem + ".safetensors")
    own = {n: np.array(keras.ops.convert_to_numpy(v), order="C") for l in model.layers for n, v in named(l) if "seed" not in v.name}
    if set(own) != set(tensors) or any(not np.array_equal(own[n], tensors[n].reshape(own[n].shape)) for n in own):
        why.append(f"weights differ from those of safetensors: {sorted(set(own) ^ set(tensors))[:4]}")
    back, again = stem + "-back.keras", stem + "-again.safetensors"
    model.save(back)
    safetensors.numpy.save_file(own, stem + "-back.safetensors")
    for source, more in ((back, []), (stem + "-back.safetensors", ["--model", path])):
        why += convert(batchwise, source, again, *more)
        if os.path.exists(again) and open(again, "rb").read() != open(stem + ".safetensors", "rb").read():
            why.append(f"{os.path.basename(source)}: other weights came back")
    return why


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--batchwise", default="build/batchwise")
    a = p.parse_args()
    paths = [f for f in sorted(glob.glob(os.path.join(a.folder, "*.keras"))) if not f.endswith("-back.keras")]
    failures = 0
    for path in paths:
        try:
            why = check(path, a.batchwise)
        except Exception as error:
            why = [f"{type(error).__name__}: {str(error)[-300:]}"]
        failures += bool(why)
        if why:
            print(os.path.basename(path), why, flush=True)
    print(f"{keras.backend.backend()}: {len(paths)} models, {failures} failures")
    return failures > 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
