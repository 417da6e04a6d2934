"""Smaller things that the header offers: TensorBoard, facts of a running training, files of samples, kinds of files."""

import struct
import zlib

import numpy as np

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


def test_tensorboard(digits, tmp_path):
    model = bw.Model(EXPRESSION)
    board = model.tensorboard(tmp_path / "run", images=2, histograms=0)
    board["dropout"], board["note"] = 0.25, "first try"
    model.fit(*digits, verbose=0, tensorboard=board)
    board.scalar("mine", 3, 1.5, run="own")
    model.fit(*digits, verbose=0, tensorboard=tmp_path / "other")
    del board
    model.close()
    text = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*tfevents*"))
    assert b"dropout" in text and b"first try" in text
    assert b"mine" in b"".join(path.read_bytes() for path in (tmp_path / "run" / "own").iterdir())
    assert list((tmp_path / "other").rglob("*tfevents*"))


def test_a_running_training_tells_its_facts(digits):
    model, seen = bw.Model(EXPRESSION), []
    assert model.running() is None
    model.fit(*digits, batch_size=64, epochs=3, verbose=0, callbacks=[lambda *_: seen.append(model.running())])
    assert [one.updates for one in seen] == [29, 58, 87] and seen[0].planned_bytes > 0 and model.running() is None


def test_loss_layers_and_their_inputs():
    graph = bw.Graph()
    a = graph.input((4,), "a")
    graph.output(graph.merge("add", [a.layer("dense(2)"), a.layer("dense(2)")]), "sum")
    model = graph.model()
    model.compile("sgd", "mse")
    model.build()
    assert model.loss in ("mse", "mean_squared_error")
    layers = {layer.name: layer.inputs for layer in model.layers}
    added = next(inputs for name, inputs in layers.items() if name.startswith("add"))
    assert [name.startswith("dense") for name, _ in added] == [True, True] and layers["a"] == []


def png():
    """A black image of 4 x 4 pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(bytes(4 * (1 + 12)))
    head = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_files_of_samples(tmp_path):
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        for i in range(2):
            (tmp_path / kind / f"{i}.png").write_bytes(png())
    data = bw.Dataset(tmp_path, shape=(4, 4, 3))
    assert [data.file(i)[-9:] for i in range(4)] == ["cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png"]
    assert data.file(4) is None and bw.Dataset(np.zeros((3, 2))).file(0) is None


def test_like_the_samples_of_a_model(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{10 * i},{i}" for i in range(20)))
    model = bw.Model("dense(1)")
    model.fit(bw.Dataset(tmp_path / "t.csv", target="b").standardise(), verbose=0)
    raw = np.array([[95.0]], np.float32)
    scaled = bw.Dataset(raw).standardise(like=model)
    assert np.allclose(model.predict(scaled), model.predict(np.zeros((1, 1), np.float32)), atol=1e-6)


def test_a_function_that_takes_long_can_ask_whether_it_is_wanted():
    seen = []

    def make(number, epoch, cancelled):
        seen.append(cancelled())
        return np.zeros(2)

    bw.Dataset.from_function(make, 4, x=(2,)).values()
    assert seen and not any(seen)


def test_kinds_of_files_and_findings():
    kinds = {row[0]: row for row in bw.file_kinds().rows}
    assert kinds[".keras"][2:5] == (True, True, True) and kinds[".onnx"][4]
    assert "unscaled-inputs" in bw.finding_ids()
