"""Shares of classes in the place of labels, by cross entropy.

The oracle is every row once for each class, with weights that are its shares.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import (
    KernelEigenProClassifier,
    TrajectoryClassifier,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)
from tests.cases import covering
from tests.refits import logistic

N = 40
FAST = {"risk": False, "loo": False, "tol": 0}
MODELS = {
    "gradient steps": TrajectoryLogisticRegression(max_iter=30, **FAST),
    "newton": TrajectoryLogisticRegression(solver="newton", max_iter=6, **FAST),
    "lasso": TrajectoryLogisticRegression(l1_ratio=1.0, max_iter=30, **FAST),
    "path": TrajectoryLogisticRegression("path", max_iter=4, **FAST),
    "no intercept": TrajectoryLogisticRegression(
        fit_intercept=False, standardize=True, max_iter=20, **FAST
    ),
    "by name": TrajectoryClassifier(loss="log", max_iter=20, **FAST),
}
N_CLASSES = 2, 3


def drawn(n_classes, rng, n=N, n_columns=4):
    X = rng.standard_normal((n, n_columns))
    logits = X[:, :4] @ rng.standard_normal((4, n_classes))
    logits += rng.standard_normal(logits.shape)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    # Some rows are of one class.
    shares[:4] = np.eye(n_classes)[np.arange(4) % n_classes]
    return X, shares


def repeated(X, shares, weights=None, splits=()):
    """Every row once for each class of which it has a share; folds of these."""
    rows, label = np.nonzero(shares)
    weights = np.ones(len(X)) if weights is None else weights
    folds = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in splits
    ]
    return X[rows], label, weights[rows] * shares[rows, label], folds


@covering(model=MODELS, n_classes=N_CLASSES, class_weight=[None, "balanced", "dict"])
def test_repeated_rows(model, n_classes, class_weight, rng):
    X, shares = drawn(n_classes, rng)
    weights = rng.uniform(0.5, 2, N)
    weights[7] = 0
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = clone(MODELS[model])
    if class_weight == "dict":
        class_weight = dict(enumerate([1.0, 2.0, 0.5][:n_classes]))
    if class_weight == "balanced":  # as newer versions of scikit-learn have it
        totals = weights @ shares
        by_class = dict(enumerate(totals.sum() / (n_classes * totals)))
    else:
        by_class = class_weight
    fitted = clone(model).set_params(cv=splits, class_weight=class_weight)
    fitted.fit(X, shares, sample_weight=weights)
    X_long, label, of_rows, folds = repeated(X, shares, weights, splits)
    expected = model.set_params(cv=folds, class_weight=by_class)
    expected.fit(X_long, label, sample_weight=of_rows)
    names = "coef_path_", "intercept_path_", "train_path_", "cv_path_", "cv_fold_path_"
    for name in names:
        np.testing.assert_allclose(
            getattr(fitted, name), getattr(expected, name), rtol=1e-8, atol=1e-10
        )
    assert fitted.classes_.tolist() == list(range(n_classes))
    np.testing.assert_allclose(
        fitted.staged_loss(X, shares, sample_weight=weights),
        expected.staged_loss(X_long, label, sample_weight=of_rows),
    )
    assert fitted.score(X, shares, weights) == pytest.approx(
        expected.score(X_long, label, of_rows)
    )


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_leave_one_out_by_refits(n_classes, rng):
    X, shares = drawn(n_classes, rng, n=14, n_columns=16)
    model = TrajectoryLogisticRegression(1.0, max_iter=2000, tol=1e-9, loo=True)
    model.set_params(risk=False).fit(X, shares)
    losses = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        X_long, label, weights, _ = repeated(X[others], shares[others])
        refit = logistic(1.0).fit(X_long, label, weights)
        losses.append(-shares[i] @ refit.predict_log_proba(X[[i]])[0])
    assert model.loo_path_[-1] == pytest.approx(np.mean(losses), rel=1e-3)
    assert model.loo_path_[-1] > 1.05 * model.train_path_[-1]


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_the_memory_matrix_is_near_leave_one_out(n_classes, rng):
    X, shares = drawn(n_classes, rng, n=150, n_columns=30)
    model = TrajectoryLogisticRegression(10.0, max_iter=30, risk=1000, loo=True)
    model.set_params(random_state=0).fit(X, shares)
    np.testing.assert_allclose(model.risk_path_, model.loo_path_, rtol=0.02)
    assert model.loo_path_[-1] > 1.1 * model.train_path_[-1]


def test_the_kernel_classifier(rng):
    X, shares = drawn(3, rng)
    settings = {"loss": "log", "gamma": 0.3, "n_components": 0, "step_size": 1.0}
    # The last iterate of all rows: others are chosen by rows that are left out.
    settings |= {"loo": False, "patience": None, "tol": 0, "max_iter": 10}
    model = KernelEigenProClassifier(random_state=0, **settings)
    X_long, label, weights, _ = repeated(X, shares)
    expected = clone(model).fit(X_long, label, sample_weight=weights)
    np.testing.assert_allclose(
        model.fit(X, shares).decision_function(X), expected.decision_function(X)
    )


FORMS = {
    "numbers": lambda shares: shares[:, 1],
    "column": lambda shares: shares[:, 1:],
    "Series": lambda shares: pd.Series(shares[:, 1]),
    "frame": lambda shares: pd.DataFrame(shares[:, ::-1], columns=["b", "a"]),
    "Float64": lambda shares: pd.DataFrame(shares, columns=["a", "b"]).astype(
        "Float64"
    ),
    "list": lambda shares: shares.tolist(),
    "float32": lambda shares: shares.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_two_classes(form, rng):
    X, shares = drawn(2, rng)
    y = FORMS[form](shares)
    expected = TrajectoryLogisticRegression(max_iter=20, cv=3).fit(X, shares)
    model = TrajectoryLogisticRegression(max_iter=20, cv=3).fit(X, y)
    close = {"rtol": 1e-5, "atol": 1e-7}
    probabilities = expected.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), probabilities, **close)
    np.testing.assert_allclose(model.cv_path_, expected.cv_path_, **close)
    assert model.score(X, y) == pytest.approx(expected.score(X, shares), rel=1e-5)
    names = ["a", "b"] if form in ("frame", "Float64") else [0, 1]
    assert model.classes_.tolist() == names
    assert model.decision_function(X).shape == (N,)


def test_columns_are_sorted_by_their_names(rng):
    X, shares = drawn(3, rng)
    table = pd.DataFrame(shares, columns=["low", "middle", "high"])
    model = TrajectoryLogisticRegression(max_iter=200).fit(X, table)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    plain = TrajectoryLogisticRegression(max_iter=200).fit(X, shares)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X)[:, [2, 0, 1]]
    )
    names = np.array(["low", "middle", "high"])
    assert model.predict(X).tolist() == names[plain.predict(X)].tolist()
    assert model.score(X, table) == pytest.approx(plain.score(X, shares))


def test_one_hot_rows_are_labels(rng):
    X, shares = drawn(3, rng)
    label = shares.argmax(axis=1)
    expected = TrajectoryLogisticRegression(max_iter=20, cv=3).fit(X, label)
    for one_hot in (np.eye(3)[label], np.eye(3, dtype=int)[label]):
        model = TrajectoryLogisticRegression(max_iter=20, cv=3).fit(X, one_hot)
        for name in ("coef_path_", "loo_path_", "cv_path_"):
            np.testing.assert_allclose(getattr(model, name), getattr(expected, name))
        assert model.score(X, one_hot) == pytest.approx(expected.score(X, label))


def test_numbers_of_folds_are_stratified_by_the_likeliest_class(rng):
    X, shares = drawn(3, rng)
    model = TrajectoryLogisticRegression(max_iter=2, cv=4).fit(X, shares)
    labels = TrajectoryLogisticRegression(max_iter=2, cv=4)
    labels.fit(X, shares.argmax(axis=1))
    for rows, expected in zip(model.cv_indices_, labels.cv_indices_):
        assert rows.tolist() == expected.tolist()
    groups = np.arange(N) // 4
    model.fit(X, shares, groups=groups)
    for rows in model.cv_indices_:
        assert not np.isin(groups[rows], np.delete(groups, rows)).any()


def spoiled(shares, row, values):
    shares = shares.copy()
    shares[row] = values
    return shares


ADD_UP = r"must not be negative, and add up to one, but row {} has \["
REFUSED = {
    "sum": (lambda s: spoiled(s, 5, [0.3, 0.3, 0.3]), ADD_UP.format(5)),
    "negative": (lambda s: spoiled(s, 6, [-0.5, 0.5, 1.0]), ADD_UP.format(6)),
    "infinite": (lambda s: spoiled(s, 6, [np.inf, 0.5, 1.0]), ADD_UP.format(6)),
    "no share": (lambda s: np.column_stack([s, 0 * s[:, 0]]), "classes 3 are zero"),
    "names": (lambda s: pd.DataFrame(s, columns=["a", "b", "a"]), "of one name"),
    "NaN": (lambda s: spoiled(s, 6, np.nan), "NaN"),
    "labels": (lambda s: (s > 0.3).astype(int), "y should be a 1d array"),
    "beyond one": (lambda s: 3 * s[:, 0], "Unknown label type: continuous"),
    "length": (lambda s: s[:-1], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, rng):
    X, shares = drawn(3, rng)
    spoil, message = REFUSED[case]
    model = TrajectoryLogisticRegression()
    before = vars(model).copy()
    with pytest.raises(ValueError, match=message):
        model.fit(X, spoil(shares))
    assert vars(model) == before


OF_LABELS = KernelEigenProClassifier(), TrajectoryLinearSVC()


@pytest.mark.parametrize("model", OF_LABELS, ids=lambda model: type(model).__name__)
def test_other_losses_refuse(model, rng):
    X, shares = drawn(2, rng)
    with pytest.raises(ValueError, match="shares are for the log loss"):
        clone(model).fit(X, shares[:, 1])


def test_what_needs_labels_is_refused(rng):
    X, shares = drawn(2, rng)
    model = TrajectoryLogisticRegression(max_iter=5, cv=3, keep_data=True)
    model.fit(X, shares)
    with pytest.raises(ValueError, match="the class of every held-out row"):
        model.predict_set(X)
    with pytest.raises(ValueError, match="Debiased coefficients are of labels"):
        model.coef_interval()
    with pytest.raises(ValueError, match="y has shares of 3 classes, but fit had 2"):
        model.score(X, drawn(3, rng)[1])
    with pytest.raises(ValueError, match="y has shares of 3 classes, but fit had 2"):
        model.staged_loss(X, drawn(3, rng)[1])
    # A fit to labels has them again.
    model.fit(X, shares.argmax(axis=1))
    assert model.predict_set(X).shape == (N, 2)


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_pickles(n_classes, rng):
    X, shares = drawn(n_classes, rng)
    model = TrajectoryLogisticRegression(max_iter=5, cv=3).fit(X, shares)
    for kept in (model, model.drop_record(), model.at_iteration(3)):
        loaded = pickle.loads(pickle.dumps(kept))
        np.testing.assert_array_equal(loaded.predict_proba(X), kept.predict_proba(X))
        with pytest.raises(ValueError, match="the class of every held-out row"):
            loaded.predict_set(X)


def test_no_penalty_and_no_separation(rng, recwarn):
    """Rows right of nothing by shares: the minimum is finite."""
    X, shares = drawn(2, rng)
    model = TrajectoryLogisticRegression(np.inf, max_iter=30).fit(X, shares[:, 1])
    assert not [each for each in recwarn if "separated" in str(each.message)]
    assert np.isfinite(model.coef_).all()


def test_warm_start_goes_on(rng):
    X, shares = drawn(3, rng)
    model = TrajectoryLogisticRegression(max_iter=5, tol=0, warm_start=True)
    model.fit(X, shares).set_params(max_iter=9).fit(X, shares)
    whole = TrajectoryLogisticRegression(max_iter=9, tol=0).fit(X, shares)
    np.testing.assert_allclose(model.coef_path_, whole.coef_path_)
