"""Scales that a kernel machine learns, against brute force and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from skacv import (
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
)
from skacv.risk.held_out_rows import drawn_units
from tests.internals import RADIAL_KERNELS, KernelRidge, ShiftedInverse
from tests.runs import arrays_held_by

SEED = {"random_state": 0}


def rows(rng, n=80, p=4):
    X = rng.standard_normal((n, p))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(n)


def staged_predictions(machine, X, y, new):
    """Predictions by every round."""
    return list(Staged(machine).fit(X, y).staged_predict(new))


def n_centers_of(model):
    """Rows of the columns that a machine keeps, for each of its rounds."""
    return {len(each) for each in arrays_held_by(model) if each.shape[1:] == (4,)}


def ridge_by_hand(kernel, X, centers, y, weights, strength):
    """Kernel ridge regression by its normal equations: dual coefficients, intercept."""
    # The minimum of sum w (y - K a - b)^2 + strength a' k(C, C) a.
    K, gram = kernel(X, centers), kernel(centers, centers)
    design = np.column_stack([K, np.ones(len(X))])
    penalty = np.zeros((len(centers) + 1,) * 2)
    penalty[:-1, :-1] = strength * gram
    shares = weights / weights.sum()
    normal = design.T @ (shares[:, None] * design) + penalty
    solution = np.linalg.lstsq(normal, design.T @ (shares * y), rcond=None)[0]
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("kernel", RADIAL_KERNELS)
@pytest.mark.parametrize("n_centers", [12, 40])
def test_least_error_of_rows_left_out_by_refits(kernel, n_centers, rng, set_limits):
    X, y = rows(rng, 40, 3)
    weights, index = rng.uniform(0.5, 2, 40), np.arange(n_centers)
    k, new = RADIAL_KERNELS[kernel](0.3), rng.standard_normal((7, 3))
    data, errors, strengths = (X, y[:, None], weights, index), [], (1e-3, 1e-1)
    for strength in strengths:
        set_limits(STRENGTHS=[strength])
        fit = KernelRidge.of(k, *data)
        left_out = []
        for i in range(40):
            # The others have the shares, and the penalty, that they had before.
            others = np.delete(np.arange(40), i)
            total = weights[others].sum() / weights.sum()
            dual, intercept = ridge_by_hand(
                k, X[others], X[index], y[others], weights[others], strength / total
            )
            left_out.append(y[i] - k(X[[i]], X[index])[0] @ dual - intercept)
        errors.append(np.average(np.square(left_out), weights=weights))
        assert_allclose(fit.loo_error, errors[-1], rtol=1e-5)
        dual, intercept = ridge_by_hand(k, X, X[index], y, weights, strength)
        expected = k(new, X[index]) @ dual + intercept
        assert_allclose(fit.predict(new)[:, 0], expected, rtol=1e-4, atol=1e-5)
    set_limits(STRENGTHS=strengths)
    assert_allclose(KernelRidge.of(k, *data).loo_error, min(errors), rtol=1e-5)


def test_values_are_within_half_a_range_beyond_the_targets(rng, set_limits):
    X, weights = rng.standard_normal((40, 2)), rng.uniform(0.5, 2, 40)
    target = 10 * X + rng.standard_normal((40, 2))
    X[0] = 9.0  # where the trend of the others is far from its own targets
    k, index, strength = RADIAL_KERNELS["rbf"](0.002), np.arange(1, 4), 1e-5
    set_limits(STRENGTHS=[strength])
    fit = KernelRidge.of(k, X, target, weights, index)
    margin = 0.5 * np.ptp(target, axis=0)
    lowest, highest = target.min(axis=0) - margin, target.max(axis=0) + margin

    def predicted(others, new):
        total = weights[others].sum() / weights.sum()
        columns = []
        for y in target.T:
            dual, intercept = ridge_by_hand(
                k, X[others], X[index], y[others], weights[others], strength / total
            )
            columns.append(k(new, X[index]) @ dual + intercept)
        return np.stack(columns, axis=1)

    left_out = [predicted(np.delete(np.arange(40), i), X[[i]])[0] for i in range(40)]
    assert np.all(left_out[0] > highest)
    expected = np.clip(left_out, lowest, highest)
    assert_allclose(fit.loo_prediction, expected, rtol=1e-4, atol=1e-4)
    error = np.average(np.sum((target - expected) ** 2, axis=1), weights=weights)
    assert_allclose(fit.loo_error, error, rtol=1e-4)
    new = np.array([[0.0, 1.0], [-9.0, -9.0]])
    expected = predicted(np.arange(40), new)
    assert np.all(expected[1] < lowest)
    expected = np.clip(expected, lowest, highest)
    assert_allclose(fit.predict(new), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", RADIAL_KERNELS)
def test_derivatives_by_finite_differences(kernel, rng):
    X, y = rows(rng, 50, 3)
    target = np.column_stack([y, np.sin(X[:, 2])])
    fit = KernelRidge.of(
        RADIAL_KERNELS[kernel](0.4), X, target, np.ones(50), np.arange(20)
    )
    new, weights = rng.standard_normal((30, 3)), rng.uniform(0, 2, 30)
    expected = []
    for column in np.eye(3):
        step = 1e-5 * column
        slopes = (fit.predict(new + step) - fit.predict(new - step)) / 2e-5
        expected.append(np.average(np.mean(slopes**2, axis=1), weights=weights))
    result = fit.mean_squared_derivatives(new, fit.centers, weights, new)
    assert_allclose(result, expected, rtol=1e-5)


def test_scales_are_those_of_the_definition(rng):
    X, y = rows(rng)
    X *= [1, 10, 0.1, 3]
    model = RecursiveFeatureMachineRegressor(n_rounds=2, **SEED).fit(X, y)
    first = clone(model).set_params(n_rounds=1).fit(X, y)
    assert_array_equal(model.scales_[0], 1)
    # Derivatives along standardised columns, by differences of predictions.
    derivatives = []
    for column, spread in zip(np.eye(4), X.std(axis=0)):
        step = 1e-5 * spread * column
        slopes = (first.predict(X + step) - first.predict(X - step)) / 2e-5
        derivatives.append(np.mean(slopes**2))
    derivatives = np.array(derivatives)
    scales = np.sqrt(derivatives / derivatives.max() + 0.001)
    assert_allclose(model.scales_[1], scales, rtol=1e-4)
    assert_allclose(
        first.feature_importances_, derivatives / derivatives.sum(), rtol=1e-4
    )


@pytest.mark.parametrize("n_centers", [None, 20])
def test_more_columns_than_rows(n_centers, rng):
    """Kernels of rows in another basis are the same: as of rows with columns of 0."""
    X, y = rows(rng, 40, 60)
    wide = RecursiveFeatureMachineRegressor("rbf", n_centers=n_centers, **SEED)
    narrow = clone(wide)
    weights = rng.uniform(0.5, 2, 40)
    narrow.fit(sparse.csr_array(X), y, weights)  # sparse rows stay as they are
    wide.fit(X, y, weights)
    assert_allclose(wide.loo_errors_, narrow.loo_errors_, rtol=1e-6)
    assert_allclose(wide.scales_, narrow.scales_, rtol=1e-6, atol=1e-9)
    assert_allclose(wide.predict(X[:5]), narrow.predict(X[:5]), rtol=1e-6)


def test_columns_that_matter_are_learned(rng):
    X, y = rows(rng, 300, 15)
    model = RecursiveFeatureMachineRegressor(**SEED).fit(X, y)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    new = rng.standard_normal((300, 15))
    truth = new[:, 0] * new[:, 1]
    errors = [np.mean((f - truth) ** 2) for f in staged_predictions(model, X, y, new)]
    assert errors[2] < 0.5 * errors[0]


@pytest.mark.parametrize("n_centers", [None, 30])
def test_rows_of_weight_zero_and_the_unit_of_weights_do_not_count(n_centers, rng):
    X, y = rows(rng, 60)
    times = rng.integers(0, 3, 60)
    model = RecursiveFeatureMachineRegressor(
        "rbf", n_rounds=2, n_centers=n_centers, **SEED
    )
    weighted = clone(model).fit(X, y, sample_weight=times)
    without = clone(model).fit(X[times > 0], y[times > 0], times[times > 0])
    assert_allclose(weighted.predict(X), without.predict(X))
    scaled = clone(model).fit(X, y, sample_weight=5.0 * times)
    assert_allclose(scaled.predict(X), weighted.predict(X), rtol=1e-6)


def test_units_of_columns_do_not_matter(rng):
    X, y = rows(rng)
    model = RecursiveFeatureMachineRegressor(**SEED)
    expected = clone(model).fit(X, y).predict(X)
    scaled = 3 * X + [0, 1, -5, 100]
    assert_allclose(clone(model).fit(scaled, y).predict(scaled), expected, rtol=1e-5)


def test_sparse_columns_are_those_of_an_array_that_is_not_centred(rng):
    X, y = rows(rng)
    X[rng.uniform(size=X.shape) < 0.5] = 0
    model = RecursiveFeatureMachineRegressor(**SEED)
    dense = clone(model).fit(X, y)
    result = clone(model).fit(sparse.csr_matrix(X), y)
    # Distances do not depend on the mean.
    assert_allclose(result.predict(sparse.csr_matrix(X)), dense.predict(X), rtol=1e-6)


def test_several_targets_share_scales(rng):
    X, y = rows(rng)
    Y = np.column_stack([y, X[:, 2]])
    model = RecursiveFeatureMachineRegressor(**SEED).fit(X, Y)
    assert model.predict(X[:5]).shape == (5, 2)
    assert model.feature_importances_.argmin() == 3
    twice = RecursiveFeatureMachineRegressor(**SEED).fit(X, np.column_stack([y, y]))
    once = RecursiveFeatureMachineRegressor(**SEED).fit(X, y)
    assert_allclose(twice.predict(X)[:, 1], once.predict(X), rtol=1e-6)


def test_two_classes_are_signs(rng):
    X, y = rows(rng)
    label = np.where(y > 0, "yes", "no")
    model = RecursiveFeatureMachineClassifier(**SEED).fit(X, label)
    signs = RecursiveFeatureMachineRegressor(**SEED).fit(X, np.where(y > 0, 1.0, -1.0))
    assert_allclose(model.loo_errors_, signs.loo_errors_)
    decision = model.decision_function(X)
    assert_allclose(decision, signs.predict(X))
    assert_array_equal(model.predict(X), np.where(decision > 0, "yes", "no"))
    factors = logit(model.predict_proba(X)[:, 1]) / decision
    assert factors.min() > 0
    assert_allclose(factors, factors[0])
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_classes_are_weighed(rng):
    X, y = load_iris(return_X_y=True)
    by_class = RecursiveFeatureMachineClassifier(
        class_weight={0: 1, 1: 2, 2: 5}, **SEED
    ).fit(X, y)
    by_row = RecursiveFeatureMachineClassifier(**SEED)
    by_row.fit(X, y, sample_weight=np.array([1.0, 2.0, 5.0])[y])
    assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X))
    assert log_loss(y, by_row.predict_proba(X)) < 0.2


def test_further_rounds_go_on(rng):
    X, y = rows(rng)
    whole = RecursiveFeatureMachineRegressor(n_rounds=4, **SEED).fit(X, y)
    model = RecursiveFeatureMachineRegressor(n_rounds=2, warm_start=True, **SEED)
    model.fit(X, y)
    kept = model.scales_
    model.set_params(n_rounds=4).fit(X, y)
    assert_array_equal(model.scales_[:2], kept)
    assert_array_equal(model.loo_errors_, whole.loo_errors_)
    with pytest.raises(ValueError, match="continues with 4 columns"):
        model.fit(X[:, :2], y)
    assert model.n_features_in_ == 4


def test_a_constant_target_keeps_the_scales(rng):
    X, _ = rows(rng)
    model = RecursiveFeatureMachineRegressor(**SEED).fit(X, np.full(80, 3.0))
    assert_array_equal(model.scales_, 1)
    assert_array_equal(model.feature_importances_, 0)
    assert_allclose(model.predict(X), 3)


def test_folds_learn_scales_of_their_own(rng):
    X, y = rows(rng, 100)
    machine = RecursiveFeatureMachineRegressor(**SEED)
    folds = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    stopped = TrajectoryEarlyStoppingCV(machine, cv=folds, patience=None).fit(X, y)
    errors = []
    for fitted, held_out in folds:
        copy = clone(machine).fit(X[fitted], y[fitted])
        stages = staged_predictions(copy, X[fitted], y[fitted], X[held_out])
        errors.append([np.mean((f - y[held_out]) ** 2) for f in stages])
    path = stopped.path_
    assert_allclose(path[1:], np.mean(errors, axis=0), rtol=1e-6)
    assert stopped.best_iter_ == 1 + np.argmin(np.mean(errors, axis=0))
    best = staged_predictions(machine, X, y, X)[stopped.best_iter_ - 1]
    assert_allclose(stopped.predict(X), best)


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_of_where_the_last_round_is_the_best(rng):
    X, y = rows(rng, 200, 10)
    machine = RecursiveFeatureMachineRegressor(n_rounds=2, **SEED)
    assert TrajectoryEarlyStoppingCV(machine, random_state=0).fit(X, y).best_iter_ == 2


@pytest.mark.parametrize("bad", [{"kernel": "polynomial"}, {"n_rounds": 0}])
def test_bad_parameters(bad, rng):
    X, y = rows(rng)
    with pytest.raises(ValueError, match=next(iter(bad))):
        RecursiveFeatureMachineRegressor(**bad).fit(X, y)


def test_one_class_is_refused(rng):
    X, _ = rows(rng)
    with pytest.raises(ValueError, match="at least two classes"):
        RecursiveFeatureMachineClassifier().fit(X, np.ones(80, int))


def test_enough_rows_are_fitted(rng):
    """200 for each centre, with labels and weights of their own."""
    X, y = rows(rng, 3000, 3)
    labels = (y > 0).astype(int)
    few = RecursiveFeatureMachineClassifier(n_centers=5, n_rounds=1, **SEED)
    few.fit(X, labels)
    drawn, _ = drawn_units(3000, None, 1000)
    others = np.setdiff1d(np.arange(3000), drawn)
    noise = labels.copy()
    noise[others] = 1 - labels[others]
    same = clone(few).fit(X, noise)
    assert_allclose(same.decision_function(X), few.decision_function(X), rtol=1e-9)
    in_sample = log_loss(labels[drawn], few.predict_proba(X[drawn]))
    assert log_loss(labels, few.predict_proba(X)) < 1.1 * in_sample


def test_few_strengths_are_tried(rng, set_limits, note_calls):
    """Where they were best before, and in later rounds no stronger ones."""
    set_limits(ROWS_TO_COMPARE=100)
    X, y = rows(rng, 200)
    tried = note_calls(ShiftedInverse, "__init__", size=lambda *args: len(args[1]))
    model = RecursiveFeatureMachineRegressor("rbf", n_rounds=4, warm_start=True, **SEED)
    model.set_params(n_rounds=2).fit(X, y)
    assert tried.count(200) <= 8
    assert tried.count(100) <= 30
    tried.clear()
    model.set_params(n_rounds=4).fit(X, y)
    assert tried.count(100) == 0
    assert tried.count(200) <= 6
    strengths = [one.ridge.strength for one in model._rounds[1:]]
    assert_array_equal(strengths, np.sort(strengths)[::-1])


def test_more_rows_than_can_all_be_centers_are_no_worse(rng, set_limits):
    """Rounds that learn scales have few; where a test shows it, few are enough."""
    set_limits(MOST_CENTERS=200, FEWEST_CENTERS=50)
    X, errors = rng.standard_normal((2400, 4)), []
    y, test = np.sin(2 * X).sum(axis=1), slice(400, None)
    for n_rows in (200, 400):
        model = RecursiveFeatureMachineRegressor("rbf", **SEED)
        model.fit(X[:n_rows], y[:n_rows])
        errors.append(np.mean((model.predict(X[test]) - y[test]) ** 2))
        assert n_centers_of(model) == ({200} if n_rows == 200 else {50, 200})
    assert errors[1] < errors[0]
    # Fewer are enough for a linear function, but of many rows all take little more.
    linear = X @ np.ones(4) + rng.standard_normal(2400)
    for n_rows, n_centers in ((1600, 50), (2400, 200)):
        model.fit(X[:n_rows], linear[:n_rows])
        assert len(model._rounds[-1].ridge.centers) == n_centers


@pytest.mark.parametrize(
    "other",
    [
        lambda X, y: (X, -y),
        lambda X, y: (X, np.roll(y, 1)),
        lambda X, y: (100 * X, y),
        lambda X, y: (X[:, ::-1], y),
        lambda X, y: (X[1:], y[1:]),
    ],
)
def test_other_data_begin_anew(other, rng):
    X, y = rows(rng)
    model = RecursiveFeatureMachineRegressor("rbf", n_rounds=1, warm_start=True, **SEED)
    model.fit(X, y)
    data = other(X, y)
    with pytest.warns(UserWarning, match="other data or parameters"):
        model.set_params(n_rounds=2).fit(*data)
    expected = clone(model).set_params(warm_start=False).fit(*data)
    assert_array_equal(model.predict(X), expected.predict(X))


def test_other_parameters_begin_anew_and_fewer_rounds_are_the_first(rng):
    X, y = rows(rng)
    model = RecursiveFeatureMachineRegressor("rbf", warm_start=True, **SEED).fit(X, y)
    model.set_params(n_rounds=1).fit(X, y)  # without a warning
    expected = RecursiveFeatureMachineRegressor("rbf", n_rounds=1, **SEED).fit(X, y)
    assert model.n_iter_ == 1
    assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.warns(UserWarning, match="other data or parameters"):
        model.set_params(kernel="laplacian", n_rounds=2).fit(X, y)
    expected = clone(model).set_params(warm_start=False).fit(X, y)
    assert_array_equal(model.predict(X), expected.predict(X))
    classes = RecursiveFeatureMachineClassifier("rbf", n_rounds=1, warm_start=True)
    classes.fit(X, y > 0)
    with pytest.warns(UserWarning, match="other data or parameters"):
        classes.fit(X, np.digitize(y, [-0.5, 0.5]))
    assert classes.predict_proba(X).shape == (len(y), 3)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_classes_are_checked(weight, rng):
    X, y = rows(rng)
    model = RecursiveFeatureMachineClassifier(class_weight={0: weight, 1: 1.0})
    with pytest.raises(ValueError, match="class_weight must be finite and nonneg"):
        model.fit(X, (y > 0).astype(int))


def test_a_class_of_weight_zero_is_as_without_its_rows(rng):
    X, y = rows(rng)
    label = np.digitize(y, [-0.5, 0.5])
    weights = {0: 1.0, 1: 0.0, 2: 1.0}
    model = RecursiveFeatureMachineClassifier("rbf", class_weight=weights, **SEED)
    found = model.fit(X, label).predict_proba(X)
    kept = label != 1
    expected = clone(model).set_params(class_weight=None).fit(X[kept], label[kept] > 1)
    assert_allclose(found.sum(axis=1), 1)
    ranks = [
        np.argsort(np.argsort(p))
        for p in (found[:, 2] / found[:, 0], expected.predict_proba(X)[:, 1])
    ]
    assert_array_equal(*ranks)


@pytest.mark.parametrize("scale", [1e-200, 1e160])
@pytest.mark.parametrize(
    "estimator",
    [RecursiveFeatureMachineRegressor(), KernelEigenProRegressor(gamma=0.3)],
    ids=["feature machine", "kernel"],
)
def test_targets_whose_squares_are_no_numbers_are_refused(estimator, scale, rng):
    X, y = rows(rng)
    with pytest.raises(ValueError, match="divide y by a number"):
        clone(estimator).fit(X, scale * y)


def test_targets_of_single_precision_have_its_limits(rng):
    X = rng.standard_normal((3001, 2))
    with pytest.raises(ValueError, match="divide y by a number"):
        KernelEigenProRegressor(gamma=0.3, max_iter=1).fit(X, 1e-35 * X[:, 0])
