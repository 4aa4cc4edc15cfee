"""Are figures of the literature on kernels met, as the examples draw them?"""

import runpy
from functools import cache, partial
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from skacv import KernelEigenProClassifier, TrajectoryEarlyStoppingCV

from ..framework import header, line

EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def example(name):
    """The functions of an example."""
    return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


def computational_reach():
    """Computational reach: a step function on the circle.

    Relative L2 error after so many updates of kernel gradient descent for two
    spectra, and after 100 of EigenPro with 10 directions; figures known beforehand in
    brackets. From the formula, without noise.
    """
    given = {
        "exp(-k^2 / 2)": (0.319, 0.309, 0.259, 0.136),
        "1 / (1 + k^2)": (0.134, 0.042, 0.013, 0.035),
    }
    yield from header("eigenvalues", "1e2", "1e4", "1e6", "EigenPro, 1e2")
    for name, *errors in example("computational_reach")["table"]():
        yield line(name, *(f"{e:.3f} ({k})" for e, k in zip(errors, given[name])))


def batch_sizes():
    """Rows gone through until the training error is 5e-3, by batch size.

    1000 rows, Laplacian kernel; m* is the critical batch size, up to which larger
    batches waste nothing. Known beforehand, on other data: 2.9k, 5.8k, 56k and 336k at
    m = 1, 8, 128 and 800 with m* = 5; with EigenPro, m* = 237, flat to 128.
    """
    sizes = (1, 8, 32, 128, 500, 1000)
    yield from header("method", "m*", *(f"m = {m}" for m in sizes))
    for name, critical, samples in example("batch_size")["table"](1000, sizes, 600):
        yield line(name, f"{critical:.0f}", *(f"{1e-3 * s:.1f}k" for s in samples))


def norms():
    """Norm of functions that fit labels, by rows and label noise.

    Laplacian kernel, two clouds of points; the rows of smaller sets are among those of
    the larger ones. Overfitted: every training label is right. Means over 3 repeats,
    test error in percent in brackets.
    """
    results = example("rkhs_norm")
    yield from header("noise", "rows", *results["KINDS"])
    for noise, n, kinds in results["table"](results["SIZES"], 3, 300):
        cells = [f"{norm:.1f} ({100 * error:.1f})" for norm, error in kinds.values()]
        yield line(noise, n, *cells)


def double_descent():
    """Random-feature double descent, and the same stopped by leave-one-out.

    300 rows, d=5, noise variance .64; median test error over 3 repeats. Known
    beforehand, on other data: a peak of 1e5 at as many features as rows, gone with the
    stop (.69, best iterate .68).
    """
    results = example("double_descent")
    yield from header("features", *results["KINDS"])
    counts = 30, 100, 270, 300, 400, 3000
    for n_features, values in results["table"](300, counts, 300, 3):
        yield line(n_features, *(f"{v:.3g}" for v in values))


def noisy_digits():
    """Digits, a fifth of the training labels drawn anew.

    Gaussian kernel, gamma=.5 for all; test error on clean labels and seconds, means
    over 5 splits. Known beforehand, on one split: stopped 1.0%, last iterate 9.4%,
    KernelRidge 1.6%, SVC 1.8%.
    """
    splits = [
        list(example("noisy_digits")["errors"](None, 300, 10, s)) for s in range(5)
    ]
    yield from header("method", "test error", "its s.e.", "seconds")
    for rows in zip(*splits):
        errors = 100 * np.array([error for _, error, _ in rows])
        seconds = np.mean([s for _, _, s in rows])
        error = errors.std(ddof=1) / np.sqrt(len(errors))
        shown = "" if np.isnan(seconds) else f"{seconds:.2f}"
        yield line(rows[0][0], f"{errors.mean():.2f}%", f"{error:.2f}", shown)


def noisy_probabilities():
    """Probabilities of digits, a fifth of the labels drawn anew.

    Gaussian kernel, gamma=.5 for all, means over 5 splits: test error on clean labels;
    log loss and Brier score on test labels that are drawn anew as often, which the
    probabilities are of; seconds. KernelRidge's are its scores, cut to [.001, 1]; SVC's
    are calibrated on five folds; each tuned by refits on five folds. The last row knows
    every digit and the noise.
    """
    splits = [list(_probabilities(seed)) for seed in range(5)]
    yield from header("method", "test error", "log loss", "Brier score", "seconds")
    for rows in zip(*splits):
        figures = np.mean([row[1:] for row in rows], axis=0)
        error, log_loss, brier, seconds = figures
        shown = "" if np.isnan(seconds) else f"{seconds:.2f}"
        losses = f"{100 * error:.2f}%", f"{log_loss:.3f}", f"{brier:.3f}"
        yield line(rows[0][0], *losses, shown)


def _probabilities(seed, gamma=0.5):
    """Name, error, log loss, Brier score and seconds of each machine, on one split."""
    tools = example("noisy_digits")
    X, y, X_test, y_test = tools["drawn"](None, seed)
    rng = np.random.default_rng(seed + 100)
    anew = rng.random(len(y_test)) < tools["LABEL_NOISE"]
    drawn_anew = np.where(anew, rng.integers(10, size=len(y_test)), y_test)

    def judged(name, scores, seconds):
        p = scores / scores.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(len(p)), drawn_anew]).mean()
        brier = ((p - np.eye(10)[drawn_anew]) ** 2).sum(axis=1).mean()
        return name, np.mean(p.argmax(axis=1) != y_test), loss, brier, seconds

    values = np.geomspace(1e-3, 1e2, 10)
    timed = tools["timed"]
    for loss in ("squared_error", "log"):
        ours = KernelEigenProClassifier(loss=loss, gamma=gamma, random_state=0)
        ours = TrajectoryEarlyStoppingCV(ours, criterion="cv")
        model, seconds = timed(partial(ours.fit, X, y))
        name = f'loss="{loss}", stopped by five folds'
        yield judged(name, model.predict_proba(X_test), seconds)
    ridge = GridSearchCV(KernelRidge(kernel="rbf", gamma=gamma), {"alpha": values})
    ridge, seconds = timed(lambda: ridge.fit(X, np.eye(10)[y]))
    scores = np.clip(ridge.predict(X_test), 1e-3, 1)
    yield judged("KernelRidge, 10 alphas x 5 folds", scores, seconds)
    machine = GridSearchCV(SVC(gamma=gamma), {"C": values})
    machine, seconds = timed(lambda: machine.fit(X, y))
    calibrated = CalibratedClassifierCV(machine.best_estimator_, ensemble=False)
    _, more = timed(lambda: calibrated.fit(X, y))
    name = "SVC, 10 values of C x 5 folds, calibrated"
    yield judged(name, calibrated.predict_proba(X_test), seconds + more)
    noise = tools["LABEL_NOISE"]
    truth = (1 - noise) * np.eye(10)[y_test] + noise / 10
    yield judged("the truth", truth, np.nan)
