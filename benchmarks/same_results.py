"""Do fits of every kind give the numbers that they gave before a change?

    python -m benchmarks.same_results --write before.npz     # in a checkout of before
    python -m benchmarks.same_results --compare before.npz   # after

Numbers are the public fitted attributes and predictions of some 150 small fits. They
are compared on the same machine: processors round differently. A difference is relative
to the largest value of its attribute.
"""

import argparse
import sys
import warnings
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np
from sklearn import ensemble, linear_model, neural_network
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skacv
from skacv.model_selection import approximate_loo

LARGEST_DIFFERENCE = 1e-12


def data(n, p, seed=0):
    """Rows, numbers and three classes that depend on them, weights and groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    signal = X[:, 0] - X[:, 1] + X[:, 2] * X[:, 0]
    y = signal + 0.5 * rng.standard_normal(n)
    classes = np.digitize(y, [-0.7, 0.7])
    weights, groups = rng.uniform(0.5, 2, n), rng.integers(0, 20, n)
    return X, y, classes, weights, groups


TALL, WIDE, SMALL = data(120, 6), data(40, 90, 1), data(60, 4, 2)


def linear_fits():
    """Linear models: losses x penalties x solvers, containers, folds, weights."""
    lasso, ridge = skacv.TrajectoryLasso, skacv.IterativeRidge
    regressors = {
        "lasso path": lasso("path", max_iter=8),
        "lasso": lasso(0.1, max_iter=40),
        "lasso standardized": lasso(0.1, max_iter=40, standardize=True),
        "elastic net": skacv.TrajectoryElasticNet(0.1, l1_ratio=0.5, max_iter=40),
        "group lasso": skacv.TrajectoryGroupLasso(0.1, groups=2, max_iter=40),
        "ridge": ridge(1.0, max_iter=40),
        "ridge path": ridge("path", solver="newton", max_iter=1),
        "ridge momentum": ridge(0.0, solver="nesterov", max_iter=40),
        "huber": skacv.TrajectoryHuberRegressor(max_iter=40),
        "absolute": skacv.TrajectoryRegressor(
            loss="huber", penalty="l1", alpha=0.05, max_iter=30
        ),
        "mcp": skacv.TrajectoryRegressor(penalty="mcp", alpha=0.1, max_iter=30),
    }
    classifiers = {
        "logistic": skacv.TrajectoryLogisticRegression(max_iter=40),
        "logistic path": skacv.TrajectoryLogisticRegression("path", max_iter=8),
        "svc": skacv.TrajectoryLinearSVC(max_iter=40),
        "general classes": skacv.TrajectoryClassifier(max_iter=30),
    }
    for name, table in product((*regressors, *classifiers), ("tall", "wide")):
        model = {**regressors, **classifiers}[name]
        X, y, classes, weights, _ = TALL if table == "tall" else WIDE
        if name == "group lasso":
            model.set_params(groups=list(np.arange(X.shape[1]) // 2))
        target = classes if is_classifier(model) else y
        yield f"{name}, {table}", partial(model.fit, X, target), X
        yield (
            f"{name}, {table}, weights and folds",
            partial(model.set_params(cv=4).fit, X, target, sample_weight=weights),
            X,
        )
    X, y, _, weights, _ = TALL
    counts = np.random.default_rng(3).poisson(np.exp(X[:, 0] / 2))
    poisson = skacv.TrajectoryPoissonRegressor(max_iter=40)
    yield "poisson", partial(poisson.fit, X, counts), X


def kernel_fits():
    X, y, classes, weights, _ = TALL
    for kernel in ("rbf", "laplacian", "matern"):
        regressor = skacv.KernelEigenProRegressor(
            kernel=kernel, gamma=0.1, max_iter=20, random_state=0
        )
        classifier = skacv.KernelEigenProClassifier(
            kernel=kernel, gamma=0.1, max_iter=20, random_state=0
        )
        yield f"kernel {kernel}", partial(regressor.fit, X, y), X
        yield f"kernel {kernel}, classes", partial(classifier.fit, X, classes), X
        few = skacv.KernelEigenProRegressor(
            kernel=kernel, gamma=0.1, n_centers=30, cv=3, random_state=0
        )
        yield (
            f"kernel {kernel}, centers",
            partial(few.fit, X, y, sample_weight=weights),
            X,
        )
        machine = skacv.RecursiveFeatureMachineRegressor(
            kernel=kernel, n_rounds=2, random_state=0
        )
        yield f"feature machine {kernel}", partial(machine.fit, X, y), X
    machine = skacv.RecursiveFeatureMachineClassifier(n_rounds=2, random_state=0)
    yield "feature machine, classes", partial(machine.fit, X, classes), X
    auto = skacv.KernelEigenProRegressor(kernel="auto", random_state=0)
    yield "kernel auto", partial(auto.fit, X, y), X


def staged_models():
    seeded = {"random_state": 0}
    return {
        "hist": ensemble.HistGradientBoostingRegressor(max_iter=20, **seeded),
        "gradient": ensemble.GradientBoostingRegressor(n_estimators=20, **seeded),
        "forest": ensemble.RandomForestRegressor(15, **seeded),
        "extra": ensemble.ExtraTreesRegressor(15, **seeded),
        "sgd": make_pipeline(
            StandardScaler(), linear_model.SGDRegressor(max_iter=15, **seeded)
        ),
        "network": neural_network.MLPRegressor(
            hidden_layer_sizes=(8,), max_iter=15, **seeded
        ),
        "hist classes": ensemble.HistGradientBoostingClassifier(max_iter=20, **seeded),
        "gradient classes": ensemble.GradientBoostingClassifier(
            n_estimators=20, **seeded
        ),
        "forest classes": ensemble.RandomForestClassifier(15, **seeded),
        "extra classes": ensemble.ExtraTreesClassifier(15, **seeded),
        "sgd classes": linear_model.SGDClassifier(
            loss="log_loss", max_iter=15, **seeded
        ),
        "network classes": neural_network.MLPClassifier((8,), max_iter=15, **seeded),
        "ada classes": ensemble.AdaBoostClassifier(n_estimators=15, **seeded),
    }


def staged_fits():
    X, y, classes, weights, groups = TALL
    for name, model in staged_models().items():
        target = classes if "classes" in name else y
        staged = skacv.Staged(model, cv=4)
        yield f"staged {name}", partial(staged.fit, X, target), X
        stopped = skacv.TrajectoryEarlyStoppingCV(model, random_state=0)
        yield f"stopped {name}", partial(stopped.fit, X, target), X
        grouped = clone(stopped).set_params(cv=GroupKFold(4))
        yield f"grouped {name}", partial(grouped.fit, X, target, groups=groups), X
        if "network" not in name:
            yield (
                f"stopped {name}, weights",
                partial(stopped.fit, X, target, sample_weight=weights),
                X,
            )
    mean = skacv.Staged(staged_models()["hist"], keep="mean", cv=3)
    yield "staged mean", partial(mean.fit, X, y), X


def stopping_fits():
    X, y, classes, weights, _ = TALL
    stop, lasso = skacv.TrajectoryEarlyStoppingCV, skacv.TrajectoryLasso
    path = lasso("path", max_iter=8)
    hist = staged_models()["hist"]
    for criterion in ("auto", "cv", "loo", "risk", "neg_mean_absolute_error"):
        for rule in ("min", "one_se"):
            model = stop(path, criterion=criterion, rule=rule, random_state=0)
            yield f"lasso, {criterion}, {rule}", partial(model.fit, X, y), X
    several = [("lasso", path), ("trees", hist), ("ridge", skacv.IterativeRidge(1.0))]
    for rule in ("min", "blend"):
        model = stop(several, rule=rule, random_state=0)
        yield f"list, {rule}", partial(model.fit, X, y), X
        yield (
            f"list, {rule}, weights",
            partial(model.fit, X, y, sample_weight=weights),
            X,
        )
    for name, cv in (("folds", KFold(3)), ("time", TimeSeriesSplit(3, test_size=20))):
        model = stop(hist, cv=cv, random_state=0)
        yield f"trees, {name}", partial(model.fit, X, y), X
    grid = {"max_depth": [2, 4], "learning_rate": [0.05, 0.2]}
    for search in ("all", "race"):
        model = stop(hist, param_grid=grid, search=search, random_state=0)
        yield f"trees, {search}", partial(model.fit, X, y), X
    balanced = stop(
        skacv.TrajectoryLogisticRegression("path", max_iter=8),
        class_weight="balanced",
        random_state=0,
    )
    yield "balanced classes", partial(balanced.fit, X, classes), X
    X, y, classes, weights, _ = SMALL
    regressor = skacv.SelfStoppingRegressor(random_state=0)
    yield "default", partial(regressor.fit, X, y), X
    yield "default, weights", partial(regressor.fit, X, y, sample_weight=weights), X
    classifier = skacv.SelfStoppingClassifier(random_state=0)
    yield "default classes", partial(classifier.fit, X, classes), X
    yield "default two classes", partial(classifier.fit, X, classes > 0), X
    trees = ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0)
    quantiles = skacv.SelfStoppingQuantileRegressor(trees, levels=(0.1, 0.9))
    yield "quantiles", partial(quantiles.fit, X, y), X
    logistic = linear_model.LogisticRegression().fit(X, classes > 0)
    yield "approximate_loo", partial(approximate_loo, logistic, X, classes > 0), None


def values_of(fitted, X):
    """The numbers that a user can read of a fitted estimator, by name."""
    values, found = {}, {}
    if X is None:  # an ApproximateLOO
        found = vars(fitted)
    for name in dir(fitted):
        if name.endswith("_") and not name.startswith("_"):
            # Attributes that need what this fit has not recorded raise these.
            with suppress(AttributeError, ValueError):
                found[name] = getattr(fitted, name)
    for name in ("predict", "predict_proba", "predict_interval", "predict_set"):
        with suppress(AttributeError, ValueError):
            found[name] = getattr(fitted, name)(X)
    for name, value in found.items():
        if isinstance(value, dict):
            value = list(value.values())
        with suppress(ValueError):  # lists of arrays of several shapes
            value = np.asarray(value)
            if value.dtype.kind in "bifu" and value.size:
                values[name] = value.astype(float)
    return values


def results():
    """Yield the name of every fit, and its numbers or its error."""
    for fits in (linear_fits, kernel_fits, staged_fits, stopping_fits):
        for name, fit, X in fits():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Estimators without a seed draw from NumPy's global generator.
                np.random.seed(0)  # noqa: NPY002
                try:
                    yield name, values_of(fit(), X)
                except Exception as error:
                    yield name, {f"{type(error).__name__}: {error}": np.zeros(1)}


def difference(before, after):
    """The largest difference, relative to the largest value; inf for other shapes."""
    if before.shape != after.shape:
        return np.inf
    if np.array_equal(before, after, equal_nan=True):
        return 0.0
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        return np.inf
    finite = np.isfinite(before)
    scale = np.abs(before[finite]).max(initial=np.finfo(float).tiny)
    return float(np.abs(before - after)[finite].max(initial=0.0) / scale)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write")
    parser.add_argument("--compare")
    parser.add_argument("--only", default="", help="fits whose name has this text")
    args = parser.parse_args()
    stored = dict(np.load(args.compare)) if args.compare else {}
    written, n_fits, n_moved = {}, 0, 0
    for name, values in results():
        if args.only not in name:
            continue
        n_fits += 1
        for attribute, value in values.items():
            key = f"{name}: {attribute}"
            written[key] = value
            if key not in stored:
                continue
            moved_by = difference(stored[key], value)
            if moved_by > LARGEST_DIFFERENCE:
                n_moved += 1
                print(f"{key}: moved by {moved_by:.2g}", flush=True)
    if stored:
        for what, keys in (
            ("new", {*written} - {*stored}),
            ("gone", {*stored} - {*written}),
        ):
            for key in sorted(keys):
                if args.only in key:
                    print(f"{key}: {what}")
    print(f"{n_fits} fits, {len(written)} values, {n_moved} moved")
    if args.write:
        np.savez_compressed(args.write, **written)
    sys.exit(bool(n_moved))


if __name__ == "__main__":
    main()
