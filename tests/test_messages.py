"""Errors say what to write, in public names alone."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingRegressor
from sklearn.ensemble import HistGradientBoostingClassifier as Boosted
from sklearn.multioutput import MultiOutputClassifier

from skacv import (
    KernelEigenProClassifier,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.runs import assert_same_summary

pytestmark = pytest.mark.filterwarnings("ignore")
LASSO = TrajectoryLasso("path", max_iter=3)
LOGISTIC = TrajectoryLogisticRegression(max_iter=3)
# A name of Python that begins with an underscore, but not with two.
PRIVATE = re.compile(r"(?<![\w'\"])_(?!_)[a-z]\w+")


def drawn(rng):
    X = rng.standard_normal((90, 3))
    return X, X[:, 0] + rng.standard_normal(90)


def said(function, *args, **params):
    """The message of an error, which names nothing private."""
    with pytest.raises((ValueError, TypeError)) as found:
        function(*args, **params)
    message = str(found.value)
    assert not PRIVATE.search(message)
    return message


@pytest.mark.parametrize(
    "model",
    [
        TrajectoryEarlyStoppingCV(LOGISTIC),
        TrajectoryEarlyStoppingCV([("a", LOGISTIC), ("b", Boosted(max_iter=2))]),
        TrajectoryEarlyStoppingCV(Boosted(max_iter=2)),
        Staged(Boosted(max_iter=2)),
        LOGISTIC,
        KernelEigenProClassifier(max_iter=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_two_columns_of_labels(model, rng):
    X, y = drawn(rng)
    Y = np.stack([y > 0, X[:, 1] > 0], axis=1).astype(int)
    assert "MultiOutputClassifier" in said(model.fit, X, Y)


@pytest.mark.parametrize(
    "model",
    [
        SelfStoppingClassifier(),
        TrajectoryEarlyStoppingCV(task="classification"),
        TrajectoryEarlyStoppingCV(ExtraTreesClassifier(2)),
        Staged(ExtraTreesClassifier(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_two_columns_of_classes_that_are_no_labels(model, rng):
    X, y = drawn(rng)
    Y = np.stack([np.digitize(y, [-0.5, 0.5]), X[:, 1] > 0], axis=1)
    for classes in (Y, Y.astype(str)):
        assert "MultiOutputClassifier" in said(model.fit, X, classes)


def test_what_is_said_of_two_columns_works(rng, few_trees):
    X, y = drawn(rng)
    Y = np.stack([np.digitize(y, [-0.5, 0.5]), X[:, 1] > 0], axis=1)
    fitted = MultiOutputClassifier(SelfStoppingClassifier()).fit(X, Y)
    assert fitted.score(X, Y) > 0.3


def test_two_columns_of_numbers_for_one(rng):
    X, y = drawn(rng)
    model = TrajectoryHuberRegressor(max_iter=3)
    assert "MultiOutputRegressor" in said(model.fit, X, np.stack([y, y], axis=1))


@pytest.mark.parametrize(
    "outer",
    [TrajectoryEarlyStoppingCV, SelfStoppingRegressor],
    ids=lambda c: c.__name__,
)
@pytest.mark.parametrize(
    "inner", [SelfStoppingRegressor(), TrajectoryEarlyStoppingCV(LASSO)], ids=str
)
@pytest.mark.parametrize("listed", [False, True])
def test_estimators_that_stop_themselves_inside(outer, inner, listed, rng):
    estimator = [("inner", inner), ("lasso", LASSO)] if listed else inner
    message = said(outer(estimator).fit, *drawn(rng))
    assert f"is a {type(inner).__name__}, which stops itself: fit it as it" in message
    assert message.startswith("The member 'inner'" if listed else "The 'estimator'")


@pytest.mark.parametrize(
    ("criterion", "instead"),
    [("roc_auc", "'roc_auc_ovr'"), ("f1", "'f1_macro' or 'f1_weighted'")],
)
@pytest.mark.parametrize("estimator", [LOGISTIC, Boosted(max_iter=2)], ids=str)
def test_scorers_of_two_classes(criterion, instead, estimator, rng):
    X, y = drawn(rng)
    labels = np.digitize(y, [-0.5, 0.5])
    model = SelfStoppingClassifier(estimator, criterion=criterion)
    message = said(model.fit, X, labels)
    assert "With more than two classes use a scorer of several, such as " in message
    assert message.endswith(f"criterion={instead}.")
    model.set_params(criterion=instead.split("'")[1]).fit(X, labels)
    assert model.fit(X, labels > 0).predict(X).shape == (90,)


@pytest.mark.parametrize(
    "model", [LASSO, TrajectoryEarlyStoppingCV(LASSO), SelfStoppingRegressor()], ids=str
)
def test_unknown_arguments_of_fit(model, rng):
    message = said(model.fit, *drawn(rng), colour="red")
    assert "fit() got unexpected arguments: colour" in message
    assert "it takes sample_weight and groups" in message


@pytest.mark.parametrize(
    "kind", [SelfStoppingRegressor, SelfStoppingClassifier, TrajectoryEarlyStoppingCV]
)
def test_unknown_parameters(kind):
    message = said(kind, n_estimators=3)
    assert message.startswith(
        f"{kind.__name__} has no parameter 'n_estimators': it has"
    )
    assert "param_grid" in message


def test_no_member_takes_the_data(rng):
    X, y = drawn(rng)
    X[0, 0] = np.nan
    message = said(SelfStoppingRegressor(criterion="risk", encoder=None).fit, X, y)
    assert "No model of SelfStoppingRegressor takes these data" in message
    assert "lasso: X has missing values" in message


def test_columns_that_are_sparse(rng):
    _, y = drawn(rng)
    letters = pd.Series(rng.choice(list("abc"), 90))
    X = pd.get_dummies(letters, sparse=True)
    model = Staged(HistGradientBoostingRegressor(max_iter=2))
    message = said(model.fit, X, y)
    # Before scikit-learn 1.7 tags do not tell, and the trees say what they need.
    assert "pass X.sparse.to_dense()" in message or "dense data is req" in message
    assert model.fit(X.sparse.to_dense(), y).n_iter_ == 2


# ---------------------------------------------------------------- rows of summaries


def test_rows_are_summarised_once(rng):
    X, y = drawn(rng)
    summary = RowSummary(n_sampled=5)
    summary.partial_fit(X[:30], y[:30], first_row=30)
    before = pickle.dumps(summary)
    for first in (30, 1, 59):
        message = said(summary.partial_fit, X[:30], y[:30], first_row=first)
        assert "are there already" in message
        assert "first_row" in message
    other = RowSummary(n_sampled=5).partial_fit(X[:10], y[:10], first_row=25)
    assert "Rows 30 to 34 are there already" in said(summary.merge, other)
    assert pickle.dumps(summary) == before
    assert summary.n_samples_seen_ == 30


def test_rows_follow_the_last(rng):
    """Blocks in any order, or the same in the order of their rows, are one summary."""
    X, y = drawn(rng)
    mixed = RowSummary(n_sampled=5).partial_fit(X[30:60], y[30:60], first_row=30)
    mixed.partial_fit(X[60:], y[60:]).partial_fit(X[:30], y[:30], first_row=0)
    plain = RowSummary(n_sampled=5).fit(X, y)
    np.testing.assert_array_equal(
        np.sort(mixed.sampled_indices_), np.sort(plain.sampled_indices_)
    )
    assert_same_summary(mixed, plain)
    assert "are there already" in said(mixed.partial_fit, X, y, first_row=89)


@pytest.mark.parametrize("first_row", [-1, 1.5, "0"])
def test_numbers_of_rows(first_row, rng):
    X, y = drawn(rng)
    message = said(RowSummary().partial_fit, X, y, first_row=first_row)
    assert "first_row must be the number of a row" in message
