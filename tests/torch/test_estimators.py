"""The estimators pass scikit-learn's battery."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch", reason="needs skacv[torch]")

from skacv.torch import TorchClassifier, TorchRegressor

ESTIMATORS = [
    TorchRegressor(),
    TorchClassifier(),
    TorchClassifier(batch_size=16, cv=2),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)
