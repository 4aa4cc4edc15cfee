"""A run whose model, or a fold, fails or diverges after some stages keeps those."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor

from skacv import Staged, TrajectoryEarlyStoppingCV
from tests.runs import InParts

ROWS, FOLDS = 60, KFold(3)


def of_the_model(X):
    return len(X) == ROWS


def of_a_fold(X):
    return len(X) < ROWS and MARK not in X  # the fold that holds it out


# An entry of the table's middle row.
MARK = 2.5


class Epochs(RegressorMixin, BaseEstimator):
    """Gradient steps, which fail or diverge at one epoch on some rows."""

    def __init__(
        self, max_iter=12, epoch=None, fails_on=None, diverges=False, step=0.1
    ):
        self.max_iter, self.epoch, self.fails_on = max_iter, epoch, fails_on
        self.diverges, self.step = diverges, step

    def partial_fit(self, X, y):
        if not hasattr(self, "coef_"):
            self.coef_, self.t_ = np.zeros(X.shape[1]), 0
        self.t_ += 1
        if self.t_ == self.epoch and self.fails_on(X):
            self.fail()
        self.coef_ = self.coef_ + self.step * X.T @ (y - X @ self.coef_) / len(y)
        return self

    fit = partial_fit

    def fail(self):
        if not self.diverges:
            raise FloatingPointError("weights are not finite")
        self.coef_ = np.full_like(self.coef_, np.nan)

    def predict(self, X):
        return X @ self.coef_


def table(rng):
    X = rng.standard_normal((ROWS, 4))
    X[ROWS // 2, 3] = MARK
    return X, X @ [1.0, 2.0, 0.0, 0.0] + rng.standard_normal(ROWS)


def assert_same_record(found, expected):
    for name in ("train_path_", "cv_path_", "cv_se_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_array_equal(
        found.recorded_iterations(), expected.recorded_iterations()
    )


@pytest.mark.parametrize("diverges", [False, True])
@pytest.mark.parametrize("fails_on", [of_the_model, of_a_fold])
def test_the_run_ends_with_the_stages_before(fails_on, diverges, rng):
    X, y = table(rng)
    broken = Epochs(epoch=7, fails_on=fails_on, diverges=diverges)
    expected = Staged(Epochs(max_iter=6), cv=FOLDS).fit(X, y)
    kind, words = FitFailedWarning, "FloatingPointError: weights are not finite"
    if diverges:
        kind, words = ConvergenceWarning, "diverges"
    with pytest.warns(kind, match=words) as record:
        found = Staged(broken, cv=FOLDS).fit(X, y)
    assert len(record) == 1
    message = str(record[0].message)
    assert "Epochs" in message
    assert ": 6)" in message
    if not diverges:
        where = "fold 2" if fails_on is of_a_fold else "all rows"
        assert where in message
    assert_same_record(found, expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    chosen = TrajectoryEarlyStoppingCV(Epochs(max_iter=6), cv=FOLDS).fit(X, y)
    with pytest.warns(kind, match=words):
        stopped = TrajectoryEarlyStoppingCV(broken, cv=FOLDS).fit(X, y)
    assert stopped.best_iter_ == chosen.best_iter_
    assert stopped.best_score_ == chosen.best_score_
    np.testing.assert_array_equal(stopped.path_, chosen.path_)
    np.testing.assert_array_equal(stopped.predict(X), chosen.predict(X))


def test_in_parts_and_by_output(rng):
    X, y = table(rng)
    y = np.column_stack([y, X[:, 1]])
    several = MultiOutputRegressor(Epochs(max_iter=6))
    expected = Staged(several, cv=FOLDS).fit(X, y)
    failing = Epochs(epoch=7, fails_on=of_the_model)
    broken = Staged(MultiOutputRegressor(failing), cv=FOLDS)
    parts = InParts(broken, X, y)
    assert not parts.go_on(4)
    for _ in range(2):  # it does not go on
        with pytest.warns(FitFailedWarning, match="MultiOutputRegressor"):
            assert parts.go_on(12)
        assert_same_record(broken, expected)


def test_without_a_good_stage_the_error_is_raised(rng):
    X, y = table(rng)
    with pytest.raises(FloatingPointError, match="weights are not finite"):
        Staged(Epochs(epoch=1, fails_on=of_a_fold), cv=FOLDS).fit(X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        MLPRegressor(
            hidden_layer_sizes=(5,),
            solver="sgd",
            learning_rate_init=1.0,
            max_iter=40,
            random_state=0,
        ),
        Epochs(step=30.0, max_iter=400),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_learning_rate_that_is_too_large(estimator, rng):
    X, y = table(rng)
    model = TrajectoryEarlyStoppingCV(estimator, cv=FOLDS, patience=None)
    with pytest.warns((FitFailedWarning, ConvergenceWarning), match="are kept"):
        model.fit(1e3 * X, 1e3 * y)
    assert 1 <= model.best_iter_ <= model.estimator_.n_iter_ < estimator.max_iter
    assert np.isfinite(model.path_).all()
    assert np.isfinite(model.predict(X)).all()


class Drifting(Epochs):
    """Coefficients that are thrown off from one epoch on, or at that epoch alone."""

    def __init__(self, max_iter=20, epoch=None, fails_on=None, step=0.1, goes_on=True):
        super().__init__(max_iter, epoch, fails_on, step=step)
        self.goes_on = goes_on

    def fail(self):
        pass

    def partial_fit(self, X, y):
        super().partial_fit(X, y)
        self.thrown_ = 0.0
        if self.t_ >= self.epoch and self.fails_on(X):
            if self.goes_on or self.t_ == self.epoch:
                self.thrown_ = 10.0
        return self

    fit = partial_fit

    def predict(self, X):
        return super().predict(X) + self.thrown_


def test_a_model_that_diverges_where_folds_do_not_ends_the_run(rng):
    X, y = table(rng)
    broken = Drifting(epoch=8, fails_on=of_the_model)
    expected = Staged(Epochs(max_iter=7), cv=FOLDS).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="diverges on all rows, though not in"):
        found = Staged(broken, cv=FOLDS).fit(X, y)
    assert_same_record(found, expected)
    with pytest.warns(ConvergenceWarning, match="diverges on all rows"):
        stopped = TrajectoryEarlyStoppingCV(broken, cv=FOLDS).fit(X, y)
    assert stopped.best_iter_ <= 7
    np.testing.assert_array_equal(
        stopped.predict(X), expected.at_iteration(stopped.best_iter_).predict(X)
    )


def test_a_run_that_a_callback_has_ended_is_cut_as_well(rng):
    X, y = table(rng)
    run = Staged(Drifting(epoch=8, fails_on=of_the_model), cv=FOLDS).begin(X, y)
    run.go_on(20)
    run.ended_at = 15
    with pytest.warns(ConvergenceWarning, match="diverges on all rows"):
        record = run.end()
    assert record.n_iter == len(record.estimates["cv"].path) - 1 == 7


def test_a_model_that_is_thrown_off_once_goes_on(rng):
    X, y = table(rng)
    broken = Drifting(epoch=3, fails_on=of_the_model, goes_on=False)
    found = Staged(broken, cv=FOLDS).fit(X, y)
    assert found.n_iter_ == 20
    assert found.train_path_[3] > 10 * found.train_path_[4]
