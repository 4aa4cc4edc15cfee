"""``best_params_`` name what the kept model has: a fit of the peer with them is it."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from tests.runs import stopped_at


def flatness(estimator, X, y):
    """A scorer that prefers the start, whose predictions are all alike."""
    return -np.ptp(getattr(estimator, "decision_function", estimator.predict)(X))


EXACT = {"solver": "newton", "max_iter": 1}
# Of their "path", the alpha (or C) at which the start is a solution, or none.
STARTS = {
    "ridge": (IterativeRidge("path", **EXACT), False),
    "ridge, values": (IterativeRidge([3.0, 1.0], **EXACT), False),
    "ridge, steps": (IterativeRidge("path", max_iter=3), False),
    "kernel": (KernelEigenProRegressor(alpha="path", gamma=0.1, max_iter=3), False),
    "logistic": (TrajectoryLogisticRegression("path", max_iter=3), False),
    "poisson": (TrajectoryPoissonRegressor("path", max_iter=3), False),
    "lasso": (TrajectoryLasso("path", max_iter=3), True),
    "elastic net": (TrajectoryElasticNet("path", max_iter=3), True),
    "lasso, values": (TrajectoryLasso([0.01, 0.001], max_iter=3), False),
    "lasso, a free column": (
        TrajectoryLasso("path", penalty_weights=[0, 1, 1, 1], max_iter=3),
        False,
    ),
}


@pytest.mark.parametrize("case", STARTS)
def test_no_strength_is_named_where_none_was_used(case, rng):
    estimator, is_solution = STARTS[case]
    X = rng.standard_normal((40, 4))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    model = TrajectoryEarlyStoppingCV(estimator, criterion=flatness, cv=3).fit(X, y)
    assert model.best_iter_ == 0
    assert ("alpha" in model.best_params_) == is_solution
    assert "C" not in model.best_params_
    assert model.results_["params"][0] == model.best_params_
    kept = vars(model.estimator_)
    assert not np.any(kept.get("coef_", kept.get("dual_coef_")))
    if case == "lasso":
        peer = Lasso(**model.best_params_).fit(X, y)
        np.testing.assert_array_equal(peer.coef_, model.coef_)
        assert peer.intercept_ == pytest.approx(model.intercept_)


@pytest.mark.parametrize("t", [1, 2, 20, 41])
def test_every_other_iterate_of_an_exact_path_is_the_peer_with_its_alpha(t, rng):
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    model = stopped_at(t, IterativeRidge("path", **EXACT), X, y)
    assert model.best_iter_ == t
    peer = Ridge(**model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-6)


def test_a_member_that_is_kept_at_its_start(rng):
    """In the table of a blend, and in the one of leave-one-out beside folds."""
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    members = [("ridge", IterativeRidge("path", loo=True, **EXACT))]
    members += [("other", IterativeRidge([1.0, 0.5], **EXACT))]
    model = TrajectoryEarlyStoppingCV(members, rule="blend").fit(X, y)
    for name, params, t in zip(
        *(model.results_[key] for key in ("member", "params", "best_iter"))
    ):
        assert ("alpha" in params) == (t > 0), name
