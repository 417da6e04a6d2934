#!/usr/bin/env python3
"""What TensorFlow does with the examples of docs/guide/stories.md, so that the figures there can be repeated.

    python3 bench/peers/stories.py [STORY ...]

Needs TensorFlow; each story runs in a process of its own. Memory is the largest resident size less that before the model was made. The
large batch also runs in memory control groups, in which the kernel kills what takes more: this needs root, and a story that
cannot make a group says why and ends. BATCHWISE is the command, build/batchwise unless it is set.
"""
import json
import os
import resource
import subprocess
import sys
import time

import memory_group

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
BATCHWISE = os.environ.get("BATCHWISE", os.path.join(os.path.dirname(__file__), "../../build/batchwise"))


def load():
    import numpy
    import tensorflow

    tensorflow.keras.utils.set_random_seed(1)
    return numpy, tensorflow, tensorflow.keras


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def image_net(keras, side, channels, filters, classes=10):
    layers = [keras.Input((side, side, channels))]
    for count in filters:
        layers += [keras.layers.Conv2D(count, 3, activation="relu"), keras.layers.MaxPooling2D(2)]
    return keras.Sequential(layers + [keras.layers.Flatten(), keras.layers.Dense(classes, activation="softmax")])


def image_small_batch():
    numpy, tf, keras = load()
    x = numpy.random.uniform(size=(1000, 64, 64, 3)).astype("float32")
    y = numpy.random.randint(0, 10, 1000)
    model, optimizer = image_net(keras, 64, 3, [32]), keras.optimizers.Adam()
    loss_of = keras.losses.SparseCategoricalCrossentropy()
    for name, wrap in (("eager", lambda f: f), ("tf.function", tf.function)):

        @wrap
        def step(images, labels):
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(images, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
        for images, labels in data.take(2):
            step(images, labels)
        begin = time.perf_counter()
        for images, labels in data:
            step(images, labels)
        print(f"a custom step, {name}: {1000 / (time.perf_counter() - begin):.0f} images/s")


def large_batch(batch):
    numpy, tf, keras = load()
    model = image_net(keras, 128, 3, [32, 64])
    model.compile("adam", "sparse_categorical_crossentropy")
    x = numpy.random.uniform(size=(batch, 128, 128, 3)).astype("float32")
    before = resident()
    model.fit(x, numpy.random.randint(0, 10, batch), batch_size=batch, epochs=2, verbose=0)
    print(f"two steps made, {resident() - before:.0f} MiB beside {before:.0f} for its process and the images")


def told(name, command, limit):
    """Runs a command, within `limit` MiB if that is not 0, and says how it ended."""
    if limit:
        with memory_group.MemoryGroup(limit) as group:
            done = group.run(command)
            end = "killed by the kernel for want of memory" if group.killed() else f"the group held at most {group.peak():.1f} MiB"
    else:
        done, end = subprocess.run(command, check=False, capture_output=True, text=True), ""
    made = done.stdout.strip() or f"ends with code {done.returncode}"
    if made.startswith("{"):
        run = json.loads(made)
        made = f"{run['samples']} images in {run['steps']} steps, {run['planned_bytes'] / 2**20:.1f} MiB planned, {run['peak_bytes'] / 2**20:.1f} used"
    print(f"{name} {f'within {limit} MiB' if limit else 'without a limit'}: {made}{'; ' if end else ''}{end}", flush=True)


def image_large_batch():
    if len(sys.argv) == 3:
        large_batch(int(sys.argv[2]))
        return
    for batch, limit in ((16, 0), (128, 0), (512, 0), (16, 1024), (128, 1024), (128, 2048), (512, 2048)):
        told(f"TensorFlow, batch {batch}", [sys.executable, __file__, "image_large_batch", str(batch)], limit)
    model = "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)"
    for batch in (16, 8192):
        told(f"Batchwise, batch {batch}", [BATCHWISE, "train", "--quiet", "--json", "--batch", str(batch), "--epochs", "1", "--model", model, "--data",
             f"synth:images?n={max(batch, 1024)}&shape=128x128x3"], 64)


def ordered_classes():
    numpy, tf, keras = load()
    x = numpy.concatenate([numpy.random.uniform(0, 1, (100, 10)), numpy.random.uniform(2, 3, (100, 10))])
    y = numpy.concatenate([numpy.zeros(100), numpy.ones(100)])
    for name, options in (
        ("in order, batch 32", {"batch_size": 32, "shuffle": False}),
        ("shuffled, batch 32", {"batch_size": 32}),
        ("no batch size", {}),
        ("full batch", {"batch_size": 200}),
    ):
        results = []
        for seed in range(5):
            keras.utils.set_random_seed(seed)
            model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
            model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
            model.fit(x, y, epochs=10, verbose=0, **options)
            results.append(model.evaluate(x, y, verbose=0)[1])
        print(f"{name}: accuracy {numpy.median(results):.3f} ({min(results):.3f} to {max(results):.3f} over five seeds)")


def noise_small_large():
    numpy, tf, keras = load()
    x = numpy.random.normal(size=(500, 2))
    y = 2 * x[:, 0] + x[:, 1] + 0.5 * numpy.random.normal(size=500)

    def fresh(rate):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(rate), "mse")
        return model

    for rate in (0.001, 0.01):
        first = fresh(rate)
        for name, model, batch, epochs in (
            ("batch 16", first, 16, 50),
            ("batch 128, continuing that model", first, 128, 50),
            ("batch 128, as many epochs", fresh(rate), 128, 50),
            ("batch 128, as many updates", fresh(rate), 128, 400),
        ):
            model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0)
            print(f"rate {rate}, {name}: loss {model.evaluate(x, y, verbose=0):.4f}")


def memory_exhaustion():
    numpy, tf, keras = load()
    x = numpy.random.uniform(size=(100000, 100))
    y = (x[:, :10].sum(1) > 5).astype("int32")
    model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    before = resident()
    for batch in (10000, 100000):
        history = model.fit(x, y, batch_size=batch, epochs=5, verbose=0)
        print(f"batch {batch}: {resident() - before:.0f} MiB, accuracy {history.history['accuracy'][-1]:.3f}")


def varying_batches():
    numpy, tf, keras = load()
    x = numpy.arange(1000, dtype="float32").reshape(-1, 1)
    parts = [tf.data.Dataset.from_tensor_slices((x, x)).batch(size) for size in (32, 64)]
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    history = model.fit(parts[0].concatenate(parts[1]), epochs=10, verbose=0)
    print("losses", " ".join(f"{loss:.4f}" for loss in history.history["loss"]))
    traced = []

    @tf.function
    def step(numbers, targets):
        traced.append(numbers.shape[0])  # runs when the function is traced, not when it is called
        return model(numbers)

    for numbers, targets in parts[0].concatenate(parts[1]):
        step(numbers, targets)
    print(f"a tf.function is traced {len(traced)} times, for batches of {traced}")
    begin = time.perf_counter()
    step.get_concrete_function(tf.TensorSpec((17, 1)), tf.TensorSpec((17, 1)))
    print(f"tracing takes {1e3 * (time.perf_counter() - begin):.1f} ms")


def custom_loop():
    numpy, tf, keras = load()
    model, optimizer = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]), keras.optimizers.Adam(0.05)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.sqrt(1 + (model(x, training=True) - y) ** 2) - 1)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    begin = time.perf_counter()
    for _ in range(300):
        size = numpy.random.randint(1, 65)
        x = numpy.random.normal(size=(size, 4)).astype("float32")
        y = x @ [[1], [-2], [3], [0]] + 0.1 * numpy.random.normal(size=(size, 1))
        y[numpy.random.randint(0, 50, (size, 1)) == 0] += 100
        step(tf.constant(x), tf.constant(y, tf.float32))
    found = " ".join(f"{weight:.2f}" for weight in model.get_weights()[0].ravel())
    print(f"300 updates by a tf.function: {time.perf_counter() - begin:.1f} s, traced {step.experimental_get_tracing_count()} times, weights {found}")


def accumulate():
    numpy, tf, keras = load()
    digits = numpy.load(os.path.join(os.path.dirname(__file__), "../../data/digits.npz"))
    x, y = digits["x"].astype("float32") / 16, digits["y"]
    results = []
    for batch, steps in ((64, 1), (16, 4)):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")])
        model.compile(keras.optimizers.Adam(0.003, gradient_accumulation_steps=steps if steps > 1 else None), "sparse_categorical_crossentropy")
        model.fit(x, y, batch_size=batch, epochs=3, shuffle=False, verbose=0)
        results.append(numpy.concatenate([weights.ravel() for weights in model.get_weights()]))
    apart = numpy.abs(results[0] - results[1])
    print(f"4 batches of 16 against 64: {(apart > 0).mean():.0%} of the weights differ, by up to {apart.max():.2g}")


def small_batch_speed():
    numpy, tf, keras = load()
    x = numpy.random.normal(size=(1000, 28, 28, 1)).astype("float32")
    y = keras.utils.to_categorical(numpy.random.randint(0, 10, 1000), 10)
    models, rates = {}, {}
    for eager in (True, False):
        for batch in (16, 128):
            model = models[eager, batch] = image_net(keras, 28, 1, [32])
            model.compile("adam", "categorical_crossentropy", run_eagerly=eager)
            model.fit(x, y, batch_size=batch, verbose=0)
    for _ in range(3):
        for (eager, batch), model in models.items():
            epochs = 3 if eager else 10
            begin = time.perf_counter()
            model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0)
            name = f"TensorFlow, {'eager' if eager else 'compiled'}, batch {batch}"
            rates.setdefault(name, []).append(1000 * epochs / (time.perf_counter() - begin))
        command = [BATCHWISE, "bench", "--workload", "conv28:16,conv28:128", "--epochs", "10", "--json"]
        for run in json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]:
            rates.setdefault(f"Batchwise, batch {run['batch']}", []).append(run["samples_per_s"])
    for name, measured in rates.items():
        print(f"{name}: {numpy.median(measured):.0f} images/s ({min(measured):.0f} to {max(measured):.0f})")


def slow_loading():
    numpy, tf, keras = load()
    x = numpy.random.normal(size=(1000, 28, 28, 1)).astype("float32")
    y = numpy.random.randint(0, 10, 1000)
    model = image_net(keras, 28, 1, [32])
    model.compile("adam", "sparse_categorical_crossentropy")

    def slowly(image, label):
        def wait(image):
            time.sleep(62.5e-6)
            return image

        made = tf.numpy_function(wait, [image], tf.float32)
        made.set_shape((28, 28, 1))
        return made, label

    data = tf.data.Dataset.from_tensor_slices((x, y))
    for name, ready in (
        ("when needed", data.map(slowly).batch(16)),
        ("prefetch", data.map(slowly).batch(16).prefetch(tf.data.AUTOTUNE)),
        ("parallel map and prefetch", data.map(slowly, num_parallel_calls=16).batch(16).prefetch(tf.data.AUTOTUNE)),
        ("cache", data.map(slowly).cache().batch(16)),
    ):
        model.fit(ready, verbose=0)
        begin = time.perf_counter()
        model.fit(ready, epochs=3, verbose=0)
        print(f"{name}: {3000 / (time.perf_counter() - begin):.0f} images/s")


STORIES = [image_small_batch, image_large_batch, ordered_classes, noise_small_large, memory_exhaustion, varying_batches, custom_loop,
           accumulate, small_batch_speed, slow_loading]

if __name__ == "__main__":
    named = {story.__name__: story for story in STORIES}
    wanted = sys.argv[1:2] or list(named)
    for name in wanted:
        if len(sys.argv) > 1:
            try:
                named[name]()
            except memory_group.Unavailable as error:
                sys.exit(f"no memory control group: {error}")
        else:
            print(f"== {name}", flush=True)
            subprocess.run([sys.executable, __file__, name], check=False)
