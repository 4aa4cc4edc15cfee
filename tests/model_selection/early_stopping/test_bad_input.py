"""What the stopping estimator refuses, and that a refusal changes nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.model_selection import StratifiedKFold

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(risk=False), criterion="risk"),
            ValueError,
            "risk_path_, which TrajectoryLasso does not compute with risk=False",
        ),
        (
            TrajectoryEarlyStoppingCV(
                IterativeRidge(),
                criterion="risk",
                param_grid={"risk": ["auto", False]},
            ),
            ValueError,
            "does not compute",
        ),
        (TrajectoryEarlyStoppingCV(criterion="holdout"), ValueError, "'holdout'"),
        (TrajectoryEarlyStoppingCV(rule="max"), ValueError, "rule"),
        (TrajectoryEarlyStoppingCV(Lasso()), ValueError, "'estimator'"),
        (
            TrajectoryEarlyStoppingCV(param_grid={"gamma": [1.0]}),
            ValueError,
            "Invalid parameter 'gamma'",
        ),
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(0.01, step_size=1e3)),
            ValueError,
            "largest stable step",
        ),
    ],
    ids=[
        "risk_off",
        "risk_off_in_grid",
        "criterion",
        "rule",
        "foreign",
        "grid",
        "step",
    ],
)
def test_bad_input_changes_nothing(model, error, message, data):
    X, y = data
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    for name in ("coef_", "n_features_in_", "best_iter_"):
        assert not hasattr(model, name)
    fitted = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(X, y)
    before = vars(fitted).copy()
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full_like(X, np.nan), y)
    assert vars(fitted) == before


def changed(values, place, value):
    found = values.copy()
    found[place] = value
    return found


@pytest.mark.parametrize("estimator", [None, TrajectoryLasso(0.1)])
@pytest.mark.parametrize(
    ("targets", "weights", "message"),
    [
        (lambda y: y, np.zeros_like, "at least (one non-zero|two rows)"),
        (lambda y: y, lambda y: -np.ones_like(y), "Negative values"),
        (lambda y: y, lambda y: changed(0 * y, 3, 1.0), "positive on at least two"),
        (lambda y: changed(y, 3, np.nan), np.ones_like, "Input y contains NaN"),
        (lambda y: changed(y, 3, np.inf), np.ones_like, "Input y contains inf"),
    ],
    ids=["zero", "negative", "one", "nan", "inf"],
)
def test_bad_targets_and_weights(estimator, targets, weights, message, data):
    """Before folds of no rows are asked for, and without a warning."""
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            model.fit(X, targets(y), sample_weight=weights(y))
    assert not hasattr(model, "best_iter_")


@pytest.mark.parametrize("estimator", [None, TrajectoryLasso(0.1)])
def test_targets_that_are_strings_are_no_numbers(estimator, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator, task="regression")
    with pytest.raises(ValueError, match="y must be numbers, got strings such as '"):
        model.fit(X, y.astype(str))


def test_a_summary_is_refused_by_curved_losses(data):
    summary = RowSummary().partial_fit(*data)
    model = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression())
    with pytest.raises(ValueError, match="RowSummary works with the squared"):
        model.fit(summary)


def test_unlike_columns_are_refused(data):
    X, y = data
    frame = pd.DataFrame(X).add_prefix("x")
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x0": "z"}))


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (IterativeRidge(max_iter="a"), None, "'max_iter' parameter of IterativeRidge"),
        (IterativeRidge(), {"max_iter": ["b", "a"]}, "'max_iter' parameter"),
        (TrajectoryLasso(loo="maybe"), None, "'loo' parameter of TrajectoryLasso"),
        (
            TrajectoryLogisticRegression(solver="sgd", batch_size=0),
            None,
            "'batch_size' parameter of TrajectoryLogisticRegression",
        ),
        (KernelEigenProRegressor(), {"patience": [-1]}, "'patience' parameter"),
    ],
    ids=["run", "grid", "loo", "batch", "kernel"],
)
@pytest.mark.parametrize("criterion", ["auto", "loo", "r2"])
def test_parameters_of_candidates_are_validated_first(
    criterion, estimator, grid, message, data, advances
):
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator, criterion=criterion, param_grid=grid)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y > 0)
    assert not advances  # nothing was run


@pytest.mark.parametrize(
    ("grid", "refusing"),
    [
        ({"loo": ["auto", False]}, "{'loo': False}"),
        ({"loo": [False], "alpha": [3.0]}, "{'alpha': 3.0, 'loo': False}"),
    ],
)
def test_the_candidate_that_refuses_is_named(grid, refusing, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(), criterion="loo", param_grid=grid
    )
    with pytest.raises(ValueError, match=f"candidate {refusing}"):
        model.fit(X, y)


@pytest.mark.parametrize("grid", [None, {"alpha": [0.1, 1.0]}])
def test_bad_data_are_named_before_what_the_splitter_says(grid, data):
    X, y = data
    inner = IterativeRidge(cv=StratifiedKFold(5))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv", param_grid=grid)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="continuous"):
        model.fit(X, y)


@pytest.mark.parametrize("patience", [None, 5])
@pytest.mark.parametrize("n_weightless", [0, 3])
@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_too_few_rows_to_leave_one_out(cls, n_weightless, patience, data):
    X, y = (values[: 2 + n_weightless] for values in data)
    weights = np.repeat([1.0, 0.0], [2, n_weightless])
    model = TrajectoryEarlyStoppingCV(cls(), criterion="loo", patience=patience)
    with pytest.raises(ValueError, match="at least 3 rows"):
        model.fit(X, y, sample_weight=weights)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_too_few_rows_to_leave_one_out_of_a_kernel_machine(data):
    X, y = (values[:2] for values in data)
    model = TrajectoryEarlyStoppingCV(KernelEigenProRegressor(), criterion="loo")
    with pytest.raises(ValueError, match="at least 3 rows"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"criterion": "roc_auc"}, "roc_auc cannot score"),
        ({"criterion": "neg_log_loss"}, "neg_log_loss cannot score"),
        ({"criterion": "accuracy"}, "accuracy"),
        ({"criterion": 3}, "criterion"),
        ({"patience": 0}, "patience"),
        ({"estimator": IterativeRidge(loo=False), "criterion": "loo"}, "loo_path_"),
        ({"estimator": IterativeRidge(loo=81), "criterion": "loo"}, "loo=81"),
        ({"estimator": IterativeRidge(cv=81), "criterion": "cv"}, "n_splits=81"),
    ],
)
def test_bad_criteria_are_refused_before_anything_is_run(params, message, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge()).set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
