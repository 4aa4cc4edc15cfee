"""Weights of a blend are means over bootstrap draws of the held-out rows."""

import numpy as np
import pytest

from .cases import (
    FOLDS,
    alone,
    blended,
    by_loops,
    by_supports,
    folds_of,
    held_out_errors,
    in_order,
    mean_over_folds,
    members,
)


def mean_over_draws(errors, rows, units=None, n_draws=25, least=0.05):
    """The mean of the weights of least squared error, by a loop over draws."""
    units = np.arange(len(errors)) if units is None else units
    n_units, rng, weights = units.max() + 1, np.random.RandomState(0), []
    for _ in range(n_draws):
        drawn = rng.randint(n_units, size=n_units)
        copies = np.concatenate([np.flatnonzero(units == unit) for unit in drawn])
        weights.append(by_supports(errors[copies], rows[copies]))
    mean = np.mean(weights, axis=0)
    mean[mean < least] = 0
    return mean / mean.sum()


def weights_of(model):
    return list(model.weights_.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_of_a_loop_over_draws(weighted, data, rng):
    X, y = data
    rows = rng.uniform(0.5, 2, 120) if weighted else np.ones(120)
    weights = {"sample_weight": rows} if weighted else {}
    model = blended(members(), X, y, criterion="cv", cv=FOLDS, **weights)
    errors = held_out_errors(alone(members(), X, y, **weights), y)
    expected = mean_over_draws(errors, rows)
    np.testing.assert_allclose(weights_of(model), expected, atol=1e-5)
    fold = folds_of(FOLDS, X, y)
    score, error = mean_over_folds((errors @ expected) ** 2, fold, rows)
    assert model.best_score_ == pytest.approx(score)
    assert model.best_score_se_ == pytest.approx(error)


def test_rows_of_a_group_are_drawn_together(data):
    X, y = data
    groups = np.arange(120) // 6
    model = blended(members(), X, y, criterion="cv", groups=groups)
    splits = model.estimator_.members_["lasso"].cv_indices_
    held_out = [(np.setdiff1d(np.arange(120), part), part) for part in splits]
    errors = held_out_errors(alone(members(), X, y, cv=held_out), y)
    expected = mean_over_draws(errors, np.ones(120), groups)
    np.testing.assert_allclose(weights_of(model), expected, atol=1e-5)


def test_a_small_mean_is_no_weight(data, set_limits):
    X, y = data
    settings = {"criterion": "cv", "cv": FOLDS}
    set_limits(LEAST_MEAN_WEIGHT=0.0)
    whole = np.array(weights_of(blended(members(), X, y, **settings)))
    least = np.sort(whole[whole > 0])[:2].mean()  # between the two smallest
    set_limits(LEAST_MEAN_WEIGHT=least)
    kept = np.where(whole < least, 0, whole)
    model = blended(members(), X, y, **settings)
    np.testing.assert_allclose(weights_of(model), kept / kept.sum())


def test_of_many_rows_they_are_those_of_all(data, set_limits):
    X, y = data
    set_limits(ROWS_OF_DRAWS=9)  # less than two draws for 120
    model = blended(members(), X, y, criterion="cv", cv=FOLDS)
    expected = by_supports(held_out_errors(alone(members(), X, y), y), np.ones(120))
    np.testing.assert_allclose(weights_of(model), expected, atol=1e-6)


def test_the_corrected_score_has_means_over_draws_too(data):
    X, y = data
    model = blended(members(), X, y)
    predictions = [in_order(each) for each in alone(members(), X, y).values()]
    expected = by_loops(
        [(own - y) ** 2 for own in predictions],
        predictions,
        y,
        lambda y, found: (y - found) ** 2,
        lambda found, y: mean_over_draws(found - y[:, None], np.ones(len(y))),
    )
    assert model.best_score_corrected_ == pytest.approx(expected, rel=1e-6)
