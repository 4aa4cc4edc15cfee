"""The memory matrix of every family beside leave-one-out, on Gaussian rows."""

import numpy as np
import pytest

from skacv import TrajectoryClassifier, TrajectoryRegressor
from skacv.optim.losses import (
    Expectile,
    Huber,
    NegativeBinomial,
    SmoothedQuantile,
    Tweedie,
)

N_ROWS, N_FEATURES, N_SAMPLES = 300, 100, 6
REGRESSION = {
    "squared_error": "squared_error",
    "huber": Huber(0.7),
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": Tweedie(1.4),
    "negative_binomial": NegativeBinomial(0.5),
    "quantile": SmoothedQuantile(0.3, 0.5),
    "expectile": Expectile(0.3),
}


def target_of(name, predictor, rng):
    if name in ("poisson", "negative_binomial"):
        return rng.poisson(np.exp(predictor + 1)).astype(float)
    if name in ("gamma", "tweedie"):
        return rng.gamma(2.0, np.exp(predictor) / 2) + 0.01
    if name == "log":
        return predictor + rng.logistic(size=N_ROWS) > 0
    return predictor + rng.standard_normal(N_ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*REGRESSION, "log"])
def test_both_are_within_two_percent_on_average(name):
    """Iterates are up to twice as bad on new rows as on their own."""
    ratios, optimism = [], []
    for seed in range(N_SAMPLES):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((N_ROWS, N_FEATURES))
        predictor = X @ rng.standard_normal(N_FEATURES) * 0.7 / np.sqrt(N_FEATURES)
        y = target_of(name, predictor, rng)
        params = {"alpha": 0.3, "penalty": "l2", "max_iter": 25, "tol": 0}
        if name == "log":
            model = TrajectoryClassifier(**params)
        else:
            model = TrajectoryRegressor(loss=REGRESSION[name], **params)
        model.set_params(risk="exact", loo=True).fit(X, y)
        ratios.append(model.risk_path_ / model.loo_path_)
        optimism.append(model.loo_path_[-1] / model.train_path_[-1])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.02)
    assert np.mean(optimism) > 1.2
