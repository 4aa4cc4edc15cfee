"""
A logistic regression that stops itself
=======================================

The two data sets ship with scikit-learn: the breast cancer data (benign or malignant,
30 features) and the digits (ten classes, 64 pixels). Half of the rows are for training,
half for testing. Two models choose from one run each:

* "early stopping" uses no penalty. It chooses the iterate, and the run ends when a
  hundred further iterates have not been better.
* "path of C" goes through thirty values of C in one run, with twenty updates at each.
  At the largest values it is far from converged, so the number of updates limits the
  fit as well. It chooses the largest C on both data sets, with a warning.

Iterates are chosen by leave-one-out on the breast cancer data and by five folds on the
digits: by the log loss, or by a score of the held-out decisions, which is the area
under the ROC curve for two classes and the accuracy for ten. They are compared with
``LogisticRegressionCV``, which refits ten values of C to convergence on five folds.

When the log loss chooses, early stopping reaches the lowest log loss on the breast
cancer data, and ``LogisticRegressionCV`` on the digits. All scores are within a percent
of each other. On data this small ``LogisticRegressionCV`` is as fast as the runs, or
faster. Numbers are means over three random splits (geometric means for C), "±" is the
standard error that skacv reports, and all run on one thread.

Run ``python examples/plot_logistic.py --output DIR`` to write the figure.
"""

import warnings
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression

LEAST_C, LARGEST_C = 1e-4, 1e4
COLORS = {"estimate": "#D55E00", "truth": "black", "opponent": "#0072B2"}


class Data(NamedTuple):
    """A data set, and how its models are judged: by ``held_out``, and a score."""

    load: object
    held_out: str
    cv: int | None
    scorer: str
    score: object
    score_name: str


DATA = {
    "breast cancer": Data(
        load_breast_cancer,
        "loo",
        None,
        "roc_auc",
        roc_auc_score,
        "area under the ROC curve",
    ),
    "digits": Data(
        load_digits,
        "cv",
        5,
        "accuracy",
        lambda y, decision: accuracy_score(y, decision.argmax(axis=1)),
        "accuracy",
    ),
}


def split(data, n_rows, seed):
    """Rows to fit on and rows to judge by, standardised by the former."""
    X, y = data.load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X[:n_rows], y[:n_rows], test_size=0.5, random_state=seed
    )
    scale = StandardScaler().fit(X)
    return scale.transform(X), y, scale.transform(X_test), y_test


def early_stopping(data, criterion, patience):
    """No penalty; the run ends when ``patience`` iterates were no better."""
    model = TrajectoryLogisticRegression(C=np.inf, max_iter=10_000, cv=data.cv)
    return TrajectoryEarlyStoppingCV(model, criterion=criterion, patience=patience)


def path_of_C(data, criterion, n_values):
    """Twenty updates at each of the values; the best iterate of them all."""
    values = np.geomspace(LEAST_C, LARGEST_C, n_values)
    model = TrajectoryLogisticRegression(C=values, max_iter=20, cv=data.cv)
    return TrajectoryEarlyStoppingCV(model, criterion=criterion)


def opponents(data, patience, n_values):
    """Every model, with the name of what it is chosen by."""
    # Its own range of C is that of ours.
    theirs = partial(LogisticRegressionCV, Cs=10, cv=5, max_iter=1000)
    return {
        ("early stopping", "log loss"): early_stopping(data, data.held_out, patience),
        ("early stopping", data.scorer): early_stopping(data, data.scorer, patience),
        ("path of C", "log loss"): path_of_C(data, data.held_out, n_values),
        ("LogisticRegressionCV", "log loss"): theirs(scoring="neg_log_loss"),
        ("LogisticRegressionCV", data.scorer): theirs(scoring=data.scorer),
    }


def judged(model, data, X, y, X_test, y_test):
    """The fitted model, and what the table says of it.

    Iterate, C, estimate and its standard error (NaN where there are none), log loss
    and score on the test rows, seconds.
    """
    begun = perf_counter()
    with warnings.catch_warnings():
        # Attributes of LogisticRegressionCV are about to change shape.
        warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
        model.fit(X, y)
    seconds = perf_counter() - begun
    truth = (
        log_loss(y_test, model.predict_proba(X_test)),
        data.score(y_test, model.decision_function(X_test)),
    )
    if isinstance(model, LogisticRegressionCV):
        return model, [np.nan, model.C_[0], np.nan, np.nan, *truth, seconds]
    C = model.best_params_.get("C", np.inf)
    chosen = model.best_iter_, C, model.best_score_, model.best_score_se_
    return model, [*chosen, *truth, seconds]


HEADER = (
    f"{'model':22}{'chosen by':>10}{'iterate':>9}{'C':>9}{'estimated':>17}"
    f"{'log loss':>10}{'score':>8}{'seconds':>9}"
)


def print_table(name, data, shape, rows):
    """Means over the splits; ``rows`` has (n_splits, 7) numbers for every model."""
    print(f"\n{name}: {shape[0]} rows, {shape[1]} features; score: {data.score_name}")
    print(HEADER)
    for (model, chosen_by), numbers in rows.items():
        iterate, C, best, error, loss, score, seconds = np.mean(numbers, axis=0)
        C = np.exp(np.mean(np.log(np.array(numbers)[:, 1])))
        chosen = "" if np.isnan(iterate) else f"{iterate:.0f}"
        estimate = "" if np.isnan(best) else f"{best:.4f} ± {error:.4f}"
        print(
            f"{model:22}{chosen_by:>10}{chosen:>9}{C:9.3g}{estimate:>17}"
            f"{loss:10.4f}{score:8.4f}{seconds:9.2f}"
        )


def draw_path(ax, path, error, truth, chosen, opponent):
    """An estimate along the iterations, the truth, and what the opponent reaches.

    ``error`` is the standard error of the estimate at the iterate in use.
    """
    for name, values, label in (
        ("estimate", path, "estimated, without test rows"),
        ("truth", truth, "on the test rows"),
    ):
        # Iterate 0 is not on a log scale.
        iterations = np.arange(1, len(values))
        ax.plot(iterations, values[1:], color=COLORS[name], label=label)
    ax.axhline(
        opponent,
        color=COLORS["opponent"],
        dashes=(1, 1),
        linewidth=2,
        label="LogisticRegressionCV on the test rows",
    )
    ax.axvline(chosen, color="0.6", linewidth=1)
    ax.errorbar(
        chosen,
        path[chosen],
        error,
        fmt="o",
        color=COLORS["estimate"],
        capsize=3,
        label="iterate in use ± s.e.",
    )
    ax.set_xscale("log")
    ax.set_xlim(1, len(path) - 1)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("iteration")
    ax.spines[["top", "right"]].set_visible(False)


def draw(axes, name, data, fitted, X_test, y_test):
    """Log loss and score along the runs that they have stopped, of one split."""
    ours, theirs = "early stopping", "LogisticRegressionCV"

    def add(ax, chosen_by, title, opponent, truth):
        model, _ = fitted[ours, chosen_by]
        error = model.best_score_se_
        draw_path(ax, model.path_, error, truth, model.best_iter_, opponent)
        ax.set_ylabel(title)
        ax.set_title(name, loc="left", fontsize="medium")

    stages = fitted[ours, "log loss"][0].estimator_.staged_predict_proba(X_test)
    truth = [log_loss(y_test, probability) for probability in stages]
    *_, opponent, _, _ = fitted[theirs, "log loss"][1]
    add(axes[0], "log loss", "log loss", opponent, truth)
    axes[0].set_ylim(0, 4 * min(truth))
    stages = fitted[ours, data.scorer][0].estimator_.staged_decision_function(X_test)
    truth = [data.score(y_test, decision) for decision in stages]
    *_, opponent, _ = fitted[theirs, data.scorer][1]
    add(axes[1], data.scorer, data.score_name, opponent, truth)
    early = truth[1]  # the start knows nothing
    axes[1].set_ylim(early - 0.1 * (max(truth) - early), 1)


@threadpool_limits.wrap(limits=1)
def main(n_rows=None, n_splits=3, patience=100, n_values=30, output=None):
    """Print the tables and draw the first split."""
    figure, axes = plt.subplots(2, 2, figsize=(7, 6), constrained_layout=True)
    for (name, data), pair in zip(DATA.items(), axes):
        rows = {}
        for seed in range(n_splits):
            X, y, X_test, y_test = split(data, n_rows, seed)
            fitted = {}
            for key, model in opponents(data, patience, n_values).items():
                fitted[key] = judged(model, data, X, y, X_test, y_test)
                rows.setdefault(key, []).append(fitted[key][1])
            if seed == 0:
                draw(pair, name, data, fitted, X_test, y_test)
        print_table(name, data, X.shape, rows)
    labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(*labels, loc="outside upper center", ncols=2, frameon=False)
    if output is not None:
        path = Path(output) / "logistic.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
