"""Event files in the real TensorBoard: its reader finds the tags, values and folders that Keras's callback writes, and the plugins
find histograms, images, the graph and hyperparameters.

    check_tensorboard.py BATCHWISE DIGITS FOLDER
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

command, digits, folder = sys.argv[1:4]
board, history, weights = (os.path.join(folder, name) for name in ("board", "history.json", "model.keras"))
model = "conv2d(8,3,relu) flatten dense(16,relu) dense(10,softmax)"
subprocess.run([command, "train", "--model", model, "--data", digits, "--scale", "1/16", "--epochs", "3", "--validation-split", "0.2",
                "--tensorboard", board, "--log-steps", "20", "--quiet", "--history", history, "--save-model", weights],
               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read(run):
    events = EventAccumulator(os.path.join(board, run), size_guidance={"tensors": 0})
    events.Reload()
    return events


def points(events, tag):
    return [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]


train, validation, root = read("train"), read("validation"), read("")
logs = json.load(open(history))
for events, prefix in ((train, ""), (validation, "val_")):
    for name in ("loss", "accuracy"):
        found = points(events, "epoch_" + name)
        assert [step for step, _ in found] == [0, 1, 2], found
        assert numpy.allclose([float(v) for _, v in found], logs[prefix + name], rtol=1e-6), (name, found)
assert [step for step, _ in points(train, "batch_loss")] == [20, 40, 60, 80, 100, 120], points(train, "batch_loss")
assert len(points(validation, "evaluation_loss_vs_iterations")) == 3
assert abs(float(points(train, "epoch_learning_rate")[0][1]) - 0.001) < 1e-9
for tag in ("memory_bytes", "planned_bytes", "samples_per_second", "utilisation", "data_wait"):
    assert len(points(train, "resources/" + tag)) == 3, tag

# The last histogram of each variable is that of the saved weights, by TensorBoard's own rule.
os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402  (slow, so only when the rest is right)
from tensorboard.plugins.histogram import summary_v2  # noqa: E402

loaded = keras.models.load_model(weights)
for layer in loaded.layers:
    for variable in layer.weights:
        tag = "sequential/%s/%s/histogram" % (layer.name, variable.name)
        values = numpy.asarray(variable.value)
        expected = tensor_util.make_ndarray(summary_v2.histogram_pb("x", values).value[0].tensor)
        found = points(train, tag)[-1][1]
        assert found.shape == (30, 3) and found[:, 2].sum() == values.size, tag
        assert numpy.allclose(found, expected, rtol=1e-6, atol=1e-7), (tag, found, expected)
        assert points(train, tag.replace("/histogram", "/gradient"))[0][1].shape == (30, 3), tag

image = points(train, "inputs")[0][1]
assert image[0] == b"8" and image[1] == b"8" and len(image) == 6 and all(png.startswith(b"\x89PNG") for png in image[2:])
graph = train.Graph()
names = {node.name: list(node.input) for node in graph.node}
assert names["sequential/dense"] == ["sequential/flatten"] and names["sequential/conv2d"] == ["sequential/input"], names
start = plugin_data_pb2.HParamsPluginData.FromString(root.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
parameters = start.session_start_info.hparams
assert parameters["optimizer"].string_value == "adam" and parameters["batch"].number_value == 32, parameters
experiment = plugin_data_pb2.HParamsPluginData.FromString(root.SummaryMetadata("_hparams_/experiment").plugin_data.content).experiment
assert ("validation", "epoch_loss") in {(m.name.group, m.name.tag) for m in experiment.metric_infos}
end = plugin_data_pb2.HParamsPluginData.FromString(root.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
assert end.session_end_info.status == 1, end

# What each page of TensorBoard offers: its own servers, asked as the browser does.
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer  # noqa: E402
from tensorboard.plugins import base_plugin  # noqa: E402
from tensorboard.plugins.distribution import distributions_plugin  # noqa: E402
from tensorboard.plugins.histogram import histograms_plugin  # noqa: E402
from tensorboard.plugins.image import images_plugin  # noqa: E402
from tensorboard.plugins.scalar import scalars_plugin  # noqa: E402
from werkzeug.test import Client  # noqa: E402

runs = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(board)
runs.Reload()
context = base_plugin.TBContext(logdir=board, multiplexer=runs, data_provider=data_provider.MultiplexerDataProvider(runs, board))
kernel = "sequential/dense/kernel/histogram"
for plugin, tag in ((scalars_plugin.ScalarsPlugin, "epoch_loss"), (images_plugin.ImagesPlugin, "inputs"),
                    (histograms_plugin.HistogramsPlugin, kernel), (distributions_plugin.DistributionsPlugin, kernel)):
    offered = Client(plugin(context).get_plugin_apps()["/tags"]).get("/tags").get_json()
    assert tag in offered["train"], (plugin, offered)
pictures = Client(images_plugin.ImagesPlugin(context).get_plugin_apps()["/images"]).get("/images?run=train&tag=inputs&sample=0").get_json()
assert [p["step"] for p in pictures] == [0], pictures

# A training that is killed is read as far as it came: whole epochs, from the first on. So is what was written when the last record was cut
# off anywhere, as by a disk that filled up.
killed = os.path.join(folder, "killed")
run = subprocess.Popen([command, "train", "--model", model, "--data", digits, "--scale", "1/16", "--epochs", "1000000", "--validation-split", "0.2",
                        "--tensorboard", killed, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def epochs_of(path):
    events = EventAccumulator(path, size_guidance={"tensors": 0})
    events.Reload()
    return [e.step for e in events.Tensors("epoch_loss")] if "epoch_loss" in events.Tags()["tensors"] else []


seen = []
while len(seen) < 3 and run.poll() is None:
    time.sleep(0.05)
    seen = epochs_of(os.path.join(killed, "validation")) if os.path.isdir(os.path.join(killed, "validation")) else []
run.kill()
assert run.wait() == -signal.SIGKILL
for part in ("train", "validation"):
    found = epochs_of(os.path.join(killed, part))
    assert len(found) >= 3 and found == list(range(len(found))), (part, found)
(name,) = os.listdir(os.path.join(killed, "validation"))
whole = open(os.path.join(killed, "validation", name), "rb").read()
cut = os.path.join(folder, "cut")
os.mkdir(cut)
last = 0
for length in list(range(0, min(len(whole), 400), 7)) + [len(whole) * k // 12 for k in range(1, 13)]:
    open(os.path.join(cut, name), "wb").write(whole[:length])
    found = epochs_of(cut)
    assert found == list(range(len(found))), (length, found)
    last = max(last, len(found))
assert last >= 3, last

# Keras's own callback, where TensorFlow is there to write for it: the same folders and, but for two tags that are about TensorFlow
# itself, the same tags, each with the same number of points, of the same plugin.
try:
    import tensorflow  # noqa: F401
except ImportError:
    print("Keras's own callback needs TensorFlow: not compared")
else:
    data = numpy.load(digits)
    small = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(8, 3, activation="relu", name="conv2d"), keras.layers.Flatten(name="flatten"),
                              keras.layers.Dense(16, activation="relu", name="dense"), keras.layers.Dense(10, activation="softmax", name="dense_1")],
                             name="sequential")
    compared = {"train": set(), "validation": set()}
    # With points for batches the callback writes none for epochs, so it is asked for each.
    for every in ("epoch", 20):
        own = os.path.join(folder, "keras-%s" % every)
        small.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        small.fit(data["x"].reshape(-1, 8, 8, 1) / 16, data["y"], epochs=3, validation_split=0.2, verbose=0,
                  callbacks=[keras.callbacks.TensorBoard(own, histogram_freq=1, update_freq=every)])
        assert set(os.listdir(own)) <= {d for d in os.listdir(board) if os.path.isdir(os.path.join(board, d))}, os.listdir(own)
        for run, events in (("train", train), ("validation", validation)):
            theirs = EventAccumulator(os.path.join(own, run), size_guidance={"tensors": 0})
            theirs.Reload()
            tags = set(theirs.Tags()["tensors"]) - {"keras", "batch_steps_per_second"}
            assert tags <= set(events.Tags()["tensors"]), (run, tags - set(events.Tags()["tensors"]))
            for tag in tags:
                steps = [[step for step, _ in points(e, tag)] for e in (theirs, events)]
                assert steps[0] == steps[1], (run, tag, steps)
                plugins = [e.SummaryMetadata(tag).plugin_data.plugin_name for e in (theirs, events)]
                assert plugins[0] == plugins[1], (tag, plugins)
            compared[run] |= tags
    for run, events in (("train", train), ("validation", validation)):
        extra = set(events.Tags()["tensors"]) - compared[run]
        assert all(t == "inputs" or t.startswith("resources/") or t.endswith("/gradient") for t in extra), (run, extra)
print("TensorBoard reads all of it")
