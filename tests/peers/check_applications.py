#!/usr/bin/env python3
"""Every architecture of keras.applications, made by the real Keras without weights, in `batchwise`.

  check_applications.py --batchwise build/batchwise [--quick] [--only NAME ...] [--float64]

Each is built for its smallest images and few classes, with its variables disturbed so that none is at its initial value, and saved as
.keras. Then `batchwise`
  - predicts: within 1e-4 of Keras;
  - trains one step of SGD: the error of all variables is at most 1 percent of the way that they went. Where it is more, the same step
    in float64 decides: batchwise may be at most 4 times as far from it as Keras in float32 is. Random layers are off for this;
  - writes ONNX, which predicts the same in ONNX Runtime, and C, which a compiler accepts and which predicts the same.
The largest only load and predict. --quick takes one small model of each family, and leaves compiling C out. Needs keras and jax.
"""
import argparse, ctypes, json, os, subprocess, sys, tempfile, time

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import keras

SMALL = {"InceptionV3": 75, "InceptionResNetV2": 75, "Xception": 71}
QUICK = "ConvNeXtTiny DenseNet121 EfficientNetB0 EfficientNetV2B0 InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 MobileNetV3Small NASNetMobile ResNet50 ResNet50V2 VGG16 Xception".split()
PREDICT_ONLY = "ConvNeXtLarge ConvNeXtXLarge EfficientNetB5 EfficientNetB6 EfficientNetB7 EfficientNetV2L NASNetLarge".split()
CLASSES, SAMPLES, RATE = 5, 4, 0.01


def names():
    return sorted(n for n in dir(keras.applications) if n[0].isupper())


def settle(model, x):
    """Moving statistics become those of the samples: with arbitrary ones all samples would end in the same prediction."""
    norms = [l for l in model._flatten_layers() if isinstance(l, keras.layers.BatchNormalization)]
    moving = {id(v) for l in norms for v in (l.moving_mean, l.moving_variance)}
    for l in norms:
        l.momentum = 0.0
    others = model.non_trainable_variables
    _, after = model.stateless_call([v.value for v in model.trainable_variables], [v.value for v in others], x, training=True)
    for v, a in zip(others, after):
        if id(v) in moving:
            v.assign(a)
    for l in norms:
        l.momentum = 0.99
    return model


def build(name):
    """The model with every variable disturbed; scales that begin near zero (ConvNeXt's) would hide what lies before them."""
    side = SMALL.get(name, 64)
    keras.utils.set_random_seed(7)
    model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=CLASSES)
    g = np.random.RandomState(3)
    for v in model.variables:
        value = np.array(keras.ops.convert_to_numpy(v))
        if not np.issubdtype(value.dtype, np.floating) or value.size == 0:
            continue
        if v.name in ("gamma", "moving_variance", "variance"):
            v.assign(g.uniform(0.6, 1.2, value.shape) if v.name != "gamma" or np.max(np.abs(value)) > 1e-3 else g.uniform(0.1, 0.3, value.shape))
        elif value.ndim == 1:
            v.assign(value + 0.05 * g.randn(*value.shape))
    for l in model._flatten_layers():
        if isinstance(l, keras.layers.Normalization) and l.input_mean is None:
            l.finalize_state()  # it computes with copies of its variables
    reads_pixels = any(l.__class__.__name__ in ("Rescaling", "Normalization") for l in model.layers)
    x = (g.rand(SAMPLES, side, side, 3) * (255 if reads_pixels else 2) - (0 if reads_pixels else 1)).astype("float32")
    return settle(model, x), x, g.randint(0, CLASSES, SAMPLES).astype("int32")


def without_noise(config):
    """The configuration with every rate of dropping at 0, so that the step is the same everywhere."""
    if isinstance(config, dict):
        return {k: 0.0 if k in ("rate", "drop_path_rate") else without_noise(v) for k, v in config.items()}
    return [without_noise(v) for v in config] if isinstance(config, list) else config


def steady(model, dtype):
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    text = json.dumps(without_noise(json.loads(model.to_json())))
    made = keras.models.model_from_json(text.replace('"float32"', f'"{dtype}"'))
    made.set_weights(model.get_weights() if len(made.weights) == len(model.weights) else [keras.ops.convert_to_numpy(v) for v in model.weights if "seed" not in v.name])
    return made


def step(model, x, y):
    """One step of SGD, op by op: compiling such graphs takes longer than running them."""
    import jax
    trained = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    xs, labels = jax.numpy.asarray(x, dtype=keras.config.floatx()), jax.numpy.asarray(y)

    def loss(t):
        p, after = model.stateless_call(t, others, xs, training=True)
        return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(labels, p)), after

    (_, after), gradients = jax.value_and_grad(loss, has_aux=True)(trained)
    moved = {v.path: np.asarray(t - RATE * g) for v, t, g in zip(model.trainable_variables, trained, gradients)}
    moved |= {v.path: np.asarray(a) for v, a in zip(model.non_trainable_variables, after)}
    return {v.path: moved[v.path] for v in model.variables}  # in the order of the model


def floats(values):
    return {k: v for k, v in values.items() if np.issubdtype(v.dtype, np.floating) and v.size}


def distance(a, b):
    return float(np.sqrt(sum(np.sum((a[k].astype("f8") - b[k]) ** 2) for k in a)))


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{arguments[1]}: exit {done.returncode}: {done.stderr.strip()[-300:]}"


def off(p, q):
    return float(np.max(np.abs(p - q)))


def check_training(model, x, y, batchwise, folder, always):
    file, data, done = (os.path.join(folder, n) for n in ("steady.keras", "data.npz", "done.keras"))
    calm = steady(model, "float32")
    calm.save(file)
    np.savez(data, x=x, y=y)
    why = run(batchwise, "train", "--model", file, "--data", data, "--batch", str(SAMPLES), "--epochs", "1", "--no-shuffle", "--quiet", "--optimizer", f"sgd(lr={RATE})",
              "--loss", "sparse_categorical_crossentropy", "--save-model", done)
    if why:
        return [why], ""
    # Paths hold names that Keras makes anew; the order of variables is what stays.
    before = floats({v.path: np.array(v.value) for v in calm.variables})
    theirs = floats(step(calm, x, y))
    keys = [v.path for v in calm.variables if v.path in theirs]
    reloaded = keras.models.load_model(done, compile=False)
    ours = {k: np.array(v.value) for k, v in zip([v.path for v in calm.variables], reloaded.variables)}
    ours = {k: ours[k] for k in keys}
    way = distance({k: theirs[k] for k in keys}, before)
    error = distance(ours, theirs) / way
    if error <= 1e-2 and not always:
        return [], f"step {error:.1e}"
    exact = floats(step(steady(model, "float64"), x, y))
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    exact = dict(zip(keys, [exact[k] for k in exact]))
    mine, its = distance(ours, exact) / way, distance({k: theirs[k] for k in keys}, exact) / way
    text = f"step {error:.1e} (from float64: {mine:.1e}, Keras {its:.1e})"
    return ([] if mine <= max(1e-2, 4 * its) else [text]), text


def check_onnx(file, x, expected, batchwise, folder):
    import onnxruntime
    onnx = os.path.join(folder, "model.onnx")
    why = run(batchwise, "convert", "--quiet", file, onnx)
    if why:
        return [why]
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    p = session.run(None, {session.get_inputs()[0].name: x})[0]
    return [] if off(p, expected) <= 1e-4 else [f"ONNX differs by {off(p, expected):.1e}"]


def check_c(file, x, expected, batchwise, folder, compiled):
    source, library = os.path.join(folder, "model.c"), os.path.join(folder, "model.so")
    why = run(batchwise, "convert", "--quiet", file, source)
    if why or not compiled:
        return [why] if why else []
    why = run("cc", "-std=c99", "-O1", "-shared", "-fPIC", source, "-o", library, "-lm")
    if why:
        return [why]
    call = getattr(ctypes.CDLL(library), "model_predict")
    p = np.zeros(CLASSES, "float32")
    sample = np.ascontiguousarray(x[0])
    pointer = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    call(pointer(sample), pointer(p))
    return [] if off(p, expected[0]) <= 1e-4 else [f"C differs by {off(p, expected[0]):.1e}"]


def check(name, a, folder):
    keras.backend.clear_session()
    model, x, y = build(name)
    file, samples, predicted = (os.path.join(folder, n) for n in ("model.keras", "x.npy", "p.npy"))
    model.save(file)
    np.save(samples, x)
    why = run(a.batchwise, "predict", "--quiet", "--model", file, "--data", samples, "--out", predicted)
    if why:
        return [why], ""
    expected = np.asarray(model(x, training=False))
    difference = off(np.load(predicted), expected)
    if not difference <= 1e-4 or np.max(np.ptp(expected, axis=0)) < 1e-3:
        return [f"predictions differ by {difference:.1e}, and among samples by {np.max(np.ptp(expected, axis=0)):.1e}"], ""
    text = f"predict {difference:.1e}"
    if name in PREDICT_ONLY:
        return [], text
    failed, more = check_training(model, x, y, a.batchwise, folder, a.float64)
    failed = failed + check_onnx(file, x, expected, a.batchwise, folder) + check_c(file, x, expected, a.batchwise, folder, a.compile_c)
    return failed, f"{text}, {more}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", nargs="+")
    p.add_argument("--float64", action="store_true", help="compare every step with one in float64, too")
    p.add_argument("--compile-c", action="store_true", help="compile the C of every model, which takes minutes")
    a = p.parse_args()
    import jax
    jax.config.update("jax_enable_x64", True)
    chosen, failures = a.only or (QUICK if a.quick else names()), 0
    for name in chosen:
        begun = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                why, text = check(name, a, folder)
            except Exception as error:
                why, text = [f"{type(error).__name__}: {str(error)[-300:]}"], ""
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
        failures += bool(why)
        print(f"{name}: {'FAILED ' + '; '.join(why) if why else 'ok'} {text} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{len(chosen)} architectures, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
