#!/usr/bin/env python3
"""What `batchwise plan` says a system that holds the whole batch needs, beside what TensorFlow took.

  memory.py --batchwise build/batchwise [--only conv28:1024,conv128:128] [--markdown]

Each figure comes from a process of its own: TensorFlow trains two steps of one sample and two of the batch with Adam in a
tf.function; what it took is the largest resident size (VmHWM, reset before the batch) less the resident size before the model
was made, so that the process itself, 0.6 GB of code and threads, is left out. The batch lies in memory as a NumPy array before;
its copy as a tensor counts. The same model as an expression goes to `batchwise plan --batch B --json`.
"""
import argparse, json, os, subprocess, sys

# name: input shape, the same layers as in an expression
MODELS = {
    "conv28": ((28, 28, 1), "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "conv128": ((128, 128, 3), "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)"),
    "mlp1024": ((1024,), "dense(1024,relu) dense(1024,relu) dense(10,softmax)"),
    "norm32": ((32, 32, 3), "conv2d(32,3,padding=same) batchnorm relu conv2d(32,3,padding=same) batchnorm relu maxpool2d(2) "
                            "conv2d(64,3,padding=same) batchnorm relu global_avgpool2d dense(10,softmax)"),
    "vgg32": ((32, 32, 3), "conv2d(32,3,relu,padding=same) conv2d(32,3,relu,padding=same) maxpool2d(2) dropout(0.25) "
                           "conv2d(64,3,relu,padding=same) conv2d(64,3,relu,padding=same) maxpool2d(2) dropout(0.25) flatten "
                           "dense(512,relu) dropout(0.5) dense(10,softmax)"),
    "tanh64": ((64, 64, 3), "conv2d(16,5,tanh,strides=2) conv2d(32,3,tanh) avgpool2d(2) flatten dense(128,tanh) dense(10,softmax)"),
}
DEFAULT = "conv28:1024,conv28:4096,conv128:128,conv128:512,mlp1024:16384,norm32:512,norm32:2048,vgg32:1024,tanh64:1024"


def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))


def layer(keras, text):
    """One layer of an expression, with its arguments by position or name, as Keras's."""
    name, _, inside = text.partition("(")
    given = [a for a in inside.rstrip(")").split(",") if a]
    plain = [a for a in given if "=" not in a]
    named = dict(a.split("=") for a in given if "=" in a)
    if name == "conv2d":
        return keras.Conv2D(int(plain[0]), int(plain[1]), activation=plain[2] if len(plain) > 2 else None,
                            padding=named.get("padding", "valid"), strides=int(named.get("strides", 1)))
    if name == "dense":
        return keras.Dense(int(plain[0]), activation=plain[1] if len(plain) > 1 else None)
    return {"maxpool2d": lambda: keras.MaxPooling2D(int(plain[0])), "avgpool2d": lambda: keras.AveragePooling2D(int(plain[0])),
            "global_avgpool2d": keras.GlobalAveragePooling2D, "flatten": keras.Flatten, "batchnorm": keras.BatchNormalization,
            "relu": keras.ReLU, "dropout": lambda: keras.Dropout(float(plain[0]))}[name]()


def measure(name, batch):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf
    shape, expression = MODELS[name]
    x = np.random.RandomState(0).rand(batch, *shape).astype("float32")
    y = np.arange(batch) % 10
    tf.matmul(tf.ones((8, 8)), tf.ones((8, 8)))
    before = status("VmRSS")
    model = tf.keras.Sequential([tf.keras.Input(shape)] + [layer(tf.keras.layers, t) for t in expression.split()])
    optimizer, loss = tf.keras.optimizers.Adam(), tf.keras.losses.SparseCategoricalCrossentropy()

    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))

    for _ in range(2):
        step(tf.convert_to_tensor(x[:1]), tf.convert_to_tensor(y[:1]))
    one = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    for _ in range(2):
        step(tf.convert_to_tensor(x), tf.convert_to_tensor(y))
    print(json.dumps({"took": status("VmHWM") - before, "one": one - before}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--only", default=DEFAULT)
    p.add_argument("--markdown", action="store_true", help="rows for bench/RESULTS.md")
    p.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.measure:
        return measure(a.measure[0], int(a.measure[1]))
    row = "| {} | {} | {:.0f} | {:.0f} | {:+.0f} % | {:.1f} |" if a.markdown else "{:10} {:>6} {:>8.0f} {:>8.0f} {:>+5.0f} % {:>7.1f}"
    for item in a.only.split(","):
        name, batch = item.split(":")
        run = subprocess.run([sys.executable, __file__, "--measure", name, batch], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{item}: {run.stderr.strip()[-500:]}")
        took = json.loads(run.stdout)["took"]
        shape, expression = MODELS[name]
        text = f"input({','.join(map(str, shape))}) {expression}"
        plan = json.loads(subprocess.run([a.batchwise, "plan", "--model", text, "--batch", batch, "--json"], check=True,
                                         capture_output=True, text=True).stdout)
        said = plan["batches"][0]["whole_batch_bytes"]
        print(row.format(name, batch, took / 1e6, said / 1e6, 100 * (said / took - 1), plan["batches"][0]["peak_bytes"] / 1e6),
              flush=True)


if __name__ == "__main__":
    main()
