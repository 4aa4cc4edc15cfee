"""Networks trained beforehand as members: TabICL and TabPFN, by a stand-in."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from skacv import TableEncoder, TrajectoryEarlyStoppingCV

FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


class MissingWeights(Exception):
    """An error that a pickle cannot bring back: it is made of two arguments."""

    def __init__(self, path, advice):
        super().__init__(f"There are no weights at {path}: {advice}.")


class Pretrained(BaseEstimator):
    """What both libraries ask and do, without a network.

    ``fit`` takes neither weights of rows nor a ``verbose`` that is a number, looks for
    the weights of the network and keeps the rows; X is a raw table, with texts and
    missing values; what is predicted is in single precision; there is no ``n_iter_``.
    """

    def __init__(self, model_path=None, *, random_state=42, verbose=False):
        self.model_path = model_path
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y):
        if not isinstance(self.verbose, bool):
            raise TypeError("verbose must be a boolean.")
        X, y = validate_data(self, X, y, dtype=None, skip_check_array=True)
        if self.model_path is None:
            raise MissingWeights("the cache", "set allow_auto_download=True")
        self.levels_ = sorted(set(X["word"].dropna()))
        self.rows_, self.target_ = self._numbers(X), np.asarray(y)
        return self

    def _numbers(self, X):
        word = X["word"].map(self.levels_.index, na_action="ignore")
        numbers = X.assign(word=word).to_numpy(np.float32, na_value=np.nan)
        return np.nan_to_num(numbers)

    def _attention(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None, skip_check_array=True)
        squares = (self._numbers(X)[:, None] - self.rows_) ** 2
        shares = np.exp(-2 * squares.sum(axis=2))
        return shares / shares.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags


class PretrainedClassifier(ClassifierMixin, Pretrained):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return super().fit(X, y)

    def predict_proba(self, X):
        shares = self._attention(X) @ (self.target_[:, None] == self.classes_)
        return shares.astype(np.float32)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class PretrainedRegressor(RegressorMixin, Pretrained):
    def predict(self, X, output_type="mean"):
        return self._attention(X) @ self.target_.astype(np.float32)


@pytest.fixture
def table(rng):
    frame = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a", "b"])
    frame["word"] = rng.choice(["red", "green", "blue"], 80)
    y = np.sin(2 * frame["a"]) + (frame["word"] == "red") + rng.standard_normal(80) / 4
    frame.loc[::9, "b"] = np.nan
    frame.loc[::11, "word"] = None
    return frame, y.to_numpy()


def encoded(model):
    return make_pipeline(TableEncoder(), model)


def test_held_out_predictions_are_those_of_cross_val_predict(table):
    X, y = table
    labels = np.where(y > 0.5, "high", "low")
    network = PretrainedClassifier("weights")
    model = TrajectoryEarlyStoppingCV([("network", network)], cv=FOLDS).fit(X, labels)
    assert type(model.estimator_.estimator_) is PretrainedClassifier
    shares = cross_val_predict(network, X, labels, cv=FOLDS, method="predict_proba")
    np.testing.assert_array_equal(model.held_out_prediction_, shares)
    assert model.predict_proba(X).shape == (80, 2)
    # Trees, neighbours and a network of raw tables, in a blend.
    members = [
        ("network", network),
        ("neighbours", encoded(KNeighborsClassifier(9))),
        ("trees", encoded(HistGradientBoostingClassifier(max_iter=20))),
    ]
    blend = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="blend", random_state=0)
    blend.fit(X, labels)
    assert set(blend.leaderboard()["member"]) >= {"network", "neighbours", "trees"}
    small = pickle.loads(pickle.dumps(blend.drop_record()))
    np.testing.assert_array_equal(small.predict_proba(X), blend.predict_proba(X))


def test_numbers_are_predicted_alike(table):
    X, y = table
    network = PretrainedRegressor("weights")
    model = TrajectoryEarlyStoppingCV([("network", network)], cv=4).fit(X, y)
    assert model.leaderboard().loc[0, "n_iter"] == 1
    assert model.predict_interval(X).shape == (80, 2)
    np.testing.assert_array_equal(model.predict(X), network.fit(X, y).predict(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_without_weights_it_is_left_out_with_their_message(table, n_jobs):
    X, y = table
    labels = np.where(y > 0.5, "high", "low")
    neighbours = encoded(KNeighborsClassifier())
    members = [("network", PretrainedClassifier()), ("neighbours", neighbours)]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="blend", n_jobs=n_jobs)
    with pytest.warns(FitFailedWarning, match="'network': .*There are no weights at"):
        model.fit(X, labels)
    assert model.best_member_ == "neighbours"
    board = model.leaderboard().set_index("member")
    assert "set allow_auto_download=True" in board.loc["network", "left_out"]
    with pytest.raises(MissingWeights):
        TrajectoryEarlyStoppingCV(members[:1], cv=FOLDS).fit(X, labels)


def test_weights_of_rows_are_refused_by_its_fit_alone(table, rng):
    X, y = table
    labels = np.where(y > 0.5, "high", "low")
    trees = encoded(HistGradientBoostingClassifier(max_iter=5))
    members = [("network", PretrainedClassifier("weights")), ("trees", trees)]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS)
    with pytest.warns(FitFailedWarning, match="'network'.*'sample_weight'"):
        model.fit(X, labels, sample_weight=rng.uniform(1, 2, 80))
    assert model.best_member_ == "trees"
