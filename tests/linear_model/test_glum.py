"""Elastic nets of losses with a log link against those of glum 3.4.1.

``python -m tests.linear_model.test_glum`` prints the numbers, where glum is installed.
"""

import numpy as np
import pytest

from skacv import TrajectoryRegressor
from skacv.optim.losses import Gamma, NegativeBinomial, Tweedie
from skacv.optim.penalties import ElasticNet

ALPHA = 0.05
# By the name of a loss and the share of l1: coefficients, and the intercept.
GLUM = {
    ("gamma", 0.5): [
        0.634633176,
        -0.451971291,
        0.0,
        0.093869337,
        -0.065769381,
        -0.00426027,
        1.168496371,
    ],
    ("gamma", 1.0): [
        0.603634251,
        -0.409754659,
        0.0,
        0.052632984,
        -0.013527138,
        0.0,
        1.180361192,
    ],
    ("tweedie 1.5", 0.5): [
        0.361727449,
        -0.330170181,
        -0.059002148,
        0.046902312,
        -0.00061893,
        -0.116213913,
        1.010264949,
    ],
    ("tweedie 1.5", 1.0): [
        0.330409753,
        -0.298859808,
        -0.027051956,
        0.026991076,
        0.0,
        -0.092380913,
        1.031099627,
    ],
    ("negative binomial", 0.5): [
        0.586427575,
        -0.39018248,
        0.0,
        0.06838445,
        -0.037053415,
        -0.014651462,
        1.232389937,
    ],
    ("negative binomial", 1.0): [
        0.564089985,
        -0.35995076,
        0.0,
        0.038930104,
        0.0,
        0.0,
        1.241920502,
    ],
}
LOSSES = {
    "gamma": (Gamma(), "gamma"),
    "tweedie 1.5": (Tweedie(1.5), "tweedie (1.5)"),
    "negative binomial": (NegativeBinomial(0.5), "negative.binomial (0.5)"),
}
L1_RATIOS = (0.5, 1.0)


def drawn(name):
    """The same in every version of NumPy: rows, targets and weights."""
    rows, columns = np.arange(1, 61)[:, None], np.arange(1, 7)
    X = np.sin(1.7 * rows * columns + rows**2 / 7)
    y = np.exp(0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.7 * np.cos(3.1 * rows[:, 0]) + 1)
    if name == "tweedie 1.5":
        y[::4] = 0
    if name == "negative binomial":
        y = np.round(y)
    return X, y, 1 + 0.5 * np.sin(rows[:, 0])


def by_glum(name, l1_ratio):
    from glum import GeneralizedLinearRegressor

    X, y, weights = drawn(name)
    family = LOSSES[name][1]
    model = GeneralizedLinearRegressor(
        family=family, link="log", alpha=ALPHA, l1_ratio=l1_ratio, gradient_tol=1e-12
    )
    model.set_params(max_iter=10_000)
    model.fit(X, y, sample_weight=weights)
    return [*model.coef_, model.intercept_]


@pytest.mark.parametrize(("name", "l1_ratio"), GLUM)
def test_elastic_net_is_that_of_glum(name, l1_ratio):
    X, y, weights = drawn(name)
    penalty = ElasticNet(1.0, l1_ratio)
    model = TrajectoryRegressor(
        ALPHA, loss=LOSSES[name][0], penalty=penalty, max_iter=20_000, tol=1e-13
    )
    model.set_params(loo=False, risk=False)
    model.fit(X, y, sample_weight=weights)
    found = [*model.coef_, model.intercept_]
    expected = GLUM[name, l1_ratio]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(np.array(found) == 0, np.array(expected) == 0)


if __name__ == "__main__":
    for name in LOSSES:
        for l1_ratio in L1_RATIOS:
            numbers = [round(float(value), 9) for value in by_glum(name, l1_ratio)]
            print(f"    ({name!r}, {l1_ratio}): {numbers},")
