#!/usr/bin/env python3
"""batchwise.sklearn beside scikit-learn's own networks, all with their defaults, on ten tables.

    python3 bench/peers/tables.py [SEEDS [TABLE...]]

For each table and seed a quarter of the rows is held out, and the two are trained in turn; scores are means, times medians. The mean
difference of the two scores of a seed has its standard error beside it: below twice that it says nothing. scikit-learn's networks get standardised inputs (and targets, for numbers), as their documentation advises.
"""
import sys
import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from batchwise.sklearn import Classifier, Regressor

warnings.simplefilter("ignore")

CLASSES = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "moons": lambda: datasets.make_moons(2000, noise=0.2, random_state=0),
    "classification": lambda: datasets.make_classification(5000, 30, n_informative=10, n_classes=4, random_state=0),
}
NUMBERS = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman1": lambda: datasets.make_friedman1(2000, noise=0.5, random_state=0),
    "friedman2": lambda: datasets.make_friedman2(2000, noise=10, random_state=0),
    "regression": lambda: datasets.make_regression(3000, 20, noise=5, random_state=0),
}


def timed(estimator, parts):
    x_train, x_test, y_train, y_test = parts
    begin = time.perf_counter()
    estimator.fit(x_train, y_train)
    return time.perf_counter() - begin, estimator.score(x_test, y_test)


def compare(name, load, ours, theirs, seeds):
    x, y = load()
    rows = []
    for seed in range(100, 100 + seeds):  # the defaults were chosen on those from 0 on
        parts = train_test_split(x, y, random_state=seed)
        rows.append((*timed(ours(random_state=seed), parts), *timed(theirs(seed), parts)))
    seconds, _, their_seconds, _ = np.median(np.array(rows), axis=0)
    _, score, _, their_score = np.mean(np.array(rows), axis=0)
    apart = np.array(rows)[:, 1] - np.array(rows)[:, 3]
    error = np.std(apart, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
    times = f"{1e3 * seconds:.0f} | {1e3 * their_seconds:.0f} | {their_seconds / seconds:.1f}"
    print(f"| {name} | {score:.4f} | {their_score:.4f} | {np.mean(apart):+.4f} ± {error:.4f} | {times} |", flush=True)


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    wanted = sys.argv[2:] or [*CLASSES, *NUMBERS]
    print("| table | score | MLP's | difference | ms | MLP's | times |\n|---|---|---|---|---|---|---|")
    for name, load in CLASSES.items():
        if name not in wanted:
            continue
        compare(name, load, Classifier, lambda seed: make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)), seeds)
    for name, load in NUMBERS.items():
        if name not in wanted:
            continue
        compare(
            name,
            load,
            Regressor,
            lambda seed: TransformedTargetRegressor(
                make_pipeline(StandardScaler(), MLPRegressor(random_state=seed)), transformer=StandardScaler()
            ),
            seeds,
        )
