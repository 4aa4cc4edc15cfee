"""New rows whose squares overflow are far from all others: kernels are zero there."""

import numpy as np
import pytest

from skacv import KernelEigenProRegressor, RecursiveFeatureMachineRegressor

MODELS = {
    "eigenpro": KernelEigenProRegressor(max_iter=5, loo=False, random_state=0),
    "features": RecursiveFeatureMachineRegressor(n_rounds=2, random_state=0),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["laplacian", "matern", "rbf", "cauchy"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_as_large_as_floating_point_allows(name, kernel, rng):
    X = rng.standard_normal((40, 3))
    model = MODELS[name].set_params(kernel=kernel).fit(X, X[:, 0] + 3)
    new = X[:5].copy()
    new[0, 0], new[1, 1], new[2] = 1e308, -1e308, 1e300
    far = X[:1] + 1e60  # far enough, and no square overflows
    predicted, expected = model.predict(new), model.predict(np.r_[far, X[3:5]])
    np.testing.assert_allclose(predicted[:3], expected[0], rtol=1e-9)
    np.testing.assert_allclose(predicted[3:], expected[1:], rtol=1e-12)
