"""Stopping estimators of classifiers, where y has shares of classes."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    RiskPathDisplay,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from tests.cases import covering

pytestmark = pytest.mark.usefixtures("few_trees")

N = 80
# The log loss of probabilities of zero is that of this one.
SMALLEST = np.finfo(np.float64).eps
LOGISTIC = TrajectoryLogisticRegression(C=1.0, max_iter=15, random_state=0)
TREES = HistGradientBoostingClassifier(max_iter=9, min_samples_leaf=5, random_state=0)
MODELS = {
    "front door": None,
    "logistic": LOGISTIC,
    "trees": TREES,
    "forest": RandomForestClassifier(10, random_state=0),
    "steps": make_pipeline(StandardScaler(), TREES),
    "blend": [("logistic", LOGISTIC), ("trees", TREES)],
}
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(N)))
FOLDS = {
    "default": None,
    "number": 4,
    "list": SPLITS,
    "splitter": StratifiedKFold(3, shuffle=True, random_state=1),
}
WEIGHTS = np.tile([1.0, 2.0, 0.0, 1.5], N // 4)


def drawn(n_classes, rng):
    X = rng.standard_normal((N, 4))
    shares = np.exp(X @ rng.standard_normal((4, n_classes)))
    shares *= rng.uniform(0.5, 2, shares.shape)
    shares /= shares.sum(axis=1, keepdims=True)
    shares[:4] = np.eye(n_classes)[np.arange(4) % n_classes]
    return X, shares


def stopping(estimator, **settings):
    settings = {"random_state": 0, **settings}
    if estimator is None:
        return SelfStoppingClassifier(**settings)
    rule = "blend" if isinstance(estimator, list) else "min"
    return TrajectoryEarlyStoppingCV(estimator, rule=rule, **settings)


def cross_entropy(shares, probabilities, weights):
    losses = -(shares * np.log(np.maximum(probabilities, SMALLEST))).sum(axis=1)
    return np.average(losses, weights=weights)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The chosen stage:UserWarning")
@covering(model=MODELS, folds=FOLDS, n_classes=[2, 3], weighted=[False, True])
def test_the_score_is_the_cross_entropy_of_unseen_rows(
    model, folds, n_classes, weighted, rng
):
    X, shares = drawn(n_classes, rng)
    weights = WEIGHTS if weighted else np.ones(N)
    fitted = stopping(MODELS[model], cv=FOLDS[folds])
    fitted.fit(X, shares, sample_weight=WEIGHTS if weighted else None)
    held_out = fitted.held_out_prediction_
    assert held_out.shape == (N, n_classes)
    counted = weights > 0
    assert np.isfinite(held_out[counted]).all()
    np.testing.assert_allclose(held_out[counted].sum(axis=1), 1)
    expected = cross_entropy(shares[counted], held_out[counted], weights[counted])
    assert fitted.best_score_ == pytest.approx(expected)
    # The held-out loss of a constant is the first of the path, or worse.
    constant = np.average(shares, axis=0, weights=weights)
    assert fitted.best_score_ < 1.05 * -constant @ np.log(constant)
    rows, predicted = np.arange(N), fitted.predict(X)
    accuracy = np.average(shares[rows, predicted], weights=weights)
    assert fitted.score(X, shares, sample_weight=weights) == pytest.approx(accuracy)
    assert fitted.predict_proba(X).shape == (N, n_classes)
    assert fitted.leaderboard()["metric"].tolist()[0] == "log loss"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_paths_are_those_of_shares_in_the_model(n_classes, rng):
    """The model itself takes shares without copies of rows."""
    X, shares = drawn(n_classes, rng)
    model = clone(LOGISTIC).set_params(cv=SPLITS, loo=False, risk=False)
    model.fit(X, shares, sample_weight=WEIGHTS)
    stopped = stopping(LOGISTIC, cv=SPLITS).fit(X, shares, sample_weight=WEIGHTS)
    np.testing.assert_allclose(stopped.path_, model.cv_path_)
    assert stopped.best_iter_ == model.cv_path_.argmin()
    best = model.at_iteration(model.cv_path_.argmin())
    np.testing.assert_allclose(stopped.predict_proba(X), best.predict_proba(X))
    np.testing.assert_allclose(stopped.coef_, best.coef_)


@pytest.mark.parametrize("model", ["trees", "forest"])
def test_a_row_of_two_classes_is_two_rows_of_half_the_weight(model, rng):
    X, shares = drawn(3, rng)
    halves = np.eye(3)[shares.argmax(axis=1)]
    halves[5:20] = [0.5, 0.0, 0.5]
    fitted = stopping(MODELS[model], cv=SPLITS).fit(X, halves)
    rows, labels = np.nonzero(halves)
    repeated = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in SPLITS
    ]
    expected = stopping(MODELS[model], cv=repeated)
    expected.fit(X[rows], labels, sample_weight=halves[rows, labels])
    np.testing.assert_allclose(fitted.path_, expected.path_)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))


def test_class_weights_are_of_the_shares(rng):
    X, shares = drawn(3, rng)
    totals = shares.sum(axis=0)
    by_class = dict(enumerate(totals.sum() / (3 * totals)))
    settings = {"loo": False, "risk": False, "cv": SPLITS, "class_weight": by_class}
    model = clone(LOGISTIC).set_params(**settings).fit(X, shares)
    for class_weight in ("balanced", by_class):
        stopped = stopping(LOGISTIC, cv=SPLITS, class_weight=class_weight)
        stopped.fit(X, shares)
        np.testing.assert_allclose(stopped.path_, model.cv_path_)


def test_groups_stay_together(rng):
    X, shares = drawn(2, rng)
    groups = np.arange(N) // 8
    stopped = stopping(LOGISTIC, cv=5).fit(X, shares, groups=groups)
    # The held-out predictions of a group are of one fold: linear in the features.
    logit = np.log(stopped.held_out_prediction_ / (1 - stopped.held_out_prediction_))
    for group in range(N // 8):
        rows = groups == group
        design = np.column_stack([np.ones(8), X[rows]])
        residual = np.linalg.lstsq(design, logit[rows, 1], rcond=None)[1]
        assert residual.max(initial=0) < 1e-16


def test_names_of_columns(rng):
    X, shares = drawn(3, rng)
    table = pd.DataFrame(shares, columns=["low", "middle", "high"])
    model = stopping(TREES, cv=SPLITS).fit(X, table)
    plain = stopping(TREES, cv=SPLITS).fit(X, shares)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    names = np.array(["low", "middle", "high"])
    assert (model.predict(X) == names[plain.predict(X)]).mean() > 0.9
    one = stopping(LOGISTIC, cv=SPLITS).fit(X, pd.Series(shares[:, 1]))
    assert one.classes_.tolist() == [0, 1]


def test_tables(rng):
    X, shares = drawn(2, rng)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["e"] = np.where(X[:, 0] > 0, "u", "v")
    model = SelfStoppingClassifier(random_state=0, cv=2).fit(table, shares[:, 1])
    assert model.predict_proba(table).shape == (N, 2)
    with pytest.raises(ValueError, match="no prediction sets"):
        model.predict_set(table)


@pytest.mark.parametrize("name", ["logistic", "trees", "blend"])
def test_sets_need_labels(name, rng):
    X, shares = drawn(2, rng)
    model = stopping(MODELS[name], cv=SPLITS).fit(X, shares)
    kept = [model, pickle.loads(pickle.dumps(model)), model.drop_record()]
    kept += [*model.members_.values(), model.estimator_]
    for each in kept:
        with pytest.raises(ValueError, match=r"[Pp]rediction sets"):
            each.predict_set(X)
        assert each.predict_proba(X).shape == (N, 2)
    # A fit to labels has sets again.
    model.fit(X, shares.argmax(axis=1))
    assert model.predict_set(X).shape == (N, 2)


def test_plots(rng):
    X, shares = drawn(2, rng)
    model = stopping(LOGISTIC, cv=SPLITS).fit(X, shares)
    display = RiskPathDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() == "mean log loss"
    np.testing.assert_allclose(display.lines_["cv"].get_ydata(), model.path_)


@pytest.mark.parametrize("name", ["front door", "trees", "logistic"])
@pytest.mark.parametrize("folds", ["default", "list"])
def test_metadata_routing(name, folds, rng):
    X, shares = drawn(2, rng)
    with config_context(enable_metadata_routing=True):
        model = stopping(MODELS[name], cv=FOLDS[folds]).fit(X, shares)
    plain = stopping(MODELS[name], cv=FOLDS[folds]).fit(X, shares)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))


class WithoutWeights(MLPClassifier):
    """Such as networks are that take no weights of rows."""

    def fit(self, X, y):
        return super().fit(X, y)


REFUSED = {
    "leave-one-out": ({"criterion": "loo"}, LOGISTIC, "must be 'auto' or 'cv'"),
    "scorer": ({"criterion": "accuracy"}, LOGISTIC, "must be 'auto' or 'cv'"),
    "no weights": ({}, WithoutWeights(max_iter=2), "WithoutWeights. takes none"),
    "own folds": (
        {},
        clone(LOGISTIC).set_params(cv=SPLITS),
        "set cv of TrajectoryEarlyStoppingCV, not of its member",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, rng):
    X, shares = drawn(3, rng)
    settings, estimator, message = REFUSED[case]
    model = stopping(estimator, **settings)
    before = vars(model).keys()
    with pytest.raises(ValueError, match=message):
        model.fit(X, shares)
    assert vars(model).keys() == before


WRONG = {
    "sum": (lambda s: 1.1 * s, "add up to one, but row 0"),
    "class": (lambda s: np.column_stack([s, 0 * s]), "classes 3, 4, 5 are zero"),
    "rows": (lambda s: s[:-1], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_shares(case, rng):
    X, shares = drawn(3, rng)
    spoil, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        SelfStoppingClassifier().fit(X, spoil(shares))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_alone_name_the_way_out(n_classes, rng):
    X, shares = drawn(n_classes, rng)
    y = shares[:, 1] if n_classes == 2 else shares
    with pytest.raises(ValueError, match="TrajectoryEarlyStoppingCV fits it to shares"):
        Staged(TREES, cv=2).fit(X, y)


def test_regressors_have_targets(rng):
    X, shares = drawn(3, rng)
    model = TrajectoryEarlyStoppingCV(IterativeRidge()).fit(X, shares)
    assert model.task_ == "regression"
    assert model.predict(X).shape == (N, 3)
    assert SelfStoppingRegressor(cv=2).fit(X, shares[:, 1]).task_ == "regression"


def test_several_labels_are_no_shares(rng):
    X, shares = drawn(3, rng)
    one_hot = np.eye(3, dtype=int)[shares.argmax(axis=1)]
    model = stopping(ExtraTreesClassifier(10, random_state=0), cv=2).fit(X, one_hot)
    assert model.predict(X).shape == (N, 3)
