#!/usr/bin/env python3
"""Every architecture of keras.applications, made by the real Keras without weights, in `batchwise`.

  check_applications.py --batchwise build/batchwise [--quick] [--only NAME ...] [--seconds 900] [--c-parameters 10]

Each is built for its smallest images and few classes in a process of its own, with its variables disturbed so that none is at its
initial value, and saved as .keras. Then `batchwise`
  - predicts: within 1e-4 of Keras, or at most 4 times as far from Keras in float64 as Keras in float32 is;
  - trains one step of SGD, long enough that no change is lost in the rounding of a weight. The same step in float64 is the measure:
    over all variables together batchwise may be at most 4 times as far from it as Keras in float32 is, and in each of them at most 16
    times, or a ten-thousandth (of one variable: a thousandth) of the way that they went. Random layers are off for this;
  - writes ONNX, which predicts the same in ONNX Runtime, and C, which predicts the same. C of models with more than a given number of
    million parameters is written and not compiled: a compiler takes minutes for it.
A result is printed as soon as it is there. --quick takes one small model of each family. Needs keras and tensorflow.
"""
import argparse, ctypes, json, os, subprocess, sys, tempfile, time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SIDES = {"InceptionV3": 75, "InceptionResNetV2": 75, "Xception": 71}
QUICK = ("ConvNeXtTiny DenseNet121 EfficientNetB0 EfficientNetV2B0 InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 "
         "MobileNetV3Small NASNetMobile ResNet50 ResNet50V2 VGG16 Xception").split()
CLASSES, SAMPLES, WAY = 5, 4, 0.02  # a step moves the variables by this part of their norm
ALL_FACTOR, ALL_PART, ONE_FACTOR, ONE_PART = 4, 1e-4, 16, 1e-3


def layers_of(model, kind):
    return [l for l in model._flatten_layers() if isinstance(l, kind)]


def settle(keras, model, x):
    """Moving statistics become those of the samples: with arbitrary ones all samples would end in the same prediction."""
    norms = layers_of(model, keras.layers.BatchNormalization)
    for l in norms:
        l.momentum = 0.0
    model(x, training=True)
    for l in norms:
        l.momentum = 0.99


def finalize(keras, model):
    """A Normalization computes with copies of its variables, which assigning to them leaves as they were."""
    for l in layers_of(model, keras.layers.Normalization):
        if l.input_mean is None:
            l.finalize_state()


def disturb(keras, np, model, g):
    """No variable stays at its initial value. Scales that begin near zero (ConvNeXt's) would hide what lies before them, and without
    any normalization (VGG) Glorot's weights would let the signal fade."""
    normalized = layers_of(model, (keras.layers.BatchNormalization, keras.layers.LayerNormalization))
    for v in model.variables:
        value = np.array(keras.ops.convert_to_numpy(v))
        if not np.issubdtype(value.dtype, np.floating) or value.size == 0:
            continue
        if v.name in ("gamma", "moving_variance", "variance"):
            faint = v.name == "gamma" and np.max(np.abs(value)) <= 1e-3
            v.assign(g.uniform(0.1, 0.3, value.shape) if faint else g.uniform(0.6, 1.2, value.shape))
        elif value.ndim == 1:
            v.assign(value + 0.05 * g.randn(*value.shape))
        elif not normalized:
            v.assign(value * 2 ** 0.5)
    finalize(keras, model)


def build(keras, np, name):
    side = SIDES.get(name, 32)
    keras.utils.set_random_seed(7)
    model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=CLASSES)
    g = np.random.RandomState(3)
    disturb(keras, np, model, g)
    pixels = any(l.__class__.__name__ in ("Rescaling", "Normalization") for l in model.layers)
    x = (g.rand(SAMPLES, side, side, 3) * (255 if pixels else 2) - (0 if pixels else 1)).astype("float32")
    settle(keras, model, x)
    return model, x, (np.arange(SAMPLES) % CLASSES).astype("int32")


def without_noise(config):
    """The configuration with every rate of dropping at 0, so that the step is the same everywhere."""
    if isinstance(config, dict):
        return {k: 0.0 if k in ("rate", "drop_path_rate") else without_noise(v) for k, v in config.items()}
    return [without_noise(v) for v in config] if isinstance(config, list) else config


def steady(keras, model, dtype):
    """The model without noise in float32 or float64."""
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    text = json.dumps(without_noise(json.loads(model.to_json())))
    made = keras.models.model_from_json(text.replace('"float32"', f'"{dtype}"'))
    own = [keras.ops.convert_to_numpy(v) for v in model.weights if "seed" not in v.name]
    for v, value in zip([v for v in made.weights if "seed" not in v.name], own, strict=True):
        v.assign(value)
    finalize(keras, made)
    return made


def numbers(np, model):
    """The values of all variables of floating point, in the model's order."""
    values = [np.array(v) for v in model.variables if "seed" not in v.name]
    return [v for v in values if np.issubdtype(v.dtype, np.floating) and v.size]


def gradients(keras, model, x, y):
    """Gradients of the loss; the forward pass moves the statistics, as in a step. In a graph, as fit does it: only there Keras finds
    the softmax before the crossentropy and takes its logits; otherwise it clips, and certain predictions have no gradient."""
    import tensorflow as tf

    @tf.function
    def of(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
        return tape.gradient(loss, [v.value for v in model.trainable_variables])
    return of(tf.cast(x, keras.config.floatx()))


def step(np, model, found, rate):
    for v, g in zip(model.trainable_variables, found):
        v.assign(v - rate * g)
    return numbers(np, model)


def norm(np, a, b):
    return float(np.sqrt(sum(np.sum((p.astype("f8") - q) ** 2) for p, q in zip(a, b, strict=True))))


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{arguments[1]}: exit {done.returncode}: {done.stderr.strip()[-300:]}"


def judge(np, before, ours, theirs, exact):
    """What failed, and a text with the errors relative to the way."""
    way, mine, its = norm(np, exact, before), norm(np, ours, exact), norm(np, theirs, exact)
    failed = [] if mine <= max(ALL_FACTOR * its, ALL_PART * way) else [f"the step is {mine / way:.1e} from float64's, Keras's {its / way:.1e}"]
    worst = 0.0
    for b, o, t, e in zip(before, ours, theirs, exact):
        rounding = float(np.linalg.norm(np.spacing(np.abs(b.astype("f4")).ravel()))) # a weight itself is rounded
        bound = max(ONE_FACTOR * norm(np, [t], [e]), ONE_PART * norm(np, [e], [b]), rounding)
        worst = max(worst, norm(np, [o], [e]) / bound)
    failed += [f"one variable is {worst:.1f} times as far from float64's as it may be"] if worst > 1 else []
    return failed, f"step {mine / way:.1e} from float64's, Keras's {its / way:.1e}, worst variable {worst:.2f} of its bound"


def check_training(keras, np, model, x, y, batchwise, folder):
    file, data, done = (os.path.join(folder, n) for n in ("steady.keras", "data.npz", "done.keras"))
    exact_model = steady(keras, model, "float64")
    before = numbers(np, exact_model)
    found = gradients(keras, exact_model, x, y)
    length = float(np.sqrt(sum(np.sum(np.square(g)) for g in found)))
    rate = float(f"{WAY * norm(np, before, [np.zeros_like(b) for b in before]) / length:.3g}")
    exact = step(np, exact_model, found, rate)
    del exact_model, found
    calm = steady(keras, model, "float32")
    calm.save(file)
    theirs = step(np, calm, gradients(keras, calm, x, y), rate)
    np.savez(data, x=x, y=y)
    why = run(batchwise, "train", "--model", file, "--data", data, "--batch", str(SAMPLES), "--epochs", "1", "--no-shuffle", "--quiet", "--optimizer",
              f"sgd(lr={rate})", "--loss", "sparse_categorical_crossentropy", "--save-model", done)
    if why:
        return [why], ""
    ours = numbers(np, keras.models.load_model(done, compile=False))
    return judge(np, before, ours, theirs, exact)


def off(np, p, q):
    return float(np.max(np.abs(p - q)))


def judge_predictions(np, what, p, expected, exact):
    """What failed, where `exact` are Keras's predictions in float64."""
    apart, mine, its = off(np, p, expected), off(np, p, exact), off(np, expected, exact)
    return [] if apart <= 1e-4 or mine <= ALL_FACTOR * its else [f"{what} {apart:.1e} apart, {mine:.1e} from float64's, Keras's {its:.1e}"]


def check_onnx(np, file, x, expected, exact, batchwise, folder):
    import onnxruntime
    onnx = os.path.join(folder, "model.onnx")
    why = run(batchwise, "convert", "--quiet", file, onnx)
    if why:
        return [why]
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    p = session.run(None, {session.get_inputs()[0].name: x})[0]
    return judge_predictions(np, "ONNX is", p, expected, exact)


def check_c(np, file, x, expected, exact, batchwise, folder, compiled):
    source, library = os.path.join(folder, "model.c"), os.path.join(folder, "model.so")
    why = run(batchwise, "convert", "--quiet", file, source)
    if why or not compiled:
        return [why] if why else []
    why = run("cc", "-std=c99", "-O1", "-shared", "-fPIC", source, "-o", library, "-lm")
    if why:
        return [why]
    p = np.zeros(CLASSES, "float32")
    sample = np.ascontiguousarray(x[0])
    pointer = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    getattr(ctypes.CDLL(library), "model_predict")(pointer(sample), pointer(p))
    return judge_predictions(np, "C is", p, expected[0], exact[0])


def check(name, a, folder):
    """What failed of one architecture, and a text with what was measured."""
    import numpy as np
    import keras
    model, x, y = build(keras, np, name)
    file, samples, predicted = (os.path.join(folder, n) for n in ("model.keras", "x.npy", "p.npy"))
    model.save(file)
    np.save(samples, x)
    why = run(a.batchwise, "predict", "--quiet", "--model", file, "--data", samples, "--out", predicted)
    if why:
        return [why], ""
    expected = np.asarray(model(x, training=False))
    exact = np.asarray(steady(keras, model, "float64")(x.astype("f8"), training=False))
    ours, among = np.load(predicted), np.max(np.ptp(expected, axis=0))
    failed = judge_predictions(np, "predictions are", ours, expected, exact)
    failed += [] if among >= 1e-3 else [f"Keras's own predictions differ by {among:.1e} only"]
    more, text = check_training(keras, np, model, x, y, a.batchwise, folder)
    compiled = model.count_params() <= a.c_parameters * 1e6
    failed += more + check_onnx(np, file, x, expected, exact, a.batchwise, folder)
    failed += check_c(np, file, x, expected, exact, a.batchwise, folder, compiled)
    return failed, f"predict {off(np, ours, expected):.1e} ({off(np, ours, exact):.1e} from float64's, Keras's {off(np, expected, exact):.1e}), {text}, ONNX, C{'' if compiled else ' (not compiled)'}"


def check_alone(name, a):
    """The same in a process of its own, which may take only so long."""
    command = [sys.executable, __file__, "--batchwise", a.batchwise, "--alone", name, "--c-parameters", str(a.c_parameters)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=a.seconds)
    except subprocess.TimeoutExpired:
        return [f"no result in {a.seconds} seconds"], ""
    if done.returncode:
        return [f"exit {done.returncode}: {done.stderr.strip()[-400:]}"], ""
    return json.loads(done.stdout.splitlines()[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", nargs="+")
    p.add_argument("--seconds", type=float, default=900, help="for one architecture")
    p.add_argument("--c-parameters", type=float, default=10, help="millions up to which C is compiled")
    p.add_argument("--alone", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.alone:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(check(a.alone, a, folder)))
        return 0
    if not a.only and not a.quick:
        import keras
        a.only = sorted(n for n in dir(keras.applications) if n[0].isupper())
    chosen, failures = a.only or QUICK, 0
    for name in chosen:
        begun = time.time()
        why, text = check_alone(name, a)
        failures += bool(why)
        print(f"{name}: {'FAILED ' + '; '.join(why) if why else 'ok'} {text} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{len(chosen)} architectures, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
