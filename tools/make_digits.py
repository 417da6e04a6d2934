#!/usr/bin/env python3
"""Makes data/digits.npz from digits.csv.gz as scikit-learn ships it: 64 values of 0 to 16 and the label in each row.

usage: make_digits.py digits.csv.gz digits.npz
"""
import sys

import numpy as np

rows = np.loadtxt(sys.argv[1], delimiter=",")
assert rows.shape == (1797, 65) and rows.min() == 0 and rows[:, :64].max() == 16 and rows[:, 64].max() == 9
np.savez_compressed(sys.argv[2], x=rows[:, :64].astype(np.uint8).reshape(-1, 8, 8, 1), y=rows[:, 64].astype(np.uint8))
