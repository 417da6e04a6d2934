"""Event files in the real TensorBoard: its reader finds the tags, values and folders that Keras's callback writes, and the plugins
find histograms, images, the graph and hyperparameters.

    check_tensorboard.py BATCHWISE DIGITS FOLDER
"""

import json
import os
import subprocess
import sys

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
assert [step for step, _ in points(train, "batch_loss")] == [19, 39, 59, 79, 99, 119], points(train, "batch_loss")
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

# Keras's own callback, where TensorFlow is there to write for it: all of its tags are among ours.
try:
    import tensorflow  # noqa: F401
except ImportError:
    print("Keras's own callback needs TensorFlow: not compared")
else:
    own = os.path.join(folder, "keras")
    data = numpy.load(digits)
    small = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten(),
                              keras.layers.Dense(16, activation="relu"), keras.layers.Dense(10, activation="softmax")], name="sequential")
    small.compile("adam", "sparse_categorical_crossentropy", ["accuracy"])
    small.fit(data["x"][:200].reshape(-1, 8, 8, 1) / 16, data["y"][:200], epochs=1, validation_split=0.2, verbose=0,
              callbacks=[keras.callbacks.TensorBoard(own, histogram_freq=1, update_freq=2)])
    for run, events in (("train", train), ("validation", validation)):
        theirs = EventAccumulator(os.path.join(own, run), size_guidance={"tensors": 0})
        theirs.Reload()
        missing = {t for t in theirs.Tags()["tensors"] if t not in events.Tags()["tensors"] and t not in ("keras", "batch_steps_per_second")}
        missing = {t for t in missing if not t.endswith("histogram")} | {
            t for t in missing if t.endswith("histogram") and t.count("/") != 3}
        assert not missing, (run, missing)
print("TensorBoard reads all of it")
