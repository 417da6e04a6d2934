"""Estimators: scikit-learn's own checks, its tools around them, and what its checks do not ask."""

import pickle

import numpy as np
import pytest
from sklearn import datasets
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from batchwise.sklearn import Classifier, Regressor


@parametrize_with_checks([Classifier(), Regressor()])
def test_checks(estimator, check):
    check(estimator)


def test_tools():
    x, y = datasets.load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    search = GridSearchCV(make_pipeline(MinMaxScaler(), Classifier(random_state=0)), {"classifier__hidden_layer_sizes": [(8,), (32, 16)]}, cv=3)
    assert search.fit(x, names).best_score_ > 0.93
    assert set(search.predict(x)) == set(names)
    assert cross_val_score(Classifier(random_state=0), x, names, cv=3).mean() > 0.93


def test_frames():
    pandas = pytest.importorskip("pandas")
    x, y = datasets.load_iris(return_X_y=True, as_frame=True)
    model = Classifier(random_state=0, max_iter=50).fit(x, y)
    assert list(model.feature_names_in_) == list(x.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(x[x.columns[::-1]])
    assert model.score(pandas.DataFrame(x), y) > 0.9


def test_reproducible():
    x, y = datasets.load_iris(return_X_y=True)
    first, second, other = (Classifier(random_state=seed, max_iter=5).fit(x, y).predict_proba(x) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_early_stopping():
    """Held-out samples end the training, and the weights are those of the best epoch."""
    x, y = datasets.make_classification(400, 20, n_informative=3, flip_y=0.4, random_state=0)
    model = Classifier(random_state=0, early_stopping=True, n_iter_no_change=3, max_iter=500).fit(x, y)
    assert model.n_iter_ < 100
    assert len(model.validation_scores_) == model.n_iter_
    assert np.argmin(model.validation_scores_) == model.n_iter_ - 4
    with pytest.raises(ValueError, match="too few to hold some out"):
        Regressor(early_stopping=True).fit([[0.0]], [0.0])


def test_partial_fit():
    x, y = datasets.load_digits(return_X_y=True)
    model = Classifier(random_state=0)
    with pytest.raises(ValueError, match="needs classes"):
        model.partial_fit(x[:100], y[:100])
    for _ in range(3):
        for first in range(0, len(x), 500):
            model.partial_fit(x[first : first + 500], y[first : first + 500], classes=np.arange(10))
    assert model.n_iter_ == 12
    assert model.score(x, y) > 0.9
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(x[:2], [3, 11])


def test_warm_start():
    x, y = datasets.load_iris(return_X_y=True)
    model = Classifier(random_state=0, max_iter=5, warm_start=True)
    assert model.fit(x, y).n_iter_ == 5
    assert model.fit(x, y).n_iter_ == 10
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_pickle_goes_on():
    """A copy predicts the same, and trains on to the same weights."""
    x, y = datasets.load_diabetes(return_X_y=True)
    model = Regressor(random_state=0, max_iter=10, warm_start=True).fit(x, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(x), model.predict(x))
    assert np.array_equal(copy.fit(x, y).predict(x), model.fit(x, y).predict(x))


def test_several_targets():
    x, y = datasets.load_linnerud(return_X_y=True)
    assert Regressor(random_state=0).fit(x, y).predict(x).shape == y.shape


def test_layers():
    """Layers of one's own: the last one is added."""
    x, y = datasets.load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0)
    layers = "reshape(8,8,1) conv2d(16,3,relu) maxpool2d(2) flatten"
    model = Classifier(layers=layers, max_iter=10, random_state=0).fit(x_train, y_train)
    assert model.score(x_test, y_test) > 0.95


def test_mistakes():
    x, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="max_iter=0"):
        Classifier(max_iter=0).fit(x, y)
    with pytest.raises(ValueError, match="validation_fraction=2"):
        Classifier(early_stopping=True, validation_fraction=2).fit(x, y)
    with pytest.raises(ValueError, match="relv"):
        Classifier(activation="relv").fit(x, y)
