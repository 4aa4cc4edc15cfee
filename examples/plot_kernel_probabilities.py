"""
Probabilities of a kernel machine that stops itself
===================================================

Kernel logistic regression without a penalty is fitted to three data sets that ship with
scikit-learn: whether a diabetes progresses by more than the median (10 features, a
noisy question), breast cancer (30 features, hardly any noise), and the digits (ten
classes, 64 pixels). Half of the rows are for training; of the digits, a quarter. Five
folds of the one run choose the kernel's ``gamma`` and the iterate with the smallest log
loss, and end the run.

The table shows the log loss on the test rows, for the chosen iterate and for the last
iterate of a run that is not stopped. They are compared with a support vector
classifier, tuned by five folds over six values of ``gamma`` and of ``C`` and then
calibrated by five folds; with logistic regression, tuned by its log loss on five folds;
and, with two classes, with a Gaussian process whose kernel has the largest marginal
likelihood.

The default loss of the kernel machine, least squares on coded labels, gives
probabilities as well: the softmax of its decisions times ``probability_scale_``, the
number with which the held-out decisions of the five folds are most likely.

The right panels are reliability curves. Of the rows to which a model gives a class with
probability 0.7, seven in ten should belong to that class. They show the test rows of
all splits.

* **Diabetes.** Without stopping, the model becomes far too confident. The chosen
  iterate has a lower log loss than the support vector classifier. Logistic regression
  and the Gaussian process are slightly better still.
* **Breast cancer.** The log loss of the three other models is lower than that of the
  chosen iterate, though they misclassify about as many rows.
* **Digits.** There is nothing to stop: the last iterate is as good as the chosen one.
  Both have a lower log loss than the support vector classifier, which gets more labels
  right.

Least squares is as good as the log loss on the diabetes data, and better on the others:
on the breast cancer data no model is better, and on the digits it has the lowest log
loss of all.

Run ``python examples/plot_kernel_probabilities.py --output DIR`` to write the figure.
"""

import warnings
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from matplotlib.ticker import LogLocator, NullLocator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from skacv import KernelEigenProClassifier, TrajectoryEarlyStoppingCV

STOPPED, LAST = "stopped by five folds", "the last iterate"
LEAST_SQUARES = "least squares, stopped"
SVC_NAME = "SVC, tuned and calibrated"
COLORS = {
    STOPPED: "#D55E00",
    LAST: "black",
    LEAST_SQUARES: "#CC79A7",
    SVC_NAME: "#0072B2",
}
MARKERS = {STOPPED: "o", LAST: "X", LEAST_SQUARES: "D", SVC_NAME: "s"}
FEWEST = 10  # test rows in a bin of a reliability curve
# Temperature scaling came with scikit-learn 1.8; one parameter for all classes.
HAS_TEMPERATURE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
CALIBRATION = "temperature" if HAS_TEMPERATURE else "sigmoid"


def split(X, y, train_size, seed):
    """Training rows, test rows, and the labels of both; columns are standardised."""
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=train_size, random_state=seed, stratify=y
    )
    scale = StandardScaler().fit(X)
    return scale.transform(X), scale.transform(X_test), y, y_test


def diabetes(n_rows, seed):
    X, y = load_diabetes(return_X_y=True)
    progresses = (y > np.median(y)).astype(int)
    return split(X[:n_rows], progresses[:n_rows], 0.5, seed)


def breast_cancer(n_rows, seed):
    X, y = load_breast_cancer(return_X_y=True)
    return split(X[:n_rows], y[:n_rows], 0.5, seed)


def digits(n_rows, seed):
    X, y = load_digits(return_X_y=True)
    return split(X[:n_rows], y[:n_rows], 0.25, seed)


def stopped_machine(max_iter, loss="log"):
    """The kernel and the iterate are chosen by five folds."""
    machine = KernelEigenProClassifier(loss=loss, max_iter=max_iter, random_state=0)
    return TrajectoryEarlyStoppingCV(machine, criterion="cv")


def long_run(stopped, max_iter):
    """The run that has been stopped, with the same kernel, to its end."""
    machine = stopped.estimator_
    return KernelEigenProClassifier(
        loss="log",
        gamma=machine.gamma_,
        max_iter=max_iter,
        patience=None,
        loo=False,
        random_state=0,
    )


class TunedSVC:
    """``gamma`` and ``C`` by accuracy on five folds, then calibrated by five folds."""

    def __init__(self, n_values):
        self.n_values = n_values

    def fit(self, X, y):
        scale = 1 / (X.shape[1] * X.var())
        grid = {
            "gamma": scale * np.geomspace(1 / 64, 16, self.n_values),
            "C": np.geomspace(0.1, 1e4, self.n_values),
        }
        tuned = GridSearchCV(SVC(), grid).fit(X, y).best_estimator_
        self.model_ = CalibratedClassifierCV(tuned, method=CALIBRATION).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def opponents(n_values, n_classes):
    """Models by name."""
    yield SVC_NAME, TunedSVC(n_values)
    logistic = LogisticRegressionCV(
        Cs=10, cv=5, scoring="neg_log_loss", max_iter=10_000
    )
    yield "LogisticRegressionCV", logistic
    if n_classes == 2:
        kernel = ConstantKernel() * RBF(10.0)
        yield "GaussianProcessClassifier", GaussianProcessClassifier(kernel)


def timed_fit(model, X, y):
    begun = perf_counter()
    with warnings.catch_warnings():
        # Attributes of LogisticRegressionCV are about to change shape.
        warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
        model.fit(X, y)
    return perf_counter() - begun


def compared(data, seed, n_rows, max_iter, n_values):
    """Probabilities of the test rows and seconds by name, the truth, and both runs."""
    X, X_test, y, y_test = data(n_rows, seed)
    stopped = stopped_machine(max_iter)
    seconds = timed_fit(stopped, X, y)
    results = {STOPPED: (stopped.predict_proba(X_test), seconds)}
    run = long_run(stopped, max_iter)
    seconds = timed_fit(run, X, y)
    results[LAST] = run.predict_proba(X_test), seconds
    least_squares = stopped_machine(max_iter, "squared_error")
    seconds = timed_fit(least_squares, X, y)
    results[LEAST_SQUARES] = least_squares.predict_proba(X_test), seconds
    for name, model in opponents(n_values, len(stopped.classes_)):
        seconds = timed_fit(model, X, y)
        results[name] = model.predict_proba(X_test), seconds
    return results, (X_test, y_test), (stopped, run)


def print_table(title, splits, n_iter):
    """Means over the splits."""
    chosen = [stopped.best_iter_ for *_, (stopped, _) in splits]
    print(f"\n{title}: iterates {', '.join(map(str, chosen))} out of {n_iter}")
    print(f"{'':30}{'log loss':>10}{'worst':>8}{'wrong':>9}{'seconds':>9}")
    for name in splits[0][0]:
        rows = [(*results[name], y_test) for results, (_, y_test), _ in splits]
        losses = [log_loss(y_test, p) for p, _, y_test in rows]
        wrong = np.mean([np.mean(p.argmax(axis=1) != y) for p, _, y in rows])
        seconds = np.mean([seconds for _, seconds, _ in rows])
        print(
            f"{name:30}{np.mean(losses):10.4f}{np.max(losses):8.3f}"
            f"{100 * wrong:8.2f}%{seconds:9.2f}"
        )


def draw_path(ax, title, splits):
    """Log loss along the run of one split, and what two others come to."""
    results, (X_test, y_test), (stopped, run) = splits[0]
    test = [log_loss(y_test, p) for p in run.staged_predict_proba(X_test)]
    best, last = stopped.best_iter_, run.n_iter_
    folds = {"color": COLORS[STOPPED], "dashes": (5, 2)}
    for path, label, style in (
        (run.train_path_, "training rows", {"color": "#666666", "linestyle": ":"}),
        (test, "test rows", {"color": COLORS[LAST]}),
        (stopped.path_, "folds, until stopped", folds),
    ):
        # Iterate 0 is not on a log scale.
        ax.loglog(np.arange(1, len(path)), path[1:], label=label, **style)
    for name, t in ((STOPPED, best), (LAST, last)):
        ax.plot(
            t,
            test[t],
            MARKERS[name],
            color=COLORS[name],
            markersize=8,
            linestyle="none",
            label=name,
        )
    for name in (LEAST_SQUARES, SVC_NAME):
        loss = log_loss(y_test, results[name][0])
        ax.axhline(loss, color=COLORS[name], linewidth=1, label=name)
    ax.set(xlabel="iteration", ylabel="log loss", xlim=(1, 1.2 * last))
    ax.set_ylim(0.6 * min(test), 1.2 * max(test))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    ax.yaxis.set_minor_locator(NullLocator())
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.set_title(f"{title}: iterate {best}", loc="left")


def reliability(splits, name, n_bins=6):
    """Mean probability and share of the class in bins of probabilities.

    With two classes the probabilities are those of the second, otherwise those of all.
    Bins of few rows are left out.
    """
    given, happened = [], []
    for results, (_, y_test), _ in splits:
        probability = results[name][0]
        is_class = y_test[:, None] == np.arange(probability.shape[1])
        shown = slice(1, None) if probability.shape[1] == 2 else slice(None)
        given.append(probability[:, shown].ravel())
        happened.append(is_class[:, shown].ravel())
    given, happened = np.concatenate(given), np.concatenate(happened)
    bins = np.minimum((given * n_bins).astype(int), n_bins - 1)
    n_rows = np.bincount(bins, minlength=n_bins)
    kept = n_rows >= FEWEST
    sums = [np.bincount(bins, values, n_bins) for values in (given, happened)]
    return *(total[kept] / n_rows[kept] for total in sums), n_rows[kept]


def draw_reliability(ax, splits):
    """Reliability curves, with standard errors over rows."""
    ax.plot([0, 1], [0, 1], color="0.75", linewidth=1)
    for name, color in COLORS.items():
        given, share, n_rows = reliability(splits, name)
        ax.errorbar(
            given,
            share,
            np.sqrt(share * (1 - share) / n_rows),
            marker=MARKERS[name],
            markersize=6,
            color=color,
            linewidth=1,
            capsize=2,
        )
    ax.set(xlabel="probability given to a class", ylabel="share of rows in the class")


DATA = {"Diabetes": diabetes, "Breast cancer": breast_cancer, "Digits": digits}


@threadpool_limits.wrap(limits=1)
def main(n_rows=None, max_iter=600, n_values=6, n_splits=5, output=None):
    """Print the tables and draw the figure."""
    figure, axes = plt.subplots(3, 2, figsize=(7, 9.6), constrained_layout=True)
    print(f"Test rows, means over {n_splits} splits, one thread")
    for (title, data), (left, right) in zip(DATA.items(), axes):
        splits = [
            compared(data, seed, n_rows, max_iter, n_values) for seed in range(n_splits)
        ]
        print_table(title, splits, max_iter)
        draw_path(left, title, splits)
        draw_reliability(right, splits)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    lines = axes[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=3, frameon=False)
    if output is not None:
        path = Path(output) / "kernel_probabilities.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
