"""scikit-learn's own battery, on every estimator."""

import pytest
import scipy
from sklearn.base import is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TableEncoder,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)

pytestmark = pytest.mark.usefixtures("few_trees")

# Few iterations, as scikit-learn's battery has for its own: what it checks does not
# depend on their number.
FEW = {"max_iter": 20}
# One of every class; what they do otherwise with other parameters is below.
ESTIMATORS = [
    TrajectoryLasso(),
    TrajectoryElasticNet(),
    TrajectoryGroupLasso(groups=2, **FEW),
    TrajectoryRegressor(**FEW),
    TrajectoryClassifier(**FEW),
    IterativeRidge(**FEW),
    TrajectoryLogisticRegression(**FEW),
    TrajectoryLinearSVC(**FEW),
    TrajectoryHuberRegressor(**FEW),
    TrajectoryPoissonRegressor(**FEW),
    TrajectoryGammaRegressor(**FEW),
    TrajectoryTweedieRegressor(**FEW),
    TrajectoryQuantileRegressor(**FEW),
    KernelEigenProRegressor(),
    KernelEigenProClassifier(),
    RecursiveFeatureMachineRegressor(n_rounds=1),
    RecursiveFeatureMachineClassifier(n_rounds=1),
    SelfStoppingRegressor(
        [
            ("lasso", TrajectoryLasso("path", max_iter=2)),
            ("ridge", IterativeRidge(0.0, **FEW)),
        ]
    ),
    # Classes of very uneven weight need more iterations than a few.
    SelfStoppingClassifier([("logistic", TrajectoryLogisticRegression())]),
    TrajectoryEarlyStoppingCV(HistGradientBoostingRegressor(**FEW)),
    SelfStoppingQuantileRegressor(HistGradientBoostingRegressor(**FEW)),
    Staged(HistGradientBoostingClassifier(max_iter=3), cv=2),
    TableEncoder(),
]

# Other paths of the same classes: updates, batches, criteria, members. A loss or a
# number of iterates alone makes no difference to what the battery checks.
OTHERS = [
    TrajectoryRegressor(penalty="l2", schedule="newton", max_iter=3),
    TrajectoryRegressor(loss="huber", penalty="elasticnet", **FEW),
    TrajectoryRegressor(loss="poisson", penalty=None, schedule="gd", **FEW),
    TrajectoryClassifier(
        loss="squared_hinge", penalty="l1", schedule="heavy_ball", **FEW
    ),
    TrajectoryLogisticRegression(solver="newton", max_iter=5),
    TrajectoryLogisticRegression(solver="sgd", **FEW),
    # A default tol is a few roundings: arrays of another library would end a run
    # elsewhere.
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=8, tol=0, **FEW),
    KernelEigenProRegressor(kernel="laplacian", batch_size=8, n_components=0, **FEW),
    TrajectoryEarlyStoppingCV(
        [
            ("logistic", TrajectoryLogisticRegression(**FEW)),
            ("svm", TrajectoryLinearSVC(**FEW)),
        ],
        criterion="accuracy",
    ),
    TrajectoryEarlyStoppingCV(IterativeRidge(**FEW), rule="one_se"),
    TrajectoryEarlyStoppingCV(
        KernelEigenProClassifier(gamma="scale", random_state=0, **FEW),
        criterion="accuracy",
    ),
    TrajectoryEarlyStoppingCV(
        TrajectoryElasticNet(**FEW), param_grid={"alpha": [0.01, 0.1]}
    ),
    TableEncoder("codes"),
    # As they come.
    SelfStoppingRegressor(),
    SelfStoppingClassifier(),
    TrajectoryEarlyStoppingCV(HistGradientBoostingClassifier(max_iter=20)),
    Staged(HistGradientBoostingRegressor(max_iter=5)),
    Staged(RandomForestClassifier(5, random_state=0)),
]


def expected_failures(estimator):
    """Checks that no estimator of its kind passes, and those that cannot be made."""
    return {
        **without_dispatch(),
        **of_weights(estimator),
        **of_scores(estimator),
        **of_labels(estimator),
    }


def without_dispatch():
    """Older versions of SciPy do not take arrays of other namespaces."""
    if parse_version(scipy.__version__) >= parse_version("1.14"):
        return {}
    return {"check_array_api_input": "SciPy before 1.14 does not dispatch on arrays"}


def of_labels(estimator):
    """As of scikit-learn's forests, if they gave an array and no list of arrays."""
    if not isinstance(estimator, Staged) or not is_classifier(estimator):
        return {}
    reason = "the probability of a label is zero where no tree has it in a leaf"
    return {"check_classifiers_multilabel_output_format_predict_proba": reason}


def of_scores(estimator):
    """As of scikit-learn's searches, whose scorers are passed no weights."""
    inner = getattr(estimator, "estimator", None)
    if getattr(estimator, "criterion", None) != "accuracy" or hasattr(inner, "kernel"):
        return {}
    reason = "the accuracy that chooses counts rows, whatever their weights"
    return {"check_class_weight_classifiers": reason}


# Its choices for repeated and for weighted rows happen to be the same.
EXACT = "KernelEigenProClassifier()"


def of_weights(estimator):
    """As of scikit-learn's own estimators by stochastic gradient descent, and trees."""
    inner = getattr(estimator, "estimator", None)
    trees = HistGradientBoostingRegressor | HistGradientBoostingClassifier
    if isinstance(inner, trees):
        # They take no sparse data.
        reason = "folds of repeated rows are not those of weighted rows"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if isinstance(estimator, Staged):
        reason = "leaves and samples of trees count rows, whatever their weights"
    elif hasattr(estimator, "kernel") and str(estimator) != EXACT:
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


# Few iterations are too few for some of the data; missing targets are cast by
# scikit-learn before it refuses them.
@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_sklearn_compatible_with_other_parameters(estimator, check):
    check(estimator)
