"""Estimators for scikit-learn: networks that need no thought on a table, and take any layers if one has been given some.

    from batchwise.sklearn import Classifier, Regressor
    Classifier().fit(x, labels).predict(x_new)
    Regressor(hidden_layer_sizes=(64, 64), early_stopping=True)

Inputs, and targets that are numbers, are standardised. Parameters have the names of scikit-learn's own MLPClassifier and MLPRegressor
where these have them.
"""

import os

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .model import Model

try:  # scikit-learn 1.6 and later
    from sklearn.utils.validation import validate_data as _validate
except ImportError:

    def _validate(estimator, *arrays, **options):
        return estimator._validate_data(*arrays, **options)


__all__ = ["Classifier", "Regressor"]

_FULL_BATCH = 64  # up to so many samples are one batch
_BATCH = 32


def _weights(given, x):
    """Sample weights as an array, or None."""
    if given is None:
        return None
    weights = _check_sample_weight(given, x)
    if (weights < 0).any():
        raise ValueError("sample_weight: negative values")
    return weights


class _Statistics:
    """Mean and standard deviation of each column, with weights; columns that do not vary are only moved."""

    def __init__(self, values, weights):
        self.mean = np.average(values, axis=0, weights=weights)
        spread = np.sqrt(np.average((values - self.mean) ** 2, axis=0, weights=weights))
        tiny = 10 * np.finfo(np.float64).eps * np.maximum(np.abs(self.mean), 1)
        self.scale = np.where(spread > tiny, spread, 1.0)

    def apply(self, values):
        return ((values - self.mean) / self.scale).astype(np.float32)

    def restore(self, values):
        return values * self.scale + self.mean


class _Network(BaseEstimator):
    """What the two estimators share: the network, its training, and how samples get in and out."""

    def __init__(
        self,
        hidden_layer_sizes=(100,),
        activation="relu",
        *,
        layers=None,
        solver="adam",
        alpha="auto",
        batch_size="auto",
        learning_rate_init=0.003,
        max_iter=200,
        tol=1e-4,
        n_iter_no_change=10,
        early_stopping=False,
        validation_fraction=0.1,
        standardise=True,
        warm_start=False,
        memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.layers = layers
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.standardise = standardise
        self.warm_start = warm_start
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- The network

    def _expression(self, outputs, activation):
        """Hidden layers of the given sizes, each weight with scikit-learn's penalty alpha / 2 * w^2 / samples, or the user's layers."""
        sizes = np.atleast_1d(self.hidden_layer_sizes) if self.hidden_layer_sizes is not None else ()
        alpha = self._alpha if self.alpha == "auto" else self.alpha
        penalty = f",kernel_regularizer=l2({alpha / 2 / self.n_samples_:.9g})" if alpha else ""
        hidden = self.layers
        if hidden is None:
            hidden = " ".join(f"dense({int(size)},{self.activation}{penalty})" for size in sizes)
        return f"{hidden} dense({outputs},{activation}{penalty})"

    def _workers(self):
        """scikit-learn's convention: None is one, -1 is all."""
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, len(os.sched_getaffinity(0)) + 1 + self.n_jobs)

    def _new_model(self, outputs, activation, loss):
        model = Model(self._expression(outputs, activation), workers=self._workers(), memory=self.memory or 0)
        model.compile(f"{self.solver}(lr={self.learning_rate_init:.9g})", loss)
        return model

    def _batch(self, count):
        if self.batch_size == "auto":
            return count if count <= _FULL_BATCH else _BATCH
        return min(int(self.batch_size), count)

    # ---- Training

    def _prepare(self, x, y, weights):
        """Drops samples without weight, and scales the others to a mean of 1, so that a weight of two counts as two samples do. There
        are as many as the weights say, but not fewer than rows, since some give weights that sum to 1."""
        self.n_samples_ = len(x)
        if weights is not None:
            used = weights > 0
            if not used.any():
                raise ValueError("sample_weight: no sample has a weight above 0")
            x, y, weights = x[used], y[used], weights[used]
            self.n_samples_ = max(len(x), float(weights.sum()))
            weights = weights / weights.mean()
        return x, y, weights

    def _merge(self, x, y, weights):
        """Makes one sample of those that are equal, with the sum of their weights, if what is left is one batch: its loss is the same
        sum, and then a weight of two and a sample that is there twice give the same network to the last bit."""
        if self.batch_size != "auto" or len(x) > 16 * _FULL_BATCH:
            return x, y, weights
        rows, inverse = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
        if len(rows) > _FULL_BATCH:
            return x, y, weights
        sums = np.bincount(inverse.reshape(-1), weights)
        return rows[:, : x.shape[1]], rows[:, x.shape[1] :].reshape((-1, *y.shape[1:])), sums / sums.mean()

    def _check_parameters(self):
        if self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter}: expected at least 1 epoch")
        if self.early_stopping and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction}: expected a share between 0 and 1")

    def _begin(self, x, weights, outputs, activation, loss):
        """A fresh network and fresh statistics."""
        self.scaler_ = _Statistics(x, weights) if self.standardise else None
        self.model_ = self._new_model(outputs, activation, loss)
        self.n_iter_, self.loss_curve_, self.validation_scores_ = 0, [], []
        self.seed_ = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _train(self, x, y, weights, epochs):
        """Trains for at most so many epochs. early_stopping holds samples out, and takes the weights of the best epoch."""
        x = self._scaled(x)
        stop = {"monitor": "loss", "patience": self.n_iter_no_change, "min_delta": self.tol}
        validation = None
        if self.early_stopping and epochs > 1:
            stop = {**stop, "monitor": "val_loss", "restore_best_weights": True}
            x, y, weights, validation = self._hold_out(x, y, weights)
        history = self.model_.fit(
            x,
            y,
            batch_size=self._batch(len(x)),
            epochs=epochs,
            sample_weight=None if weights is None else weights.astype(np.float32),
            validation_data=validation,
            early_stopping=stop,
            verbose=self.verbose,
            seed=self.seed_ + self.n_iter_,
        )
        losses = history.history["loss"]
        self.n_iter_ += len(losses)
        self.loss_curve_ += losses
        self.loss_ = losses[-1]
        self.validation_scores_ += history.history.get("val_loss", [])

    def _hold_out(self, x, y, weights):
        order = np.random.RandomState(self.seed_).permutation(len(x))
        count = max(1, int(self.validation_fraction * len(x)))
        if count >= len(x):
            raise ValueError(f"early_stopping: {len(x)} samples are too few to hold some out")
        held, kept = order[:count], order[count:]
        validation = (x[held], y[held]) if weights is None else (x[held], y[held], weights[held].astype(np.float32))
        return x[kept], y[kept], None if weights is None else weights[kept], validation

    # ---- Prediction

    def _scaled(self, x):
        return self.scaler_.apply(x) if self.scaler_ is not None else x.astype(np.float32)

    def _outputs(self, x):
        x = _validate(self, x, reset=False, dtype=np.float64)
        return self.model_.predict(self._scaled(x)).astype(np.float64)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_iter_")


class Classifier(ClassifierMixin, _Network):
    """Classes of any kind, by a softmax over them.

    Parameters: hidden_layer_sizes and activation, or `layers`, a model expression without its last layer; solver, any optimizer of the
    library; alpha, an L2 penalty, divided by the number of samples ("auto": 2.5, or 8 for numbers); batch_size ("auto": 32, or all
    of at most 64 samples); learning_rate_init; max_iter, the most epochs; training ends when the loss has not fallen by tol for n_iter_no_change epochs, or, with early_stopping, that of a
    validation_fraction; standardise; warm_start; memory, a budget in bytes; n_jobs; random_state; verbose.
    """

    _alpha = 2.5

    def fit(self, X, y, sample_weight=None):
        self._check_parameters()
        X, y = _validate(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = _weights(sample_weight, X)
        X, y, weights = self._prepare(X, y, weights)
        self._set_classes(unique_labels(y))
        self._fit(X, y, weights, self.max_iter, fresh=not self.warm_start)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Trains one epoch. The first call needs all classes that will ever come."""
        first = not hasattr(self, "classes_")
        X, y = _validate(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        weights = _weights(sample_weight, X)
        if first:
            if classes is None:
                raise ValueError("partial_fit: the first call needs classes, all that will ever come")
            self._set_classes(np.unique(classes))
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"partial_fit: y has {unknown[0]!r}, which is not among the classes")
        X, y, weights = self._prepare(X, y, weights)
        self._fit(X, y, weights, 1, fresh=first)
        return self

    def _set_classes(self, classes):
        if self.warm_start and hasattr(self, "classes_") and not np.array_equal(classes, self.classes_):
            raise ValueError(f"warm_start: the classes are {classes}, and were {self.classes_}")
        self.classes_ = classes

    def _fit(self, x, y, weights, epochs, fresh):
        if len(self.classes_) == 1:  # nothing to learn
            self.n_iter_, self.loss_curve_, self.loss_, self.validation_scores_ = 0, [], 0.0, []
            return
        x, y, weights = self._merge(x, np.searchsorted(self.classes_, y), weights)
        if fresh or getattr(self, "model_", None) is None:
            self._begin(x, weights, len(self.classes_), "softmax", "sparse_categorical_crossentropy")
        self._train(x, y.astype(np.int32), weights, epochs)

    def predict_proba(self, X):
        """The probability of each class, in the order of classes_."""
        check_is_fitted(self)
        if len(self.classes_) == 1:
            return np.ones((len(_validate(self, X, reset=False, dtype=np.float64)), 1))
        made = self._outputs(X)
        return made / made.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))

    def predict(self, X):
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


class Regressor(RegressorMixin, _Network):
    """Numbers, one or several for each sample, by a linear last layer and the mean squared error. Parameters as for Classifier."""

    _alpha = 8.0

    def fit(self, X, y, sample_weight=None):
        self._check_parameters()
        X, y = _validate(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weights = _weights(sample_weight, X)
        X, y, weights = self._prepare(X, y, weights)
        self._fit(X, y, weights, self.max_iter, fresh=not self.warm_start)
        return self

    def partial_fit(self, X, y, sample_weight=None):
        """Trains one epoch. The statistics of the first call are kept."""
        first = not hasattr(self, "n_iter_")
        X, y = _validate(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=first)
        weights = _weights(sample_weight, X)
        X, y, weights = self._prepare(X, y, weights)
        self._fit(X, y, weights, 1, fresh=first)
        return self

    def _fit(self, x, y, weights, epochs, fresh):
        x, table, weights = self._merge(x, y.reshape(len(y), -1), weights)
        if fresh or getattr(self, "model_", None) is None:
            self.single_ = y.ndim == 1
            self.target_scaler_ = _Statistics(table, weights)
            self._begin(x, weights, table.shape[1], "linear", "mse")
        self._train(x, self.target_scaler_.apply(table), weights, epochs)

    def predict(self, X):
        check_is_fitted(self)
        made = self.target_scaler_.restore(self._outputs(X))
        return made[:, 0] if self.single_ else made

    def _more_tags(self):
        return {"multioutput": True}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
