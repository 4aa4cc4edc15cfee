"""Runs of rows on workers against the same runs in memory."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask.array as da
import dask.dataframe as dd

from skacv import (
    IterativeRidge,
    TrajectoryClassifier,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from skacv.optim.losses import PseudoHuber

from .collections import assert_same_run, blocks, switched_off
from .conftest import kill_worker

N, P = 400, 20
pytestmark = pytest.mark.usefixtures("on_workers")

REGRESSORS = [
    TrajectoryLasso(0.1, max_iter=30, cv=4),
    TrajectoryLasso(0.1, max_iter=30, fit_intercept=False),
    TrajectoryLasso("path", max_iter=4, cv=3),
    TrajectoryElasticNet(0.1, max_iter=20),
    TrajectoryLasso(0.1, max_iter=30, standardize=True),
    IterativeRidge(5.0, max_iter=25, cv=4),
    IterativeRidge([20.0, 1.0], solver="heavy_ball", max_iter=12, cv=3),
    TrajectoryGroupLasso(groups=np.repeat(np.arange(5), 4), alpha=0.1, max_iter=20),
    TrajectoryHuberRegressor(max_iter=20, cv=3),
    TrajectoryRegressor(loss=PseudoHuber(), max_iter=20, cv=3),
    TrajectoryRegressor(0.01, loss="expectile", max_iter=20, cv=3),
    TrajectoryQuantileRegressor(quantile=0.8, max_iter=20, cv=3),
]
CLASSIFIERS = [
    TrajectoryLogisticRegression(max_iter=25, cv=4),
    TrajectoryLogisticRegression(0.05, l1_ratio=0.7, max_iter=25, cv=4),
    TrajectoryLogisticRegression("path", l1_ratio=1.0, max_iter=4),
    TrajectoryLogisticRegression(max_iter=25, standardize=True),
    TrajectoryLogisticRegression(
        max_iter=25, standardize=True, fit_intercept=False, class_weight="balanced"
    ),
    TrajectoryLinearSVC(max_iter=25, cv=4, class_weight="balanced"),
    TrajectoryClassifier(max_iter=20, cv=3, class_weight={0: 1.0, 1: 3.0, 2: 2.0}),
]


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, P)) * np.linspace(0.5, 2, P) + 1


@pytest.fixture
def y(X, rng):
    return X[:, :4].sum(axis=1) + 5 + 2 * rng.standard_normal(N)


def fits(estimator, X, y, weights=None, size=70):
    """The fit in memory and the one of blocks."""
    estimator = switched_off(estimator)
    own = None if weights is None else blocks(weights, size)
    return (
        clone(estimator).fit(blocks(X, size), blocks(y, size), sample_weight=own),
        clone(estimator).fit(X, y, sample_weight=weights),
    )


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_regressors(estimator, weighted, X, y, rng):
    weights = rng.integers(0, 4, N) / 2 if weighted else None
    assert_same_run(*fits(estimator, X, y, weights), rtol=1e-9)


STANDARDISED = [
    TrajectoryLasso(0.1, max_iter=30),
    TrajectoryLasso(0.1, max_iter=30, fit_intercept=False),
    TrajectoryLasso("path", max_iter=4),
    IterativeRidge(5.0, max_iter=25, fit_intercept=False),
    TrajectoryHuberRegressor(max_iter=20),
    TrajectoryPoissonRegressor(max_iter=20),
    TrajectoryLogisticRegression(max_iter=25),
    TrajectoryLogisticRegression(max_iter=25, fit_intercept=False),
    TrajectoryLinearSVC(max_iter=25),
]


@pytest.fixture
def uneven(rng):
    """Columns whose scales are decided by few rows: those of folds differ."""
    X = np.exp(1.5 * rng.standard_normal((120, 5)))
    X[:, 3] = 4.0
    X[:110, 4] = 2.0  # constant in some folds
    return X, np.log(X[:, 0]) + rng.standard_normal(120)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("estimator", STANDARDISED, ids=repr)
def test_folds_have_scales_of_their_own(estimator, kind, uneven, rng):
    X, y = uneven
    if hasattr(estimator, "decision_function"):
        y = (y > np.median(y)).astype(int)
    elif isinstance(estimator, TrajectoryPoissonRegressor):
        y = rng.poisson(np.exp(np.clip(0.3 * y, -2, 2)))
    X = np.where(X > 1, X, 0.0) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "float32" else X
    rows = blocks(X, 50)
    if kind == "sparse":
        X, rows = sparse.csr_matrix(X), rows.map_blocks(sparse.csr_matrix)
    model = switched_off(estimator).set_params(standardize=True, cv=KFold(4))
    model.set_params(random_state=0)
    found = clone(model).set_params(loo=7).fit(rows, blocks(y, 50))
    expected = clone(model).set_params(loo=True).fit(X, y)
    tolerance = 1e-5 if kind == "float32" else 1e-8
    for name in ("cv_path_", "cv_fold_path_", "train_path_"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(found, name), wanted, rtol=0, atol=tolerance * wanted.max()
        )
    wanted = expected.loo_prediction_path_[:, found.loo_indices_]
    np.testing.assert_allclose(
        found.loo_prediction_path_, wanted, rtol=0, atol=tolerance * abs(wanted).max()
    )


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_classifiers(estimator, n_classes, weighted, X, y, rng):
    if isinstance(estimator.class_weight, dict) and n_classes == 2:
        pytest.skip("there is no third class to weigh")
    labels = np.digitize(y + rng.standard_normal(N), np.quantile(y, [0.4, 0.7]))
    labels = np.minimum(labels, n_classes - 1)
    weights = rng.random(N) if weighted else None
    found, expected = fits(estimator, X, labels, weights)
    assert_same_run(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(found.classes_, expected.classes_)


AMOUNTS = [
    TrajectoryPoissonRegressor(max_iter=25, cv=3),
    TrajectoryGammaRegressor(max_iter=25, cv=3),
    TrajectoryTweedieRegressor("path", max_iter=3, cv=3),
    TrajectoryGammaRegressor(max_iter=25, fit_intercept=False),
    TrajectoryRegressor(0.1, loss="negative_binomial", max_iter=25, cv=3),
]


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
@pytest.mark.parametrize("unit", [1, 1000])
@pytest.mark.parametrize("estimator", AMOUNTS, ids=repr)
def test_counts_and_amounts(estimator, unit, X, y, rng):
    counts = unit * (1.0 + rng.poisson(np.exp(0.1 * (y - y.mean()))))
    weights = rng.integers(0, 4, N) / 2
    assert_same_run(*fits(estimator, X, counts, weights), rtol=1e-9)


def test_several_targets(X, y, rng):
    targets = np.stack([y, -y + rng.standard_normal(N)], axis=1)
    assert_same_run(*fits(IterativeRidge(max_iter=20, cv=3), X, targets), rtol=1e-9)


def test_labels_that_are_strings(X, y):
    labels = np.array(["no", "yes", "maybe"])[
        np.digitize(y, np.quantile(y, [0.3, 0.6]))
    ]
    found, expected = fits(CLASSIFIERS[0], X, labels)
    assert_same_run(found, expected, rtol=1e-9)
    predicted = found.predict(blocks(X))
    np.testing.assert_array_equal(predicted.compute(), expected.predict(X))


@pytest.mark.parametrize("estimator", [REGRESSORS[0], CLASSIFIERS[0]], ids=repr)
def test_single_precision(estimator, X, y):
    """Rows are in single precision, iterates in double: roundings do not add up.

    Columns are of uneven size, so that some coefficients move little for long.
    """
    X = (X * np.linspace(0.1, 1, P)).astype(np.float32)
    y = y.astype(np.float32)
    if estimator is CLASSIFIERS[0]:
        y = (y > y.mean()).astype(int)
    estimator = clone(estimator).set_params(max_iter=300, tol=0)
    found, single = fits(estimator, X, y)
    assert found.coef_path_.dtype == np.float64
    expected = switched_off(estimator).fit(X.astype(float), y.astype(float))
    assert_same_run(found, expected, rtol=1e-6)
    assert single.coef_path_.dtype == np.float32
    assert_same_run(single, expected, rtol=1e-6)


@pytest.mark.parametrize("estimator", [REGRESSORS[0], CLASSIFIERS[0]], ids=repr)
def test_sparse_blocks(estimator, X, y):
    if estimator is CLASSIFIERS[0]:
        y = (y > y.mean()).astype(int)
    X = np.where(np.abs(X) > 2, X, 0)
    estimator = switched_off(estimator)
    csr = blocks(X).rechunk((70, -1)).map_blocks(sparse.csr_matrix)
    found = clone(estimator).fit(csr, blocks(y))
    assert_same_run(found, estimator.fit(sparse.csr_matrix(X), y), rtol=1e-9)


def test_wide_rows_take_lanczos(rng):
    """More than 128 columns: the step is from the same Lanczos iterations."""
    X = rng.standard_normal((300, 200)) @ np.diag(np.geomspace(3, 0.1, 200))
    y = X[:, 0] + rng.standard_normal(300)
    found, expected = fits(TrajectoryLasso(0.02, max_iter=40), X, y)
    np.testing.assert_allclose(found.step_size_, expected.step_size_, rtol=1e-10)
    assert_same_run(found, expected, rtol=1e-9)


def test_far_targets_keep_their_digits(X, y):
    """In single precision, means are taken off before products are formed."""
    found, expected = fits(
        REGRESSORS[0], (X + 30).astype(np.float32), (y + 1000).astype(np.float32)
    )
    exact = switched_off(REGRESSORS[0]).fit(X + 30, y + 1000)
    scale = np.abs(exact.coef_path_).max()
    error = np.abs(found.coef_path_ - exact.coef_path_).max() / scale
    own = np.abs(expected.coef_path_ - exact.coef_path_).max() / scale
    assert error < max(3 * own, 1e-5)


def test_constant_columns_do_not_move(y):
    found, _ = fits(IterativeRidge(0.0, max_iter=5), np.ones((N, 3)), y)
    assert found.step_size_ == 1.0
    assert np.abs(found.coef_path_).max() < 1e-12
    np.testing.assert_allclose(found.train_path_, y.var())


def test_objectives_that_are_followed(X, y, capsys):
    """With printed lines they are there at once, and the same."""
    estimator = switched_off(REGRESSORS[0])
    found = clone(estimator).fit(blocks(X), blocks(y))
    followed = clone(estimator).set_params(verbose=1).fit(blocks(X), blocks(y))
    assert_same_run(followed, found, rtol=1e-12)
    lines = capsys.readouterr().out.splitlines()
    printed = [float(line.split()[-1]) for line in lines if "objective" in line]
    np.testing.assert_allclose(printed, found.objective_path_[3::3], rtol=1e-5)


def test_a_frame_keeps_its_names(X, y):
    names = [f"column_{j}" for j in range(P)]
    frame = pd.DataFrame(X, columns=names)
    parts = dd.from_pandas(frame, npartitions=4)
    estimator = switched_off(REGRESSORS[0])
    found = clone(estimator).fit(parts, dd.from_pandas(pd.Series(y), npartitions=4))
    expected = estimator.fit(frame, y)
    assert_same_run(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(found.feature_names_in_, names)
    predicted = found.predict(parts)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), expected.predict(frame))


# ------------------------------------------------------------------- folds


def folds_by_block(splitter, sizes, labels=None):
    """The folds of scikit-learn, by which every row is judged."""
    y = np.zeros(sum(sizes)) if labels is None else labels
    found = np.full(len(y), -1)
    for number, (_, judged) in enumerate(splitter.split(y, y)):
        found[judged] = number
    return found


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_consecutive_folds_are_those_of_scikit_learn(n_folds, seed):
    from skacv.dask.data import join_labels, labels_in
    from skacv.dask.folds import number_folds
    from skacv.dask.rows import Block

    rng = np.random.default_rng(seed)
    sizes = rng.integers(8, 30, 4)
    labels = rng.integers(0, 3, sizes.sum())
    ends = np.cumsum(sizes)
    parts = [
        Block(k, ends[k] - sizes[k], None, part, None)
        for k, part in enumerate(np.split(labels, ends[:-1]))
    ]
    counts = join_labels([labels_in(part)[0] for part in parts], len(labels))
    for splitter, label_counts in (
        (KFold(n_folds), None),
        (StratifiedKFold(n_folds), counts),
    ):
        folds = number_folds(n_folds, label_counts, sizes)
        numbers = np.concatenate([folds.numbers(part) for part in parts])
        is_stratified = label_counts is not None
        expected = folds_by_block(splitter, sizes, labels if is_stratified else None)
        np.testing.assert_array_equal(numbers, expected)


def test_shuffled_folds_are_a_share_of_every_block_and_class(X, y):
    from skacv.dask.folds import LabelCounts, number_folds
    from skacv.dask.rows import Block

    labels = (y > y.mean()).astype(int)
    counts = np.array([np.bincount(labels)])
    labelled = LabelCounts(np.arange(2), np.zeros(2, int), counts, counts[0])
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    folds = number_folds(splitter, labelled, [N])
    block = Block(0, 0, None, labels, None)
    numbers = folds.numbers(block)
    np.testing.assert_array_equal(numbers, folds.numbers(block))
    for k in range(2):
        assert np.ptp(np.bincount(numbers[labels == k], minlength=4)) <= 1
    assert not np.array_equal(numbers, np.sort(numbers))


def test_shuffled_folds_are_refits_without_them(X, y):
    """Against in-memory folds given as rows."""
    from skacv.dask.data import data_of

    cv = KFold(4, shuffle=True, random_state=7)
    estimator = switched_off(REGRESSORS[0]).set_params(cv=cv)
    found = clone(estimator).fit(blocks(X), blocks(y))
    groups = data_of(
        estimator, estimator._spec(), blocks(X), blocks(y), None
    ).problem.groups
    fold = np.concatenate(groups.sum(fold_numbers, combine=lambda a, b: a + b))
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    assert_same_run(found, estimator.set_params(cv=splits).fit(X, y), rtol=1e-9)


def fold_numbers(block):
    return [block.fold]


# ------------------------------------------------------------------- single rows


LOO_PATHS = "loo_path_", "loo_se_path_", "loo_prediction_path_"


@pytest.mark.parametrize(
    "estimator",
    [
        TrajectoryLasso(0.1, max_iter=20),
        IterativeRidge(5.0, max_iter=20),
        TrajectoryLogisticRegression(max_iter=15, loo_correction=False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out(estimator, weighted, X, y, rng, set_limits):
    """Against refits in memory; in more than one chunk."""
    set_limits(MEMORY_BYTES=4 * 8 * 8 * (P + 1))
    estimator = clone(estimator).set_params(loo=10, risk=False, random_state=3)
    if hasattr(estimator, "C"):
        y = (y > y.mean()).astype(int)
    weights = 0.5 + rng.random(N) if weighted else np.ones(N)
    found = clone(estimator).fit(blocks(X), blocks(y), sample_weight=blocks(weights))
    rows = found.loo_indices_
    assert len(rows) == 10
    for k, row in enumerate(rows):
        others = weights * (np.arange(N) != row)
        refit = switched_off(estimator).set_params(step_size=found.step_size_, tol=0)
        refit.fit(X, y, sample_weight=others)
        method = "decision_function" if hasattr(estimator, "C") else "predict"
        expected = [
            getattr(refit.at_iteration(t), method)(X[[row]])[0]
            for t in range(found.n_iter_ + 1)
        ]
        np.testing.assert_allclose(
            found.loo_prediction_path_[:, k], expected, rtol=1e-8, atol=1e-10
        )
    np.testing.assert_allclose(found.loo_target_, y[rows])


def test_rows_left_out_are_those_of_memory(X, y):
    estimator = TrajectoryLasso(0.1, max_iter=20, loo=12, risk=False, random_state=3)
    found = clone(estimator).fit(blocks(X), blocks(y))
    expected = estimator.fit(X, y)
    np.testing.assert_array_equal(found.loo_indices_, expected.loo_indices_)
    for name in LOO_PATHS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(
        found.predict_interval(X[:3], method="loo", coverage=0.6),
        expected.predict_interval(X[:3], method="loo", coverage=0.6),
    )


# ------------------------------------------------------------------- schedulers


@pytest.mark.parametrize("estimator", [REGRESSORS[0], CLASSIFIERS[0]], ids=repr)
def test_schedulers(estimator, scheduler, X, y):
    estimator = clone(estimator).set_params(max_iter=4)
    if hasattr(estimator, "C"):
        y = (y > y.mean()).astype(int)
    found, expected = fits(estimator, X, y, size=200)
    assert_same_run(found, expected, rtol=1e-9)
    predicted = found.predict(blocks(X))
    np.testing.assert_allclose(predicted.compute(), expected.predict(X))


@pytest.mark.parametrize("estimator", [REGRESSORS[0], CLASSIFIERS[0]], ids=repr)
def test_a_worker_killed_in_the_middle(estimator, client, X, y, monkeypatch):
    from skacv.dask.problem import FitsOnWorkers

    if hasattr(estimator, "C"):
        y = (y > y.mean()).astype(int)
    gradient, n_rounds = FitsOnWorkers.gradient, []

    def after_a_death(fits, point):
        n_rounds.append(0)
        if len(n_rounds) == 8:
            kill_worker(client)
        return gradient(fits, point)

    undisturbed, expected = fits(estimator, X, y)
    monkeypatch.setattr(FitsOnWorkers, "gradient", after_a_death)
    found, _ = fits(estimator, X, y)
    assert len(n_rounds) > 8
    # Sums are in the same order; products may round otherwise wherever arrays lie.
    assert_same_run(found, undisturbed, rtol=1e-12)
    assert_same_run(found, expected, rtol=1e-9)
