"""Elastic nets of every family against those of R's glmnet."""

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from tests.r import read_results, read_rows

ROWS, RESULTS = read_rows("glmnet"), read_results("glmnet")
X = np.column_stack([ROWS[f"x{column}"] for column in range(1, 6)])
MODELS = {
    "gaussian": TrajectoryElasticNet(),
    "binomial": TrajectoryLogisticRegression(),
    "poisson": TrajectoryPoissonRegressor(),
    "gamma": TrajectoryGammaRegressor(),
}


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("l1_ratio", [0.5, 1])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_coefficients_and_deviances_are_those_of_glmnet(family, l1_ratio, is_weighted):
    weights = ROWS["weight"] if is_weighted else np.ones(len(X))
    strength, params = {"alpha": 0.05}, {}
    if family == "binomial":
        strength = {"C": 1 / (0.05 * weights.sum())}
    if family == "poisson":
        # The mean loss is of a unit of exposure here, in R of a row.
        strength = {"alpha": 0.05 * weights.sum() / (weights @ ROWS["exposure"])}
        params = {"offset": np.log(ROWS["exposure"])}
    model = clone(MODELS[family]).set_params(
        l1_ratio=l1_ratio, max_iter=20_000, tol=1e-13, loo=False, risk=False, **strength
    )
    model.fit(X, ROWS[family], sample_weight=weights, **params)
    name = f"{family} {l1_ratio} {'weighted' if is_weighted else 'plain'}"
    coef = np.append(model.intercept_, model.coef_)
    np.testing.assert_allclose(coef, RESULTS[f"{name} coef"], atol=1e-6)
    # Half the deviance is minimised, and for squares the deviance is reported.
    loss = model.train_path_[-1] * (0.5 if family == "gaussian" else 1)
    if family == "poisson":
        loss *= weights @ ROWS["exposure"] / weights.sum()
    np.testing.assert_allclose(2 * loss, RESULTS[f"{name} deviance"], rtol=1e-6)
