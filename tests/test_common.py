"""scikit-learn's own battery, on every estimator."""

import scipy
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)

ESTIMATORS = [
    TrajectoryLasso(),
    TrajectoryLasso(solver="ista"),
    TrajectoryElasticNet(),
    TrajectoryGroupLasso(groups=2),
    TrajectoryRegressor(),
    TrajectoryRegressor(penalty="l2", schedule="newton"),
    TrajectoryRegressor(loss="huber", penalty="elasticnet"),
    TrajectoryRegressor(loss="poisson", penalty=None, schedule="gd"),
    TrajectoryClassifier(),
    TrajectoryClassifier(loss="squared_hinge", penalty="l1", schedule="heavy_ball"),
    TrajectoryClassifier(schedule="newton"),
    IterativeRidge(),
    IterativeRidge(solver="nesterov"),
    IterativeRidge(solver="heavy_ball"),
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(l1_ratio=0.5),
    TrajectoryLogisticRegression(solver="sgd"),
    TrajectoryLogisticRegression(solver="newton"),
    TrajectoryLinearSVC(),
    TrajectoryLinearSVC(loss="smoothed_hinge"),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryPoissonRegressor(solver="newton"),
    IterativeRidge(solver="eigenpro", n_components=2),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
    KernelEigenProRegressor(),
    KernelEigenProRegressor(kernel="laplacian", batch_size=8, n_components=0),
    KernelEigenProClassifier(),
    KernelEigenProClassifier(batch_size=8),
    TrajectoryEarlyStoppingCV(),
    TrajectoryEarlyStoppingCV(task="regression"),
    TrajectoryEarlyStoppingCV(task="classification"),
    TrajectoryEarlyStoppingCV(
        [("lasso", TrajectoryLasso("path")), ("ridge", IterativeRidge(0.0))]
    ),
    TrajectoryEarlyStoppingCV(
        [
            ("logistic", TrajectoryLogisticRegression()),
            ("svm", TrajectoryLinearSVC()),
        ],
        criterion="accuracy",
    ),
    TrajectoryEarlyStoppingCV(IterativeRidge(), rule="one_se"),
    TrajectoryEarlyStoppingCV(TrajectoryRegressor(0.01, loss="huber")),
    TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression()),
    TrajectoryEarlyStoppingCV(TrajectoryLinearSVC(), criterion="accuracy"),
    TrajectoryEarlyStoppingCV(KernelEigenProRegressor(random_state=0)),
    TrajectoryEarlyStoppingCV(
        KernelEigenProClassifier(random_state=0), criterion="accuracy"
    ),
    TrajectoryEarlyStoppingCV(
        TrajectoryElasticNet(), param_grid={"alpha": [0.01, 0.1]}
    ),
]


def expected_failures(estimator):
    """Checks that no estimator of its kind passes, and those that cannot be made."""
    return {**without_dispatch(), **of_weights(estimator)}


def without_dispatch():
    """Older versions of SciPy do not take arrays of other namespaces."""
    if parse_version(scipy.__version__) >= parse_version("1.14"):
        return {}
    return {"check_array_api_input": "SciPy before 1.14 does not dispatch on arrays"}


def of_weights(estimator):
    """As of scikit-learn's own estimators by stochastic gradient descent."""
    if hasattr(estimator, "kernel"):
        # It chooses its iterate by leave-one-out, to which each repetition is a row.
        reason = "leaving out one of repeated rows is not leaving out a weighted row"
    elif getattr(estimator, "solver", None) in ("sgd", "eigenpro"):
        reason = "batches or subsamples of repeated rows are not those of weighted rows"
    else:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator, check):
    check(estimator)
