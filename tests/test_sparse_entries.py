"""Sparse matrices that store an entry several times, or in any order.

The oracle is the same matrix with each entry once, in order.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
    approximate_loo,
)
from tests.cases import covering
from tests.internals import KERNELS
from tests.runs import assert_same_summary

pytestmark = pytest.mark.filterwarnings("ignore")
N_ROWS, N_COLUMNS = 60, 4
SHORT = {"max_iter": 5, "cv": 3}
SCALED = {**SHORT, "standardize": True}
MODELS = {
    "lasso": TrajectoryLasso([0.2, 0.1], **SCALED),
    "elastic net": TrajectoryElasticNet(0.1, **SHORT),
    "group lasso": TrajectoryGroupLasso(0.1, groups=[0, 0, 1, 1], **SCALED),
    "ridge": IterativeRidge(**SCALED),
    "newton": IterativeRidge(5.0, solver="newton", cv=3, max_iter=1),
    "huber": TrajectoryHuberRegressor(scale=1.0, **SCALED),
    "poisson": TrajectoryPoissonRegressor(**SCALED),
    "gamma": TrajectoryGammaRegressor(**SHORT),
    "regressor": TrajectoryRegressor(**SHORT),
    "logistic": TrajectoryLogisticRegression(**SCALED),
    "svc": TrajectoryLinearSVC(**SCALED),
    "classifier": TrajectoryClassifier(**SHORT),
    **{
        kernel: KernelEigenProRegressor(
            kernel=kernel, gamma=0.01, cv=3, max_iter=5, standardize=standardize
        )
        for kernel, standardize in zip(KERNELS, [False, True] * len(KERNELS))
    },
    "forest": Staged(ExtraTreesRegressor(3, random_state=0), cv=3),
    "forest of classes": Staged(ExtraTreesClassifier(3, random_state=0), cv=3),
    "pipeline": Staged(
        make_pipeline(MaxAbsScaler(), ExtraTreesRegressor(3, random_state=0)), cv=3
    ),
    "stopping": TrajectoryEarlyStoppingCV(
        [("lasso", TrajectoryLasso(0.1)), ("forest", ExtraTreesRegressor(3))],
        random_state=0,
        rule="blend",
    ),
    "regression": SelfStoppingRegressor(random_state=0),
    "classification": SelfStoppingClassifier(random_state=0),
}


def drawn(rng, of_classes=False):
    X = rng.integers(1, 9, (N_ROWS, N_COLUMNS)).astype(float)
    X[rng.random(X.shape) < 0.3] = 0
    y = 0.3 * X[:, 0] + 0.5 * rng.standard_normal(N_ROWS)
    return X, (y > y.mean()) if of_classes else y + 5


def repeated(X, form):
    """Every entry in two halves, out of order."""
    rows, columns = (part.astype(np.int32) for part in np.nonzero(X))
    order = np.random.default_rng(0).permutation(2 * len(rows))
    rows, columns = (np.tile(part, 2)[order] for part in (rows, columns))
    halves = X[rows, columns] / 2
    if form.startswith("coo"):
        return getattr(sparse, form)((halves, (rows, columns)), X.shape)
    if form.startswith("bsr"):
        found = repeated(X, form.replace("bsr", "csr"))
        blocks = found.data[:, None, None], found.indices, found.indptr
        return getattr(sparse, form)(blocks, shape=X.shape)
    major, minor, n_major = rows, columns, len(X)
    if form.startswith("csc"):
        major, minor, n_major = columns, rows, X.shape[1]
    order = np.argsort(major, kind="stable")
    ends = np.cumsum(np.bincount(major, minlength=n_major))
    parts = halves[order], minor[order], np.append(0, ends).astype(np.int32)
    return getattr(sparse, form)(parts, shape=X.shape)


FORMS = [
    f"{form}_{kind}"
    for kind in ("matrix", "array")
    for form in ("csr", "csc", "coo", "bsr")
]


def state(X):
    """The arrays of a sparse matrix."""
    names = ("data", "indices", "indptr", "row", "col")
    return [getattr(X, name).copy() for name in names if hasattr(X, name)]


@pytest.mark.parametrize("form", FORMS)
def test_the_matrices_are_what_they_shall_be(form, rng):
    X, _ = drawn(rng)
    found = repeated(X, form)
    np.testing.assert_array_equal(found.toarray(), X)
    assert found.nnz == 2 * np.count_nonzero(X)
    assert found.format == form[:3]


def paths(model):
    """What a fit has recorded of its iterates."""
    names = ("train_path_", "cv_path_", "loo_path_", "risk_path_", "path_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


@covering(name=MODELS, form=FORMS)
def test_fits_and_predictions(name, form, rng, few_trees):
    model = MODELS[name]
    X, y = drawn(rng, is_classifier(model))
    once, twice = sparse.csr_matrix(X), repeated(X, form)
    before = state(twice)
    expected, found = clone(model).fit(once, y), clone(model).fit(twice, y)
    assert paths(found).keys() == paths(expected).keys()
    for path, values in paths(expected).items():
        np.testing.assert_allclose(paths(found)[path], values, rtol=1e-9, err_msg=path)
    if hasattr(expected, "coef_"):
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(expected, method):
            values = getattr(expected, method)(once)
            np.testing.assert_array_equal(getattr(expected, method)(twice), values)
    assert expected.score(twice, y) == expected.score(once, y)
    if hasattr(expected, "staged_loss"):
        losses = (expected.staged_loss(rows, y) for rows in (once, twice))
        np.testing.assert_array_equal(*losses)
    for own, other in zip(state(twice), before):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("form", FORMS)
def test_summaries_and_converged_models(form, rng):
    X, y = drawn(rng)
    once, twice = sparse.csr_matrix(X), repeated(X, form)
    summaries = [RowSummary(n_sampled=2).fit(rows, y) for rows in (once, twice)]
    assert_same_summary(*summaries)
    models = [IterativeRidge(max_iter=3).partial_fit(rows, y) for rows in (once, twice)]
    models = [model.partial_fit() for model in models]
    np.testing.assert_allclose(*(model.coef_ for model in models))
    ridge = Ridge().fit(X, y)
    results = [approximate_loo(ridge, rows, y) for rows in (once, twice)]
    np.testing.assert_allclose(results[1].predictions, results[0].predictions)


@covering(
    name=["lasso", "rbf", "logistic", "forest", "regression", "classification"],
    dtype=[float, bool, np.int8],
)
def test_frames_of_sparse_columns(name, dtype, rng, few_trees):
    """They are sparse matrices with names, and small tables to an encoder."""
    model = MODELS[name]
    X, y = drawn(rng, is_classifier(model))
    X = (X > 4).astype(dtype)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame = frame.astype(pd.SparseDtype(dtype, dtype(0)))
    rows = sparse.csr_matrix(X, dtype=float)
    if name in ("regression", "classification"):
        rows = rows.toarray()
    expected = clone(model).fit(rows, y)
    found = clone(model).fit(frame, y)
    for path, values in paths(expected).items():
        np.testing.assert_allclose(paths(found)[path], values, rtol=1e-9, err_msg=path)
    if is_classifier(model):
        np.testing.assert_array_equal(found.predict(frame), expected.predict(X))
    else:
        np.testing.assert_allclose(found.predict(frame), expected.predict(X))
    assert list(found.feature_names_in_) == list("abcd")
