"""Estimators that record their trajectory: all of the package, and wrong ones."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso

from skacv import IterativeRidge
from skacv.model_selection import RecordsTrajectory
from skacv.testing import check_iterative_estimator
from tests.test_fitted_state import MODELS, drawn

RECORDING = [
    name for name, model in MODELS.items() if isinstance(model, RecordsTrajectory)
]
# With these a run has four updates or more.
SETTINGS = {
    "group lasso": {"alpha": 0.1},
    "regressor": {"alpha": 0.1},
    "kernel": {"patience": None},
    "kernel, labels": {"patience": None},
    "staged rounds": {"estimator__n_rounds": 4},
}
# A row of weight two is not two rows there, as check_iterative_estimator says.
COUNTS_ROWS = (
    "eigenpro",
    "kernel",
    "kernel, labels",
    *filter(lambda name: name.startswith("staged"), MODELS),
)


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse")
@pytest.mark.parametrize("name", RECORDING)
def test_an_estimator_is_what_it_says(name):
    model, X, y, _ = drawn(name)
    model.set_params(**SETTINGS.get(name, {}))
    check_iterative_estimator(model, X, y, repeats=name not in COUNTS_ROWS)


def test_the_estimator_of_the_documentation(class_of_page):
    check_iterative_estimator(class_of_page("NestedLeastSquares")())


class Ridge(IterativeRidge):
    """The right one, from which those below differ in one respect."""


class NoSelf(Ridge):
    def fit(self, X, y, **params):
        super().fit(X, y, **params)


class ChangesParameters(Ridge):
    def fit(self, X, y, **params):
        super().fit(X, y, **params)
        self.max_iter += 1
        return self


class PredictsUnfitted(Ridge):
    def predict(self, X):
        return super().predict(X) if hasattr(self, "record_") else np.zeros(len(X))


class Drawing(Ridge):
    def begin(self, X, y, *args, **params):
        y = y + np.random.default_rng().standard_normal(len(y))
        return super().begin(X, y, *args, **params)


def with_estimates(change):
    """A class whose records have estimates that are changed."""

    class Changed(Ridge):
        def take(self, record):
            estimates = {
                name: change(estimate) for name, estimate in record.estimates.items()
            }
            return super().take(record.with_estimates(estimates))

    return Changed


Shortened = with_estimates(lambda held: replace(held, path=held.path[1:]))
Undefined = with_estimates(lambda held: replace(held, path=held.path * np.nan))
NegativeErrors = with_estimates(lambda held: replace(held, se_path=-1 - held.se_path))
Scaled = with_estimates(lambda held: replace(held, path=1.1 * held.path))
Reversed = with_estimates(
    lambda held: (
        held if held.target is None else replace(held, target=held.target[::-1].copy())
    )
)
FewRows = with_estimates(
    lambda held: (
        held
        if held.prediction is None
        else replace(held, prediction=np.asarray(held.prediction)[:, 1:])
    )
)


class OtherIterate(Ridge):
    def at_iteration(self, t):
        return super().at_iteration(max(t - 1, 0))


class MovedByLooking(Ridge):
    def at_iteration(self, t):
        stopped = super().at_iteration(t)
        self.record_ = self.record_.at(1)
        return stopped


class AnyIterate(Ridge):
    def at_iteration(self, t):
        return super().at_iteration(min(t, self.n_iter_))


class Unordered(Ridge):
    def recorded_iterations(self):
        return super().recorded_iterations()[::-1]


class OtherStages(Ridge):
    def staged_predict(self, X):
        return reversed(list(super().staged_predict(X)))


class Touched(Ridge):
    def begin(self, *args, **params):
        self.touched_ = True
        return super().begin(*args, **params)


def with_run(change):
    """A class whose runs go on otherwise."""

    class Changed(Ridge):
        def begin(self, *args, **params):
            run = super().begin(*args, **params)
            go_on = run.go_on
            run.go_on = lambda n=None, progress=None: change(go_on, n)
            return run

    return Changed


Overshooting = with_run(lambda go_on, n: go_on(None if n is None else n + 1))
NeverComplete = with_run(lambda go_on, n: go_on(n) and n is None)


class OtherInParts(Ridge):
    """The first part of a run has been on other targets."""

    def take(self, record):
        if record.n_iter == self.max_iter and hasattr(self, "record_"):
            record = replace(record, train_path=record.train_path + 1)
        return super().take(record)


class NotPickled(Ridge):
    def __reduce__(self):
        return clone, (IterativeRidge(),), {"record_": self.record_.at(0)}

    def __copy__(self):
        other = type(self)()
        vars(other).update(vars(self))
        return other


class DropsIterate(Ridge):
    def drop_record(self, intervals=True):
        return self.at_iteration(0).drop_record_of_this()

    def drop_record_of_this(self):
        return super().drop_record()


class IgnoresWeights(Ridge):
    def begin(self, X, y, sample_weight=None, **params):
        return super().begin(X, y, **params)


class WeightsOfOne(Ridge):
    def begin(self, X, y, sample_weight=None, **params):
        y = y if sample_weight is None else y + X[:, 0]
        return super().begin(X, y, sample_weight, **params)


class GoesOnElsewhere(Ridge):
    def begin(self, X, y, *args, **params):
        y = y + X[:, 0] if self.warm_start and hasattr(self, "record_") else y
        return super().begin(X, y, *args, **params)


RUN = {"alpha": 1.0, "solver": "gd", "max_iter": 6, "cv": 3, "loo": True}


def test_what_they_differ_from_is_right():
    check_iterative_estimator(Ridge(**RUN))


@pytest.mark.filterwarnings("ignore:warm_start=True with other data")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NoSelf, "must return the estimator"),
        (ChangesParameters, "changes parameters"),
        (PredictsUnfitted, "before it has been fitted"),
        (Drawing, "another model when it is fitted once more"),
        (Shortened, "must have 7 finite numbers"),
        (Undefined, "must have 7 finite numbers"),
        (NegativeErrors, "must not be negative"),
        (Scaled, "not the mean loss"),
        (Reversed, "Targets of the estimate"),
        (FewRows, "must be of 7 iterates and 60 rows"),
        (OtherIterate, "must be a model at this iterate"),
        (MovedByLooking, "after its iterates have been looked at"),
        (AnyIterate, "for an iterate that is not there"),
        (Unordered, "must be numbers of iterates in order"),
        (OtherStages, "staged_predict is not what"),
        (Touched, "must not change the estimator"),
        (Overshooting, "where it was asked for 3"),
        (NeverComplete, "must return True once the run is complete"),
        (OtherInParts, "in parts is not the run at once"),
        (NotPickled, "after it has been pickled"),
        (DropsIterate, "after drop_record"),
        (IgnoresWeights, "with so many copies of each row"),
        (WeightsOfOne, "weights of one is not"),
        (GoesOnElsewhere, "does not go on where its last fit has ended"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_estimator_that_is_wrong_in_one_respect(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_iterative_estimator(kind(**RUN))


def test_weights_that_are_not_repeats_may_be_declared():
    check_iterative_estimator(IgnoresWeights(**RUN), repeats=False)


def test_estimators_of_other_kinds():
    with pytest.raises(AssertionError, match="must derive from"):
        check_iterative_estimator(Lasso())
    with pytest.raises(AssertionError, match="with four or more"):
        check_iterative_estimator(Ridge(**{**RUN, "max_iter": 2}))
