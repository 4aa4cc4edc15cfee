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


def expected_failures(estimator):
    """As of scikit-learn's own estimators by stochastic gradient descent."""
    if estimator.batch_size is None:
        return {}
    reason = "batches of repeated rows are not those of weighted rows"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator, check):
    check(estimator)
