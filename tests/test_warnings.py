"""Warnings name the line that a user has written, whatever called fit in between."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    approximate_loo,
)


def of_other_data(X, y):
    model = TrajectoryLasso(0.1, max_iter=5, warm_start=True).fit(X, y)
    return lambda: model.fit(X, y[::-1])


def of_separated_classes(X, y):
    model = TrajectoryLogisticRegression(np.inf, max_iter=200)
    return lambda: model.fit(X, X[:, 0] > 0)


def uneven(X, y):
    """Few long rows that the fit follows closely: their leverage is beyond doubt."""
    X = X * np.where(np.arange(len(X)) % 6, 1, 5)[:, None]
    return X, X.sum(axis=1) + y


def of_uneven_rows(X, y):
    model = IterativeRidge(0.1, risk_row_scales=False, max_iter=30)
    return lambda: model.fit(*uneven(X, y))


def in_a_pipeline(X, y):
    inner = IterativeRidge(0.1, risk_row_scales=False, max_iter=30)
    model = make_pipeline("passthrough", inner)
    return lambda: model.fit(*uneven(X, y))


def in_a_search(X, y):
    inner = IterativeRidge(risk_row_scales=False, max_iter=30)
    model = GridSearchCV(inner, {"alpha": [0.1]}, cv=2)
    return lambda: model.fit(*uneven(X, y))


def in_a_stopped_run(X, y):
    inner = IterativeRidge(0.1, risk_row_scales=False, max_iter=30)
    model = TrajectoryEarlyStoppingCV(inner, criterion="risk")
    return lambda: model.fit(*uneven(X, y))


def of_a_model_that_has_not_converged(X, y):
    model = Ridge(solver="lsqr", max_iter=1, tol=1.0).fit(X, y)
    return lambda: approximate_loo(model, X, y + 10 * X[:, 0])


def of_leverages(X, y):
    model = Ridge(1e-3).fit(X[:40], y[:40])
    return lambda: approximate_loo(model, X[:40], y[:40], method="ij")


CASES = [
    of_other_data,
    of_separated_classes,
    of_uneven_rows,
    in_a_pipeline,
    in_a_search,
    in_a_stopped_run,
    of_a_model_that_has_not_converged,
    of_leverages,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_warnings_name_the_line_of_the_caller(case, rng):
    X = rng.standard_normal((60, 30))
    y = X[:, 0] + rng.standard_normal(60)
    call = case(X, y)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert found
    assert {warning.filename for warning in found} == {__file__}
