"""
Leave-one-out under an l1 penalty: does the support stay?
==========================================================

``approximate_loo`` makes one Newton step without each row, on the coefficients of a
converged model that are nonzero on all rows. It assumes that the others stay at zero,
which holds for incoherent columns. ``loo_path_`` makes no such assumption: each run
without a row applies the proximal operator itself, and so has a support of its own.

The model is logistic regression with an l1 penalty, 150 rows and 1000 columns, which
are independent or correlate with their neighbours. The penalty goes from strong to
weak. The upper panels show the mean log loss of refits without each row, of
``approximate_loo``, and of ``loo_path_`` at the last iterate of FISTA for the same
objective. The lower panels show the largest leverage, and the share of the rows without
which the support or a sign changes: ``support_changes``, which needs no refit, and what
the refits show.

While leverages are small, ``approximate_loo`` is right to a percent, whether the
support changes or not. If leverages and changes are large, it may be off by up to a
tenth, and it warns. ``loo_path_`` agrees with the refits everywhere.

Run ``python examples/plot_l1_support.py --output DIR`` to write the figure.

References: Stephenson and Broderick (2020), "Approximate cross-validation in high
dimensions with guarantees", AISTATS, arXiv:1905.13657; Luo, Ren and Barber (2023),
"Iterative approximate cross-validation", ICML, arXiv:2303.02732.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from skacv import TrajectoryLogisticRegression, approximate_loo

# Versions of scikit-learn name the penalty in two ways.
IS_RECENT = parse_version(sklearn.__version__) >= parse_version("1.8")
L1 = {"l1_ratio": 1} if IS_RECENT else {"penalty": "l1"}
COEF = np.repeat([2.0, 1.0], 5)
VALUES_OF_C = 0.05, 0.1, 0.2, 0.4, 0.8, 1.6
STYLES = {
    "alo": ("#D55E00", "-", "approximate_loo"),
    "path": ("#0072B2", "-", "loo_path_ of a run"),
    "refits": ("black", "o", "refits without each row"),
}


def drawn(n, p, correlation, seed=0):
    """Rows whose neighbouring columns correlate, and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X, (rng.random(n) < expit(X[:, : len(COEF)] @ COEF)).astype(int)


def log_loss(y, scores):
    return np.logaddexp(0, np.where(y == 1, -scores, scores))


def compared(X, y, C, max_iter):
    """Mean losses by three ways; share of changes by both; the largest leverage."""
    model = LogisticRegression(
        **L1,
        C=C,
        solver="liblinear",
        fit_intercept=False,
        tol=1e-8,
        max_iter=10_000,
    ).fit(X, y)
    losses, changes = [], []
    for i in range(len(y)):
        stay = np.arange(len(y)) != i
        refit = clone(model).fit(X[stay], y[stay])
        losses.append(log_loss(y[i], refit.decision_function(X[[i]])[0]))
        changes.append((np.sign(refit.coef_) != np.sign(model.coef_)).any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are what the figure is about
        alo = approximate_loo(model, X, y)
        run = TrajectoryLogisticRegression(
            C,
            l1_ratio=1,
            solver="fista",
            fit_intercept=False,
            max_iter=max_iter,
            risk=False,
            loo=True,
        ).fit(X, y)
    return {
        "refits": np.mean(losses),
        "alo": alo.mean,
        "path": run.loo_path_[-1],
        "changes": alo.support_changes,
        "changes of refits": np.mean(changes),
        "leverage": alo.leverages.max(),
        "nonzero": np.count_nonzero(model.coef_),
    }


def main(n=150, p=1000, values=VALUES_OF_C, max_iter=1000, output=None):
    """Print losses and changes of the support, and draw them."""
    figure, axes = plt.subplots(
        2, 2, figsize=(7, 6.4), sharex=True, sharey="row", constrained_layout=True
    )
    names = "C", "nonzero", *STYLES, "changes", "of refits", "leverage"
    print("correlation" + "".join(f"{name:>10}" for name in names))
    for column, correlation in zip(axes.T, (0.0, 0.8)):
        X, y = drawn(n, p, correlation)
        rows = [compared(X, y, C, max_iter) for C in values]
        for C, row in zip(values, rows):
            print(
                f"{correlation:11}{C:10}{row['nonzero']:10}"
                + "".join(f"{row[name]:10.3f}" for name in STYLES)
                + f"{row['changes']:10.0%}{row['changes of refits']:10.0%}"
                + f"{row['leverage']:10.2f}"
            )
        for name, (color, style, label) in STYLES.items():
            losses = [row[name] for row in rows]
            column[0].plot(values, losses, style, color=color, label=label, linewidth=2)
        for name, color, label in [
            ("changes", "#009E73", "rows without which the support changes"),
            ("changes of refits", "black", "the same, by refits"),
            ("leverage", "#CC79A7", "largest leverage"),
        ]:
            style = ":" if name == "changes of refits" else "-"
            share = [row[name] for row in rows]
            column[1].plot(values, share, style, color=color, label=label, linewidth=2)
        column[0].set_title(
            f"correlated neighbours, {correlation}"
            if correlation
            else "independent columns"
        )
        column[1].set(xlabel="C, from strong to weak penalties", xscale="log")
        for ax in column:
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("held-out log loss")
    axes[1, 0].set_ylabel("share")
    axes[0, 1].legend(frameon=False)
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(),
        loc="outside lower center",
        frameon=False,
    )
    if output is not None:
        path = Path(output) / "l1_support.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
