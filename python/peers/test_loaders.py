"""Samples from other libraries: their tensors without copies, and their loaders of batches as they are."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

import batchwise as bw
from batchwise import arrays

BACKEND = keras.backend.backend()


def model_for(x):
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential([layers.Input(x.shape[1:]), layers.Flatten(), layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def address(value):
    return arrays.view(arrays.as_array(value))[0].data


def test_tensors_of_the_backend(digits):
    x, y = digits
    tensor, labels = keras.ops.convert_to_tensor(x), keras.ops.convert_to_tensor(y)
    assert address(tensor) == address(tensor), "a copy is made at each call"
    assert np.array_equal(bw.Dataset(tensor, labels).values(), x)
    mine, other = model_for(x), model_for(x)
    options = {"batch_size": 64, "epochs": 2, "verbose": 0, "shuffle": False}
    assert bw.fit(mine, tensor, labels, **options).history == bw.fit(other, x, y, **options).history


@pytest.mark.skipif(BACKEND != "torch", reason="needs PyTorch")
class TestTorch:
    def test_tensors_share_memory(self, digits):
        import torch

        tensor = torch.tensor(digits[0])
        assert address(tensor) == tensor.data_ptr()
        assert address(tensor[3:, ::2]) == tensor[3:, ::2].data_ptr()
        assert address(tensor.clone().requires_grad_()) != tensor.data_ptr()
        graded = tensor.clone().requires_grad_()
        assert address(graded) == graded.data_ptr()
        assert np.array_equal(bw.Dataset(tensor.bfloat16()).values(), tensor.bfloat16().float().numpy())

    @pytest.mark.parametrize("workers", [0, 2])
    def test_data_loader(self, digits, workers):
        import torch

        x, y = digits
        samples = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
        loader = torch.utils.data.DataLoader(samples, batch_size=48, num_workers=workers)
        mine, other, theirs = model_for(x), model_for(x), model_for(x)
        history = bw.fit(mine, loader, epochs=2, verbose=0, validation_data=loader)
        arrays_of = bw.fit(other, x, y, batch_size=48, epochs=2, verbose=0, shuffle=False, validation_data=(x, y))
        assert history.history == arrays_of.history
        expected = theirs.fit(loader, epochs=2, verbose=0)
        assert np.allclose(history.history["loss"], expected.history["loss"], rtol=2e-3)

    def test_shuffled_and_dropped(self, digits):
        import torch

        x, y = digits
        samples = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
        loader = torch.utils.data.DataLoader(samples, batch_size=100, shuffle=True, drop_last=True)
        assert len(bw.Dataset(loader)) == 500
        seen = [np.concatenate([batch["y"] for batch in bw.Dataset(loader)]) for _ in range(2)]
        assert not np.array_equal(*seen)
        model = model_for(x)
        bw.fit(model, loader, batch_size=250, epochs=3, verbose=0)
        assert int(model.optimizer.iterations) == 6

    def test_a_stream_of_torch(self, digits):
        import torch

        x, y = digits

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(zip(torch.tensor(x), torch.tensor(y)))

        mine, other = model_for(x), model_for(x)
        history = bw.fit(mine, torch.utils.data.DataLoader(Stream(), batch_size=64), epochs=2, verbose=0)
        assert history.history == bw.fit(other, x, y, batch_size=64, epochs=2, verbose=0, shuffle=False).history


@pytest.mark.skipif(BACKEND != "tensorflow", reason="needs TensorFlow")
class TestTensorFlow:
    def test_dataset(self, digits):
        import tensorflow as tf

        x, y = digits
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(48)
        mine, other, theirs = model_for(x), model_for(x), model_for(x)
        history = bw.fit(mine, batches, epochs=2, verbose=0, validation_data=batches.prefetch(2))
        arrays_of = bw.fit(other, x, y, batch_size=48, epochs=2, verbose=0, shuffle=False, validation_data=(x, y))
        assert history.history == arrays_of.history
        expected = theirs.fit(batches, epochs=2, verbose=0)
        assert np.allclose(history.history["loss"], expected.history["loss"], rtol=2e-3)
        assert np.allclose(bw.Model(mine).predict(batches), mine.predict(x, verbose=0), atol=1e-5)

    def test_how_many_samples(self, digits):
        import tensorflow as tf

        samples = tf.data.Dataset.from_tensor_slices(digits)
        counts = {
            "batched": samples.batch(100),
            "dropped": samples.batch(100, drop_remainder=True),
            "mapped": samples.batch(100).map(lambda x, y: (x * 2, y)).prefetch(1),
            "filtered": samples.filter(lambda x, y: y < 100).batch(100),
            "shuffled": samples.shuffle(512).batch(100).shuffle(6),
        }
        assert {name: len(bw.Dataset(one)) for name, one in counts.items()} == dict.fromkeys(counts, 512) | {"dropped": 500}
        with pytest.raises(ValueError, match="steps_per_epoch"):
            bw.fit(model_for(digits[0]), samples.batch(32).repeat(), verbose=0)
        model = model_for(digits[0])
        bw.fit(model, samples.batch(32).repeat(), steps_per_epoch=20, epochs=2, verbose=0)
        assert int(model.optimizer.iterations) == 40


def test_py_dataset(digits):
    x, y = digits

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return x[64 * i : 64 * (i + 1)], y[64 * i : 64 * (i + 1)]

    mine, theirs = model_for(x), model_for(x)
    history = bw.fit(mine, Batches(), epochs=2, verbose=0)
    expected = theirs.fit(Batches(), epochs=2, verbose=0, shuffle=False)
    assert np.allclose(history.history["loss"], expected.history["loss"], rtol=2e-3)


def test_early_stopping_with_a_generator(digits):
    x, y = digits
    stop = keras.callbacks.EarlyStopping("accuracy", patience=3)
    model = model_for(x)

    def forever():
        while True:
            for i in range(0, 512, 64):
                yield x[i : i + 64], y[i : i + 64]

    history = bw.fit(model, forever(), steps_per_epoch=8, epochs=200, verbose=0, callbacks=[stop])
    assert 2 < len(history.epoch) < 200 and int(model.optimizer.iterations) == 8 * len(history.epoch)


OTHERS = {"jax": "jax", "tensorflow": "tensorflow", "torch": "torch"}


@pytest.mark.parametrize("first", [True, False])
def test_one_process_with_the_backend_scikit_learn_and_children(first):
    """The other library computes and forks, before and after this one: OpenMP, threads and locks do not get in each other's way."""
    pytest.importorskip("sklearn")
    other = OTHERS[BACKEND]
    order = f"import batchwise as bw\nimport {other}" if first else f"import {other}\nimport batchwise as bw"
    program = f"""
{order}
import multiprocessing, os
import keras, numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
x = np.random.default_rng(0).normal(size=(256, 16)).astype("f4"); y = (x[:, 0] > 0).astype("i4")

def theirs():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, y, verbose=0)
    HistGradientBoostingClassifier(max_iter=3).fit(x, y)
    return model

def ours(_=0):
    model = bw.Model("dense(64,relu) dense(2,softmax)")
    model.fit(x, y, epochs=2, verbose=0)
    return model.hash

for _ in range(2):
    expected = ours()
    bw.fit(theirs(), x, y, verbose=0)
    assert ours() == expected
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(ours, range(4)) == [expected] * 4
pid = os.fork()
if pid == 0:
    os._exit(0 if ours() == expected else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
bw.fit(theirs(), x, y, verbose=0)
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600, env=environment)
