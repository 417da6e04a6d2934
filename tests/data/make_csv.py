#!/usr/bin/env python3
"""Makes the csv files that tests/unit/data reads, with the real pandas, and beside each an npz with what must be found in it."""
import gzip
import os

import numpy as np
import pandas as pd

here = os.path.dirname(os.path.abspath(__file__))


def place(name):
    return os.path.join(here, name)


random = np.random.default_rng(5)

# Numbers of all sizes, as pandas prints them: the shortest text that reads as the same double.
numbers = np.concatenate([
    random.standard_normal((40, 3)),
    random.standard_normal((10, 3)) * 10.0 ** random.integers(-30, 30, (10, 3)),
    random.integers(-1000, 1000, (10, 3)).astype(float),
    np.array([[0.0, -0.0, 1e-300], [3.4e38, 1e22, 1e23], [0.1, 123456789012345678, 5e-324]]),
])
frame = pd.DataFrame(numbers, columns=["a", "b", "c"])
frame["label"] = np.arange(len(frame)) % 4
frame.to_csv(place("numbers.csv"), index=False)
np.savez(place("numbers_csv.npz"), x=numbers.astype(np.float32), y=frame["label"].to_numpy())

# The same rows packed, in two members, as concatenated gzip files are.
text = open(place("numbers.csv"), "rb").read()
with open(place("numbers.csv.gz"), "wb") as file:
    file.write(gzip.compress(text[:500], mtime=0))
    file.write(gzip.compress(text[500:], mtime=0))

# Text columns, quotes, commas, newlines and missing values.
cities = ["Oslo", "Rome, Lazio", 'the "big" one', "two\nlines"]
table = pd.DataFrame({
    "size": [1.5, 2, None, 4, 5.25, 6, 7],
    "city": [cities[i % 4] for i in range(7)],
    "height": range(7),
    "kind": ["dog", "cat", "cat", "eel", "dog", "cat", "ant"],
})
table.to_csv(place("table.csv"), index=False)
filled = table.assign(size=table["size"].fillna(table["size"].mean()))
expected = pd.get_dummies(filled[["size", "city", "height"]], columns=["city"])
order = ["size"] + sorted(c for c in expected if c.startswith("city_")) + ["height"]
np.savez(place("table_csv.npz"), x=expected[order].to_numpy(np.float32),
         y=pd.Categorical(table["kind"]).codes.astype(np.int32))
