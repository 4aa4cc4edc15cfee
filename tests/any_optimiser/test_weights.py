"""Weights of rows: repeated rows, rows left out of the data, and fits one by one."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit

from skacv import TrajectoryEarlyStoppingCV

from .test_estimators import (  # noqa: F401
    Classifier,
    Regressor,
    classes_of,
    library,
    linear_data,
)

N_ROWS = 60


def whole_weights(rng):
    """From zero to three, in an order that no row has anything to do with."""
    return rng.permutation(np.repeat([0, 1, 2, 3], N_ROWS // 4))


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_weight_is_a_number_of_rows(kind, Regressor, Classifier, rng):  # noqa: F811
    is_regressor = kind == "regressor"
    X, y = linear_data(rng) if is_regressor else classes_of(rng)
    weights = whole_weights(rng)
    rows, fold = np.repeat(np.arange(N_ROWS), weights), np.arange(N_ROWS) % 4
    model = (Regressor if is_regressor else Classifier)(max_iter=25)
    weighted = clone(model).set_params(cv=PredefinedSplit(fold))
    weighted.fit(X, y, sample_weight=weights)
    repeated = clone(model).set_params(cv=PredefinedSplit(fold[rows]))
    repeated.fit(X[rows], y[rows])
    tolerance = {"rtol": 1e-8, "atol": 1e-10}
    for name in ("train_path_", "cv_path_", "cv_se_path_"):
        found, expected = getattr(weighted, name), getattr(repeated, name)
        np.testing.assert_allclose(found, expected, **tolerance)
    staged = "staged_predict" if is_regressor else "staged_predict_proba"
    found, expected = (list(getattr(m, staged)(X)) for m in (weighted, repeated))
    np.testing.assert_allclose(found, expected, **tolerance)
    held_out = np.hstack(weighted.cv_indices_)
    np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(weights))
    np.testing.assert_array_equal(weighted.cv_target_, y[held_out])


@pytest.mark.parametrize("batch_size", [None, 7])
def test_a_row_of_weight_zero_is_no_row(batch_size, Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    weights = rng.uniform(0.5, 2, N_ROWS) * (rng.random(N_ROWS) < 0.7)
    kept, fold = np.flatnonzero(weights), np.arange(N_ROWS) % 3
    settings = {"max_iter": 20, "batch_size": batch_size, "loo": 9, "random_state": 0}
    model = Regressor(**settings, cv=PredefinedSplit(fold))
    model.fit(np.where(weights[:, None] > 0, X, 1e3), y, sample_weight=weights)
    without = Regressor(**settings, cv=PredefinedSplit(fold[kept]))
    without.fit(X[kept], y[kept], sample_weight=weights[kept])
    for name in ("train_path_", "cv_path_", "cv_se_path_", "loo_path_", "loo_se_path_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(without, name))
    np.testing.assert_array_equal(model.loo_indices_, kept[without.loo_indices_])
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_folds_and_left_out_rows_are_weighted_fits(Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    weights = rng.uniform(0.2, 3, N_ROWS)
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = Regressor(cv=splits, loo=True, max_iter=20)
    model.fit(X, y, sample_weight=weights)
    alone, losses = Regressor(max_iter=20), []
    np.testing.assert_allclose(
        model.train_path_, model.staged_loss(X, y, weights), rtol=1e-6
    )
    for train, test in splits:
        alone.fit(X[train], y[train], sample_weight=weights[train])
        losses.append(alone.staged_loss(X[test], y[test], weights[test]))
    shares = np.array([weights[test].sum() for _, test in splits]) / weights.sum()
    mean = shares @ losses
    np.testing.assert_allclose(model.cv_path_, mean, rtol=1e-6)
    # That of a weighted mean of four numbers.
    variance = 4 / 3 * shares**2 @ (losses - mean) ** 2
    np.testing.assert_allclose(model.cv_se_path_, np.sqrt(variance), rtol=1e-5)
    left_out = []
    for row in range(N_ROWS):
        alone.fit(X, y, sample_weight=np.where(np.arange(N_ROWS) == row, 0, weights))
        left_out.append(np.ravel(list(alone.staged_predict(X[[row]]))))
    left_out = np.transpose(left_out)
    np.testing.assert_allclose(model.loo_prediction_path_, left_out, atol=1e-6)
    expected = np.average((y - left_out) ** 2, axis=1, weights=weights)
    np.testing.assert_allclose(model.loo_path_, expected, rtol=1e-6)


def test_weights_of_classes_are_weights_of_their_rows(Classifier, rng):  # noqa: F811
    X, labels = classes_of(rng)
    weights, cv = rng.uniform(0.5, 2, N_ROWS), KFold(3)
    of_class = {"low": 3.0, "mid": 0.5, "top": 1.0}
    expected = Classifier(cv=cv, max_iter=15).fit(
        X, labels, sample_weight=weights * [of_class[label] for label in labels]
    )
    found = Classifier(cv=cv, max_iter=15, class_weight=of_class)
    found.fit(X, labels, sample_weight=weights)
    np.testing.assert_allclose(found.cv_path_, expected.cv_path_, rtol=1e-8)
    balanced = Classifier(max_iter=15, class_weight="balanced").fit(X, labels)
    counts = {label: np.count_nonzero(labels == label) for label in of_class}
    by_hand = Classifier(max_iter=15).fit(
        X, labels, sample_weight=[1 / counts[label] for label in labels]
    )
    found, expected = balanced.train_path_, by_hand.train_path_
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    for wrong in ({"low": -1.0}, {"low": 0.0, "mid": 0.0}):
        with pytest.raises(ValueError, match="class_weight must be"):
            Classifier(class_weight=wrong).fit(X, labels)
    stopping = TrajectoryEarlyStoppingCV(Classifier(max_iter=15), class_weight=of_class)
    path = stopping.set_params(cv=cv).fit(X, labels, sample_weight=weights).path_
    model = Classifier(cv=cv, max_iter=15, class_weight=of_class)
    model.fit(X, labels, sample_weight=weights)
    np.testing.assert_allclose(path, model.cv_path_, rtol=1e-8)


def test_a_stopped_run_chooses_by_weighted_losses(Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    weights = whole_weights(rng) + 0.5
    model = Regressor(max_iter=60, cv=KFold(3))
    stopped = TrajectoryEarlyStoppingCV(clone(model), random_state=0)
    stopped.fit(X, y, sample_weight=weights)
    alone = clone(model).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(stopped.path_, alone.cv_path_)
    assert stopped.best_iter_ == alone.cv_path_.argmin() < 60
    assert not np.allclose(alone.cv_path_, clone(model).fit(X, y).cv_path_)
    # It is judged by row too, where the rows are those of the loss.
    losses = (y - stopped.held_out_prediction_) ** 2
    expected = np.average(losses, weights=weights)
    assert stopped.best_score_ == pytest.approx(expected, rel=1e-5)
    assert stopped.best_score_corrected_ >= stopped.best_score_


def test_searches_of_scikit_learn_route_them(Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    weights, cv = whole_weights(rng) + 0.5, KFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Regressor().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"max_iter": [3, 8]}, cv=cv, refit=False)
        found = search.fit(X, y, sample_weight=weights).cv_results_
    for row, max_iter in enumerate((3, 8)):
        for fold, (train, test) in enumerate(cv.split(X)):
            fit = Regressor(max_iter=max_iter)
            fit.fit(X[train], y[train], sample_weight=weights[train])
            score = r2_score(y[test], fit.predict(X[test]), sample_weight=weights[test])
            expected = pytest.approx(score, rel=1e-6)
            assert found[f"split{fold}_test_score"][row] == expected


def test_one_number_is_the_weight_of_all_rows(Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    model = Regressor(max_iter=5, cv=3)
    paths = [
        clone(model).fit(X, y, sample_weight=weights).cv_path_
        for weights in (None, 2.0, np.full(N_ROWS, 0.1))
    ]
    np.testing.assert_array_equal(paths[0], paths[1])
    np.testing.assert_allclose(paths[0], paths[2], rtol=1e-6)


def test_weights_that_leave_no_rows_are_refused(Regressor, rng):  # noqa: F811
    X, y = linear_data(rng)
    few = np.arange(N_ROWS) < 20
    with pytest.raises(ValueError, match="positive on at least two rows"):
        Regressor().fit(X, y, sample_weight=np.zeros(N_ROWS))
    with pytest.raises(ValueError, match="Fold 0 of cv leaves no row with positive"):
        Regressor(cv=KFold(3)).fit(X, y, sample_weight=few)
    with pytest.raises(ValueError, match="loo=21 is more than the 20 rows"):
        Regressor(loo=21).fit(X, y, sample_weight=few)
