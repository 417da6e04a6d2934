"""Proves on a model and its samples that splitting a batch changes nothing: not workers, ranks or pieces.

The same few updates are made again and again from the same initial weights, each time split differently. All but other tiles must
give the same bits; by how much rounding differs with another tile is measured.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._facts import Record, Table
from .model import as_model
from .ranks import Ranks


def verify(
    model: Any,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    batch_size: int = 32,
    steps: int = 3,
    seed: int = 0,
    workers: int = 0,
    memory: int | None = None,
) -> Verification:
    """Compares runs of a few updates over other numbers of workers, ranks, pieces and tiles; the model itself stays as it is.

    Returns a table; `verification.proven` tells whether all bits were equal.
    """
    model = as_model(model, x)
    dataset = model._dataset(x, y, sample_weight)
    count = len(dataset)
    batch = min(int(batch_size), count)
    samples = dataset.shuffle(seed).take(min(count, batch * steps))
    proof = _Proof(model, samples, batch, seed, memory)
    reference = proof.run(workers=workers)
    tile, lanes = reference.facts.tile, reference.facts.lanes
    phases = proof.phases()
    rows = [
        _compared("workers", reference, [(str(k), proof.run(workers=k, tile=tile, lanes=lanes)) for k in (1, 2, 3)]),
        _compared("ranks", reference, proof.ranks(2, tile, lanes)),
    ]
    half = 1
    while half <= batch // 4:
        half *= 2
    whole = reference if tile <= half else proof.run(tile=half, lanes=lanes)
    small = min(tile, half)
    pieces = []
    if batch > 1 and phases == 1:
        piece = batch // 2 // small * small
        pieces.append((f"{piece} + {batch - piece} samples", proof.run(tile=small, lanes=lanes, piece=piece)))
    for k in (2, 4):
        if batch % k == 0:
            pieces.append((f"{k} x {batch // k} samples", proof.run(tile=small, lanes=lanes, accumulate=k)))
    rows.append(_compared("accumulation", whole, pieces))
    others = sorted({1, tile // 2, tile * 2} - {0, tile})
    rows.append(_compared("tile", reference, [(str(k), proof.run(tile=k, lanes=lanes)) for k in others if k <= 2048]))
    return Verification(rows, reference, batch)


class _Proof:
    def __init__(self, model, samples, batch, seed, memory):
        self.model, self.samples, self.batch, self.seed, self.memory = model, samples, batch, seed, memory
        self.copy = model.__reduce__()

    def _model(self, **settings):
        restore, (content, unbuilt, given) = self.copy[:2]
        return restore(content, unbuilt, {**given, **settings})

    def phases(self):
        from .plan import plan

        return plan(self._model(), self.samples, batch_size=self.batch)[0].facts.phases

    def run(self, *, workers=0, tile=None, lanes=None, accumulate=1, piece=0, settings=None):
        """Trains a copy, and gives its weights, their hash and the facts of the run."""
        model = self._model(workers=workers, **(settings or {}))
        memory = self.memory if tile is None else None
        common = {"seed": self.seed, "tile": tile, "lanes": lanes, "memory": memory}
        facts = None
        if piece:
            self._feed(model, piece, common)
        else:
            facts = model.fit(self.samples, batch_size=self.batch // accumulate, accumulate=accumulate, verbose=0, **common).facts
        weights = np.concatenate([one.ravel() for one in model.get_weights()])
        result = Record(facts=facts, hash=model.hash, weights=weights)
        model.close()  # before the group of its rank ends
        return result

    def _feed(self, model, piece, common):
        if not model.built:
            model.build(self.samples.shape, self.seed)
        data = self.samples.batch(f"{piece},{self.batch - piece}")
        gradients, window = model.gradients(**common), 0
        for batch in model.iterate(data):
            gradients.add(batch)
            window += len(batch)
            if window == self.batch:
                gradients.apply()
                window = 0
        if window:
            gradients.apply()

    def ranks(self, count, tile, lanes):
        """Each rank is a thread with a context of its own."""
        group = Ranks(count)
        found, failures = [None] * count, []

        def one(rank):
            try:
                found[rank] = self.run(workers=1, tile=tile, lanes=lanes, settings={"ranks": group.at(rank)})
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        group.close()
        return [(f"{rank} of {count}", result) for rank, result in enumerate(found)]


def _compared(kind, expected, results):
    if not results:
        return (kind, None, 0.0, "nothing to compare")
    equal = all(result.hash == expected.hash for _, result in results)
    difference = max(float(np.abs(result.weights.astype(float) - expected.weights).max(initial=0)) for _, result in results)
    return (kind, equal, difference, "; ".join(what for what, _ in results))


class Verification(Table):
    """Whether each way of splitting gave the same bits, and the largest difference of any weight."""

    columns = ["kind", "equal", "difference", "compared"]

    def __init__(self, rows, reference, batch):
        self.rows = rows
        by_kind = {row[0]: row[1] for row in rows}
        self.proven = bool(by_kind["workers"] and by_kind["ranks"] and by_kind["accumulation"] is not False)
        self.facts = reference.facts
        count = len(reference.weights)
        self.caption = f"all {count:,} weights after {self.facts.updates} updates of {batch} samples; tile {self.facts.tile}"

    def __bool__(self):
        return self.proven
