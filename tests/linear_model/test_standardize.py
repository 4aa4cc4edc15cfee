"""Columns standardised inside: the model of standardised columns, in units of X."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryClassifier,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from tests.cases import covering

# Steps are given, so that a refit takes the same; runs are not ended by ``tol``.
RUN = {"max_iter": 12, "tol": 0.0, "step_size": 0.2, "loo": False}
MODELS = {
    "lasso": TrajectoryLasso([0.1, 0.05], risk=False, **RUN),
    "elastic net": TrajectoryElasticNet(0.3, risk=False, **RUN),
    "ridge": IterativeRidge(3.0, solver="nesterov", risk=False, **RUN),
    "huber": TrajectoryHuberRegressor(0.1, scale=1.0, **RUN),
    "poisson": TrajectoryPoissonRegressor(0.1, **RUN).set_params(
        step_size=0.02, max_iter=60
    ),
    "logistic": TrajectoryClassifier(alpha=[0.1, 0.03], penalty="l1", **RUN),
    "classes": TrajectoryLogisticRegression(1.0, **RUN),
}


def drawn(rng, name, n_rows=60):
    """Columns of all sizes, far from zero, some of them skewed; one is constant."""
    X = np.exp(rng.standard_normal((n_rows, 6)))
    signal = np.log(X[:, 0]) - X[:, 1] / 2
    X = (X + rng.standard_normal(6)) * 10.0 ** rng.integers(-4, 5, 6)
    X[:, 3] = 2.0
    noisy = signal + 0.3 * rng.standard_normal(n_rows)
    if name == "poisson":
        return X, rng.poisson(np.exp(0.3 * noisy))
    if name == "logistic":
        return X, (noisy > np.median(noisy)).astype(int)
    if name == "classes":
        return X, np.digitize(noisy, np.quantile(noisy, [0.4, 0.7]))
    return X, noisy


def with_zeros(X, rng):
    """A sparse matrix of some entries, whose columns are not far from zero."""
    X = np.where(rng.uniform(size=X.shape) < 0.4, X - X.mean(axis=0), 0)
    return sparse.csr_matrix(X)


def predictions(model, X):
    """Those of every iterate: of classifiers, decisions."""
    if hasattr(model, "decision_function"):
        iterates = range(model.n_iter_ + 1)
        found = [model.at_iteration(t).decision_function(X) for t in iterates]
    else:
        found = list(model.staged_predict(X))
    return np.array(found)


def scaler_of(X, weights=None):
    centers = not sparse.issparse(X)
    # The variance of a constant column may come out below zero there.
    with np.errstate(invalid="ignore"):
        return StandardScaler(with_mean=centers).fit(X, sample_weight=weights)


@covering(name=MODELS, kind=["dense", "sparse", "float32"], weighted=[False, True])
def test_it_is_the_model_of_a_pipeline_with_a_scaler(name, kind, weighted, rng):
    X, y = drawn(rng, name)
    X = {"dense": X, "sparse": with_zeros(X, rng), "float32": X.astype("f4")}[kind]
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    scaler = scaler_of(X, weights)
    model = clone(MODELS[name]).set_params(standardize=True)
    model.fit(X, y, sample_weight=weights)
    expected = clone(MODELS[name]).fit(scaler.transform(X), y, sample_weight=weights)
    tolerance = 1e-3 if kind == "float32" else 1e-7
    size = np.abs(expected.coef_path_).max()
    assert_allclose(
        model.coef_path_ * scaler.scale_, expected.coef_path_, atol=tolerance * size
    )
    found, wanted = predictions(model, X), predictions(expected, scaler.transform(X))
    assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max())


def refit_predictions(name, X, y, fold, weights):
    """What a refit that standardises by its own rows predicts for the others."""
    fitted, judged = fold
    own = None if weights is None else weights[fitted]
    scaler = scaler_of(X[fitted], own)
    model = clone(MODELS[name])
    model.fit(scaler.transform(X[fitted]), y[fitted], sample_weight=own)
    return predictions(model, scaler.transform(X[judged]))


@covering(
    name=MODELS,
    kind=["dense", "sparse"],
    weighted=[False, True],
    stages=[False, True],
)
def test_folds_standardise_as_a_refit_on_their_rows_would(
    name, kind, weighted, stages, rng
):
    X, y = drawn(rng, name)
    X = with_zeros(X, rng) if kind == "sparse" else X
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = clone(MODELS[name]).set_params(standardize=True, cv=folds)
    if stages:  # folds are replayed where there is a job for them
        model.set_params(n_jobs=2)
    model.fit(X, y, sample_weight=weights)
    found = np.split(np.asarray(model.cv_prediction_path_), 4, axis=1)
    for fold, own in zip(folds, found):
        expected = refit_predictions(name, X, y, fold, weights)
        assert_allclose(own, expected, rtol=1e-6, atol=1e-8)


def test_folds_of_moments_standardise_too(rng):
    """Many rows: the run is on few rows that have their moments."""
    n_rows = 600
    X, y = drawn(rng, "ridge", n_rows)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = clone(MODELS["ridge"]).set_params(standardize=True, cv=folds).fit(X, y)
    kept = clone(model).set_params(keep_data=True).fit(X, y)
    assert not isinstance(model.cv_prediction_path_, np.ndarray)
    assert_allclose(model.cv_path_, kept.cv_path_, rtol=1e-8)
    for t in (0, 5, 12):
        assert_allclose(
            model.cv_prediction_path_[t], kept.cv_prediction_path_[t], rtol=1e-7
        )
    expected = refit_predictions("ridge", X, y, folds[0], None)
    assert_allclose(kept.cv_prediction_path_[:, : n_rows // 3], expected, rtol=1e-7)


@pytest.mark.parametrize("shape", [(60, 6), (30, 80)])
@pytest.mark.parametrize(
    "model",
    [
        TrajectoryLasso("path", max_iter=20, standardize=True, cv=3),
        IterativeRidge(0.0, solver="nesterov", standardize=True, loo=True, cv=3),
        TrajectoryHuberRegressor(0.1, standardize=True, loo=True, cv=3),
        KernelEigenProRegressor(
            standardize=True, loo=True, max_iter=30, random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_units_of_columns_do_not_matter(model, shape, rng):
    X = rng.standard_normal(shape)
    y = X[:, 0] - X[:, 1] ** 2 + 0.3 * rng.standard_normal(len(X))
    units = 10.0 ** rng.uniform(-4, 4, shape[1])
    one, other = clone(model).fit(X, y), clone(model).fit(X * units, y)
    estimates = [name for name in ("loo", "cv") if hasattr(one, f"{name}_path_")]
    assert estimates
    for name in estimates:
        assert_allclose(
            getattr(one, f"{name}_path_"), getattr(other, f"{name}_path_"), rtol=1e-6
        )
    assert_allclose(one.predict(X), other.predict(X * units), rtol=1e-6, atol=1e-8)
    if hasattr(one, "coef_path_"):
        size = np.abs(one.coef_path_).max()
        assert_allclose(one.coef_path_, other.coef_path_ * units, atol=1e-6 * size)


def test_intervals_and_tables_are_in_units_of_X(rng):
    X, y = drawn(rng, "lasso", 80)
    X = np.delete(X, 3, axis=1)
    asked = {"risk": True, "loo": True, "keep_data": True, "random_state": 0}
    model = TrajectoryLasso(0.1, standardize=True, **asked).fit(X, y)
    scaler = StandardScaler().fit(X)
    plain = TrajectoryLasso(0.1, **asked).fit(scaler.transform(X), y)
    columns = np.arange(X.shape[1])
    for covariance in ("sample", "nodewise"):
        own, expected = (
            fitted.coef_table(columns, covariance=covariance)
            for fitted in (model, plain)
        )
        for name in ("coef", "estimate", "standard_error", "lower", "upper"):
            found = own[name] * scaler.scale_
            assert_allclose(found, expected[name], rtol=1e-6, atol=1e-9)
        assert_allclose(own["p_value"], expected["p_value"], rtol=1e-6)
    rows = X[:4] * 1.1
    for method in ("loo", "jackknife+"):
        assert_allclose(
            model.predict_interval(rows, method=method),
            plain.predict_interval(scaler.transform(rows), method=method),
            rtol=1e-7,
        )
    for covariance in ("sample", "nodewise"):
        assert_allclose(
            model.predict_mean_interval(rows, covariance=covariance),
            plain.predict_mean_interval(scaler.transform(rows), covariance=covariance),
            rtol=1e-6,
        )
    covariance = np.cov(X.T)
    known = model.coef_interval(covariance=covariance)
    scaled = covariance / np.outer(scaler.scale_, scaler.scale_)
    known_plain = plain.coef_interval(covariance=scaled)
    assert_allclose(known * scaler.scale_[:, None], known_plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_summary_is_standardised_as_its_rows_are(fit_intercept, rng):
    X, y = drawn(rng, "ridge", 200)
    X = X - X.mean(axis=0) * (not fit_intercept)
    settings = {"standardize": True, "fit_intercept": fit_intercept, "cv": 5}
    model = clone(MODELS["ridge"]).set_params(**settings)
    summary = RowSummary(n_folds=5).fit(X, y)
    folds = summary.fold_of(np.arange(len(y)))
    split = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    of_rows = clone(model).set_params(cv=split).fit(X, y)
    of_summary = model.fit(summary)
    assert_allclose(of_summary.coef_path_, of_rows.coef_path_, rtol=1e-6, atol=1e-12)
    assert_allclose(of_summary.cv_path_, of_rows.cv_path_, rtol=1e-6)


def test_a_longer_run_goes_on(rng):
    X, y = drawn(rng, "lasso")
    model = clone(MODELS["lasso"]).set_params(standardize=True, alpha=0.2)
    longer = clone(model).set_params(max_iter=20).fit(X, y)
    model.set_params(warm_start=True).fit(X, y)
    model.set_params(max_iter=20).fit(X, y)
    assert model.n_iter_ == longer.n_iter_ == 20
    assert_allclose(model.coef_path_, longer.coef_path_, rtol=1e-9)


def test_kernels_of_standardised_columns(rng):
    X, y = drawn(rng, "ridge")
    scaler = StandardScaler().fit(X)
    params = {"gamma": 0.2, "max_iter": 10, "patience": None, "random_state": 0}
    model = KernelEigenProRegressor(standardize=True, **params)
    model.fit(X, y)
    expected = KernelEigenProRegressor(**params).fit(scaler.transform(X), y)
    assert_allclose(model.dual_coef_path_, expected.dual_coef_path_, rtol=1e-7)
    new = X[:5] * 1.1
    assert_allclose(model.predict(new), expected.predict(scaler.transform(new)))
    assert_allclose(
        model.predict_interval(new), expected.predict_interval(scaler.transform(new))
    )
    with pytest.raises(ValueError, match="standardize=True needs columns"):
        model.set_params(kernel="precomputed").fit(np.eye(60), y)


@pytest.mark.parametrize("standardize", [False, True])
def test_the_automatic_step_is_stable_on_every_fold(standardize, rng):
    """Also where a fold leaves out most of the weight."""
    for _ in range(60):
        X = rng.standard_normal((30, 3))
        X[0], weights = 0.01, np.ones(30)
        y, weights[:3] = X[:, 0] + rng.standard_normal(30), 20
        order = rng.permutation(30)
        folds = [(order[a], order[b]) for a, b in KFold(3).split(order)]
        model = IterativeRidge(
            0.0, solver="nesterov", standardize=standardize, cv=folds, loo=False
        ).set_params(risk=False, max_iter=3)
        model.fit(X, y, sample_weight=weights)
        for fitted, _ in folds:
            own = weights[fitted] / weights[fitted].sum()
            columns = X[fitted] - own @ X[fitted]
            if standardize:
                columns /= np.sqrt(own @ columns**2)
            top = np.linalg.eigvalsh((columns * own[:, None]).T @ columns)[-1]
            assert model.step_size_ <= 4 / 3 / top * (1 + 1e-9)


def rarely_nonzero(X, rng):
    """A sparse matrix whose columns have nonzero entries in 2% to 60% of the rows."""
    shares = np.geomspace(0.02, 0.6, X.shape[1])
    zeros = rng.uniform(size=X.shape) > shares
    zeros[:2] = False  # none is empty
    return sparse.csr_matrix(np.where(zeros, 0, X))


@covering(name=MODELS, weighted=[False, True], in_folds=[False, True])
def test_auto_divides_sparse_columns_by_rarity_too(name, weighted, in_folds, rng):
    X, y = drawn(rng, name)
    X = rarely_nonzero(X, rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    dense = X.toarray()
    mean = np.average(dense, axis=0, weights=weights)
    variance = np.average((dense - mean) ** 2, axis=0, weights=weights)
    share = np.average(dense != 0, axis=0, weights=weights)
    scale = np.sqrt(variance) / share**0.25
    folds = list(KFold(4, shuffle=True, random_state=0).split(dense))
    settings = {"cv": folds} if in_folds else {}
    model = clone(MODELS[name]).set_params(standardize="auto", **settings)
    model.fit(X, y, sample_weight=weights)
    # Folds have the scales of all rows, as where X is scaled before.
    by_hand = sparse.csr_matrix(dense / scale)
    expected = clone(MODELS[name]).set_params(**settings)
    expected.fit(by_hand, y, sample_weight=weights)
    size = np.abs(expected.coef_path_).max()
    assert_allclose(
        model.coef_path_ * scale, expected.coef_path_, atol=1e-7 * max(size, 1)
    )
    if in_folds:
        assert_allclose(model.cv_path_, expected.cv_path_, rtol=1e-7)


def test_auto_is_true_for_dense_columns_and_ignores_stored_zeros(rng):
    X, y = drawn(rng, "lasso")
    models = [
        clone(MODELS["lasso"]).set_params(standardize=value, cv=3)
        for value in (True, "auto")
    ]
    paths = [np.asarray(model.fit(X, y).cv_prediction_path_) for model in models]
    np.testing.assert_array_equal(*paths)
    rows = rarely_nonzero(X, rng)
    stored = sparse.csr_matrix(np.ones(rows.shape))  # all entries are
    stored.data[:] = rows.toarray().ravel()
    found = [models[1].fit(each, y).coef_path_ for each in (rows, stored)]
    assert_allclose(*found, rtol=1e-9, atol=1e-9)
