"""The estimators pass scikit-learn's battery."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("jax", reason="needs skacv[jax]")
pytest.importorskip("optax", reason="needs skacv[jax]")

from skacv.jax import OptaxClassifier, OptaxRegressor


@parametrize_with_checks([OptaxRegressor(), OptaxClassifier()])
def test_sklearn_compatible(estimator, check):
    check(estimator)
