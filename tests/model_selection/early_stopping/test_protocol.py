"""Estimators of other classes: what they need, by shape or by inheritance."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import LeaveOneOut, cross_val_score

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
from skacv.model_selection import RecordsTrajectory
from tests.cases import covering
from tests.model_selection.cases import NestedLeastSquares

# What every class has to write, as docs/extending.md says.
WRITTEN = "fit", "predict", "at_iteration"


class Boxed(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """An IterativeRidge of which only what is asked of an estimator can be seen."""

    def __init__(self, loo="auto", cv=None):
        self.loo = loo
        self.cv = cv

    def _ridge(self):
        ridge = IterativeRidge(0.0, max_iter=50, risk=False, loo=self.loo, cv=self.cv)
        return getattr(self, "ridge_", ridge)

    def fit(self, X, y):
        return self._show(self._ridge().fit(X, y))

    def fit_up_to(self, n_updates, X, y):
        ridge = self._ridge()
        is_whole = ridge.fit_up_to(n_updates, X, y)
        self._show(ridge)
        return is_whole

    def predict(self, X):
        return self.ridge_.predict(X)

    def recorded_iterations(self):
        return self.ridge_.recorded_iterations()

    def at_iteration(self, t):
        return clone(self)._show(self.ridge_.at_iteration(t))

    def _show(self, ridge):
        self.ridge_, self.n_iter_ = ridge, ridge.n_iter_
        for estimate in ("loo", "cv"):
            for kind in ("path", "se_path", "prediction_path", "indices"):
                name = f"{estimate}_{kind}_"
                if hasattr(ridge, name):
                    setattr(self, name, getattr(ridge, name))
        return self


@pytest.mark.parametrize("patience", [None, 4])
@pytest.mark.parametrize("criterion", ["auto", "loo", "cv", "r2"])
def test_estimators_need_what_they_are_asked_for_alone(criterion, patience, data):
    X, y = data
    settings = {"criterion": criterion, "patience": patience}
    boxed = TrajectoryEarlyStoppingCV(Boxed(), param_grid={"cv": [3, 4]}, **settings)
    ridge = IterativeRidge(0.0, max_iter=50, risk=False)
    whole = TrajectoryEarlyStoppingCV(ridge, param_grid={"cv": [3, 4]}, **settings)
    boxed.fit(X, y)
    whole.fit(X, y)
    np.testing.assert_array_equal(boxed.path_, whole.path_)
    np.testing.assert_array_equal(boxed.predict(X), whole.predict(X))
    assert boxed.best_params_ == whole.best_params_


@pytest.mark.parametrize("missing", WRITTEN)
def test_estimators_that_lack_a_method_are_refused(missing, data):
    own = {name: vars(Boxed)[name] for name in WRITTEN if name != missing}
    lacking = type("Lacking", (RegressorMixin, BaseEstimator), own)()
    assert not isinstance(lacking, RecordsTrajectory)
    sentence = f"an estimator that records its traj.*trees. Lacking has no {missing} "
    with pytest.raises(ValueError, match=sentence) as found:
        TrajectoryEarlyStoppingCV(lacking).fit(*data)
    assert " _" not in str(found.value)  # names of hooks are private


def test_a_refusal_names_what_every_class_has_to_write(data):
    with pytest.raises(ValueError, match=r"Lasso has no at_iteration \(see"):
        TrajectoryEarlyStoppingCV(Lasso()).fit(*data)


@covering(criterion=["auto", "loo", "r2"], loo=["auto", True], patience=[None, 3])
def test_a_class_that_derives_from_the_protocol(criterion, loo, patience, data):
    X, y = data[0][:, :8], data[1]
    model = TrajectoryEarlyStoppingCV(
        NestedLeastSquares(loo), criterion=criterion, patience=patience
    )
    model.fit(X, y)
    splits = LeaveOneOut()
    costs = [
        -cross_val_score(
            LinearRegression(fit_intercept=False),
            X[:, :t],
            y,
            cv=splits,
            scoring="neg_mean_squared_error",
        ).mean()
        for t in range(1, 9)
    ]
    path = (1 - model.path_) * y.var() if criterion == "r2" else model.path_
    np.testing.assert_allclose(path[1:], costs)
    assert model.best_iter_ == 1 + np.argmin(costs)
    assert model.best_params_ == {}
    best = LinearRegression(fit_intercept=False).fit(X[:, : model.best_iter_], y)
    expected = best.predict(X[:, : model.best_iter_])
    np.testing.assert_allclose(model.predict(X), expected)


def test_parameters_of_estimators_without_a_criterion(data):
    """One that computes none of them says so, whatever it lacks."""
    X, y = data

    class Silent(Boxed):
        def __init__(self):
            self.loo, self.cv = False, None

    for criterion in ("auto", "loo", "risk", "cv", "r2"):
        model = TrajectoryEarlyStoppingCV(Silent(), criterion=criterion)
        with pytest.raises(ValueError, match="Silent does not have") as caught:
            model.fit(X, y)
        assert ("memory matrix" in str(caught.value)) == (criterion == "risk")
