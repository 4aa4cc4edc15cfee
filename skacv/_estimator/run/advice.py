"""What to use instead of estimators that record no trajectory."""

from ..delegation import samplers_of

# By the name of a class of other packages, the class of skacv to use instead.
INSTEAD = {
    "Lasso": "TrajectoryLasso",
    "LassoCV": "TrajectoryLasso('path')",
    "ElasticNet": "TrajectoryElasticNet",
    "ElasticNetCV": "TrajectoryElasticNet('path')",
    "Ridge": "IterativeRidge",
    "RidgeCV": "IterativeRidge('path')",
    "LinearRegression": "IterativeRidge(0.0)",
    "HuberRegressor": "TrajectoryHuberRegressor",
    "PoissonRegressor": "TrajectoryPoissonRegressor",
    "GammaRegressor": "TrajectoryGammaRegressor",
    "TweedieRegressor": "TrajectoryTweedieRegressor",
    "QuantileRegressor": "TrajectoryQuantileRegressor",
    "LogisticRegression": "TrajectoryLogisticRegression",
    "LogisticRegressionCV": "TrajectoryLogisticRegression('path')",
    "RidgeClassifier": "TrajectoryLogisticRegression",
    "LinearSVC": "TrajectoryLinearSVC",
    "SVC": "KernelEigenProClassifier",
    "SVR": "KernelEigenProRegressor",
    "KernelRidge": "KernelEigenProRegressor",
    "GaussianProcessRegressor": "KernelEigenProRegressor",
    "GaussianProcessClassifier": "KernelEigenProClassifier",
}


def instead_of(estimator, owner, missing):
    """What is wrong with a member of ``owner`` that lacks methods, and what to do."""
    if hasattr(estimator, "named_steps"):
        is_pipeline = "is a pipeline, whose last step is not fitted in stages: "
        if samplers := samplers_of(estimator):
            # Behind a sampler rows would be held out among those that it has made.
            return (
                f"{is_pipeline}rows can be sampled in every fold ({samplers[0][0]!r}) "
                "for one that is, such as boosted trees. For others use class "
                f"weights: class_weight='balanced' of {owner}."
            )
        return f"{is_pipeline}make {owner} the last step of the pipeline instead."
    if isinstance(estimator, type):
        return (
            f"is the class {estimator.__name__}: pass an instance, "
            f"{estimator.__name__}()."
        )
    kind = type(estimator).__name__
    instead = f": use {INSTEAD[kind]} instead" if kind in INSTEAD else ""
    interface = "skacv.model_selection.RecordsTrajectory"
    fault = f"does not derive from {interface}"  # which has all hooks
    if public := [name for name in missing if not name.startswith("_")]:
        fault = f"has no {', '.join(public)} (see {interface})"
    return (
        f"cannot be {kind}, which is not fitted in stages{instead}. It must be an "
        "estimator that records its trajectory, such as those of skacv.linear_model "
        "and skacv.kernel, or be fitted in stages, such as boosted trees. "
        f"{kind} {fault}."
    )
