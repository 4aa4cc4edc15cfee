"""Estimates and scorers of held-out predictions as criteria."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.metrics import (
    average_precision_score,
    get_scorer,
    make_scorer,
    mean_squared_error,
)
from sklearn.model_selection import KFold

from skacv import (
    IterativeRidge,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

# Scores with a block of the held-out rows left out, for a standard error.
N_BLOCKS = 20


@pytest.mark.parametrize("criterion", ["risk", "loo", "cv"])
def test_every_criterion_minimises_its_path(criterion, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion=criterion)
    model.fit(X, y)
    shuffled = KFold(5, shuffle=True, random_state=0)
    alone = IterativeRidge(0.0, cv=shuffled).fit(X, y)
    path = getattr(alone, f"{criterion}_path_")
    np.testing.assert_allclose(model.path_, path)
    assert model.best_iter_ == path.argmin()
    errors = getattr(alone, f"{criterion}_se_path_")
    assert model.best_score_se_ == pytest.approx(errors[path.argmin()])
    assert model.criterion_ == criterion
    for other in {"risk", "loo", "cv"} - {criterion}:
        assert not hasattr(model.estimator_, f"{other}_path_")


def test_automatic_criterion(rng):
    """What is asked for; else leave-one-out where it is cheap; else folds."""

    def chosen(estimator, shape=(80, 40)):
        X = rng.standard_normal(shape)
        y = X[:, 0] + rng.standard_normal(shape[0])
        return TrajectoryEarlyStoppingCV(estimator).fit(X, y).criterion_

    assert chosen(IterativeRidge(max_iter=50)) == "loo"
    # A decomposition would take several times as long as the run.
    assert chosen(IterativeRidge(max_iter=5)) == "cv"
    assert chosen(IterativeRidge(max_iter=50), shape=(2001, 5)) == "cv"
    assert chosen(TrajectoryLasso(0.1)) == "cv"
    assert chosen(TrajectoryLasso(0.1, loo=False)) == "cv"
    assert chosen(TrajectoryLasso(0.1, risk=False)) == "cv"
    assert chosen(TrajectoryLasso(0.1, loo=20)) == "loo"
    assert chosen(TrajectoryLasso(0.5, loo=True, max_iter=5)) == "loo"
    assert chosen(TrajectoryLasso(0.1, risk="exact")) == "risk"
    assert chosen(IterativeRidge(max_iter=50, cv=3)) == "cv"


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({"loo": ["auto", False]}, "cv"),
        ({"loo": [True, 50]}, "loo"),
        ({"loo": [True, "auto"]}, "cv"),
        ({"loo": [False], "risk": ["exact", 20]}, "risk"),
        ({"max_iter": [5, 100]}, "cv"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_automatic_criterion_is_one_that_all_candidates_have(
    grid, expected, reverse, rng
):
    X = rng.standard_normal((200, 50))
    y = X[:, 0] + rng.standard_normal(200)
    lasso = TrajectoryLasso(0.1, tol=1e-3)
    if "max_iter" in grid:  # one of them is too short for a decomposition
        lasso = IterativeRidge(tol=1e-3)
    if reverse:
        grid = {name: values[::-1] for name, values in grid.items()}
    model = TrajectoryEarlyStoppingCV(lasso, param_grid=grid).fit(X, y)
    assert model.criterion_ == expected


@pytest.mark.parametrize("cvs", [[None, 4], [4, None]])
def test_scorers_take_folds_where_all_candidates_have_them(cvs, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(keep_data=True), criterion="r2", param_grid={"cv": cvs}
    ).fit(X, y)
    inner = model.estimator_
    expected = -np.mean((y - inner.loo_prediction_path_) ** 2, axis=1) / y.var() + 1
    np.testing.assert_allclose(model.path_, expected)


@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize(
    "scoring", ["r2", "neg_mean_absolute_error", "explained_variance"]
)
def test_scorers_judge_pooled_held_out_predictions(scoring, cv, data):
    X, y = data
    ridge = IterativeRidge(0.0, cv=cv, keep_data=True)
    model = TrajectoryEarlyStoppingCV(ridge, criterion=scoring)
    model.fit(X, y)
    inner = model.estimator_
    if cv is None:
        rows, predictions = inner.loo_indices_, inner.loo_prediction_path_
    else:
        rows = np.concatenate(inner.cv_indices_)
        predictions = inner.cv_prediction_path_
    function = get_scorer(scoring)._score_func
    sign = get_scorer(scoring)._sign
    scores = [sign * function(y[rows], p) for p in predictions]
    np.testing.assert_allclose(model.path_, scores)
    assert model.best_iter_ == np.argmax(scores)
    assert model.best_score_ == pytest.approx(max(scores))
    assert 0 < model.best_score_se_ < 1
    assert model.criterion_ == scoring


def test_negative_squared_error_chooses_as_leave_one_out(data):
    X, y = data
    scored = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="neg_mean_squared_error"
    ).fit(X, y)
    left_out = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="loo").fit(X, y)
    assert scored.best_iter_ == left_out.best_iter_
    assert scored.best_score_ == pytest.approx(-left_out.best_score_)
    # A jackknife over groups of rows, of what is a mean: nearly the same error.
    assert scored.best_score_se_ == pytest.approx(left_out.best_score_se_, rel=0.3)


def test_callable_scorers_get_the_rows_of_their_predictions(data):
    X, y = data

    def worst(estimator, X_held, y_held):
        assert X_held.shape == (len(y_held), 40)
        return -np.abs(estimator.predict(X_held) - y_held).max()

    ridge = IterativeRidge(0.0, keep_data=True)
    model = TrajectoryEarlyStoppingCV(ridge, criterion=worst).fit(X, y)
    residuals = model.estimator_.loo_prediction_path_ - y
    np.testing.assert_allclose(model.path_, -np.abs(residuals).max(axis=1))


@pytest.mark.parametrize("classifies", [False, True])
def test_the_own_score_is_that_of_held_out_predictions(classifies, rng):
    """Also of a model that scores rows of X by itself, as trees do."""
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    y = y > 0 if classifies else y
    kind = GradientBoostingClassifier if classifies else GradientBoostingRegressor
    trees = Staged(kind(n_estimators=8, random_state=0), cv=3)
    named = TrajectoryEarlyStoppingCV(trees, criterion=["r2", "accuracy"][classifies])
    own = clone(named).set_params(criterion=lambda model, X, y: model.score(X, y))
    np.testing.assert_array_equal(own.fit(X, y).path_, named.fit(X, y).path_)


def test_an_error_of_a_scorer_names_the_model(rng):
    X = rng.standard_normal((60, 3))
    model = TrajectoryEarlyStoppingCV(TrajectoryLinearSVC(), criterion="neg_log_loss")
    with pytest.raises(ValueError, match="TrajectoryLinearSVC has none of the follow"):
        model.fit(X, X[:, 0] > 0)


def test_scorers_get_the_weights_that_they_request(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    inner = IterativeRidge(0.0, loo=True)
    expected = inner.fit(X, y, sample_weight=weights).loo_path_
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(mean_squared_error, greater_is_better=False)
        scorer = scorer.set_score_request(sample_weight=True)
        asking = IterativeRidge(0.0, loo=True).set_fit_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(asking, criterion=scorer)
        model.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(-model.path_, expected)


def correlation(estimator, X, y):
    """Undefined where all predictions are the same, as those of the start are."""
    predictions = estimator.predict(X)
    if np.ptp(predictions) == 0:
        return np.nan
    return np.corrcoef(predictions, y)[0, 1]


@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize("patience", [None, 3])
def test_iterates_of_undefined_score_are_not_chosen(rule, patience, data):
    X, y = data
    ridge = IterativeRidge(0.0, fit_intercept=False)
    model = TrajectoryEarlyStoppingCV(
        ridge, criterion=correlation, rule=rule, patience=patience
    ).fit(X, y)
    assert np.isnan(model.path_[0])
    assert model.best_iter_ > 0
    assert model.best_score_ == model.path_[model.best_iter_]
    whole = TrajectoryEarlyStoppingCV(ridge, criterion=correlation, rule=rule)
    assert model.best_iter_ == whole.fit(X, y).best_iter_


def test_patience_waits_for_a_score_that_is_defined(data):
    """The first values of alpha keep all coefficients at zero."""
    X, y = data
    lasso = TrajectoryLasso([1e3] * 10 + [0.1], fit_intercept=False, max_iter=20)
    model = TrajectoryEarlyStoppingCV(lasso, criterion=correlation, patience=2)
    model.fit(X, y)
    assert np.isnan(model.path_[:11]).all()
    assert model.best_score_ == np.nanmax(model.path_)


def test_candidates_of_undefined_score_are_not_chosen(data):
    X, y = data
    lasso = TrajectoryLasso(fit_intercept=False)
    model = TrajectoryEarlyStoppingCV(
        lasso, criterion=correlation, param_grid={"alpha": [1e3, 0.1]}
    ).fit(X, y)
    assert model.best_params_ == {"alpha": 0.1}
    nothing = clone(model).set_params(param_grid={"alpha": [1e3, 1e4]})
    with pytest.raises(ValueError, match="for every iterate of every candidate"):
        nothing.fit(X, y)
    assert not [name for name in vars(nothing) if name.endswith("_")]


class CountedScorer:
    """Negative squared error that counts how often it is asked."""

    n_calls = 0

    def __call__(self, estimator, X, y):
        self.n_calls += 1
        return -np.mean((estimator.predict(X) - y) ** 2)


@pytest.mark.parametrize("n_candidates", [1, 2])
def test_every_iterate_is_scored_once(n_candidates, data):
    X, y = data
    counting = CountedScorer()
    ridge = IterativeRidge(max_iter=30, tol=0)
    grid = {"alpha": [0.1, 1.0][:n_candidates]}
    TrajectoryEarlyStoppingCV(ridge, criterion=counting, param_grid=grid).fit(X, y)
    # One trial; every iterate, and the jackknife at the best, of each candidate.
    assert counting.n_calls == 1 + n_candidates * (31 + N_BLOCKS)


def test_stages_score_at_most_twice_as_often(data):
    X, y = data
    counting = CountedScorer()
    ridge = IterativeRidge(0.0, max_iter=1000, tol=0)
    model = TrajectoryEarlyStoppingCV(ridge, criterion=counting, patience=4)
    n_iter = model.fit(X, y).estimator_.n_iter_
    assert n_iter > 4
    n_stages = int(np.log2(n_iter // 4)) + 1
    stages = [1 + 4 * 2**k for k in range(n_stages)]
    assert stages[-1] == n_iter + 1
    assert counting.n_calls == 1 + sum(stages) + N_BLOCKS


def test_one_standard_error_of_a_scorer(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="r2", rule="one_se"
    ).fit(X, y)
    best = model.path_.argmax()
    assert model.best_iter_ < best
    before = model.path_[: model.best_iter_]
    assert (before < model.path_[model.best_iter_]).all()


def test_results_have_a_row_for_every_criterion_computed(data):
    X, y = data
    inner = IterativeRidge(0.0, risk=True, loo=True, cv=3)
    grid = {"alpha": [0.0, 10.0]}
    model = TrajectoryEarlyStoppingCV(inner, criterion="r2", param_grid=grid)
    results = model.fit(X, y).results_
    assert results["criterion"] == ["r2", "risk", "loo", "cv"] * 2
    assert results["loss"] == ["r2", *["squared error"] * 3] * 2
    assert [params["alpha"] for params in results["params"]] == [0.0] * 4 + [10.0] * 4
    assert all(len(column) == 8 for column in results.values())
    for alpha, first in ((0.0, 0), (10.0, 4)):
        fitted = clone(inner).set_params(alpha=alpha).fit(X, y)
        for row, name in enumerate(("risk", "loo", "cv"), start=first + 1):
            path = getattr(fitted, f"{name}_path_")
            assert results["best_iter"][row] == path.argmin()
            assert results["best_score"][row] == pytest.approx(path.min())
    assert pd.DataFrame(results).shape == (8, 15)


OF_ONE_CLASS = ["average_precision", "f1", "precision", "recall", "jaccard"]


@pytest.mark.filterwarnings("ignore:.* is ill-defined")
@pytest.mark.parametrize("labels", [("no", "yes"), ("yes", "zero")])
@pytest.mark.parametrize("criterion", [*OF_ONE_CLASS, "neg_brier_score", "f1_macro"])
def test_of_two_strings_the_second_is_positive(criterion, labels, rng):
    """The oracle: the same rows with labels 0 and 1, and scikit-learn's own metric."""
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] + rng.standard_normal(80) > 0.8).astype(int)
    model = TrajectoryLogisticRegression(max_iter=8)
    model = TrajectoryEarlyStoppingCV(model, criterion=criterion, cv=4)
    expected = clone(model).fit(X, y)
    found = model.fit(X, np.array(labels)[y])
    np.testing.assert_allclose(found.path_, expected.path_, rtol=1e-12)
    assert found.best_score_se_ == pytest.approx(expected.best_score_se_, rel=1e-9)
    if criterion == "average_precision":
        probabilities = found.held_out_prediction_[:, 1]
        score = average_precision_score(y == 1, probabilities)
        assert found.best_score_ == pytest.approx(score, rel=1e-12)


def test_in_a_blend_and_with_a_label_of_the_user(rng):
    X = rng.standard_normal((80, 3))
    y = np.where(X[:, 0] + rng.standard_normal(80) > 0.8, "rare", "usual")
    members = [
        ("logistic", TrajectoryLogisticRegression(max_iter=8)),
        ("strong", TrajectoryLogisticRegression(0.01, max_iter=8)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend", cv=4)
    found = model.set_params(criterion="average_precision").fit(X, y)
    of_rows = found.held_out_prediction_
    expected = average_precision_score(y == "usual", of_rows[:, 1])
    assert found.best_score_ == pytest.approx(expected, rel=1e-12)
    scorer = make_scorer(
        average_precision_score, pos_label="rare", response_method="predict_proba"
    )
    found = model.set_params(criterion=scorer).fit(X, y)
    of_rows = found.held_out_prediction_
    expected = average_precision_score(y == "rare", of_rows[:, 0])
    assert found.best_score_ == pytest.approx(expected, rel=1e-12)
