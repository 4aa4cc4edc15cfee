"""
Generalised cross-validation is wrong along gradient descent
============================================================

Generalised cross-validation (GCV) divides the training error of a fit X b = H y by
(1 - df / n)^2, where df, the degrees of freedom, is the trace of H. The iterates of
gradient descent and of Nesterov's acceleration are linear in y, so the formula can be
evaluated at each of them. It does not estimate their risk. With more features than rows
it becomes several times too large, and with acceleration dozens of times: df exceeds n
on the way, and where they are equal the formula has a pole.

Here it is compared with exact leave-one-out, with the memory matrix and with the truth
(known coefficients), on Gaussian rows and a dense signal of one and of ten times the
variance of the noise. GCV stops too early. That costs about a percent of the risk if
the best iterate is one of the first (the weak signal), and a tenth if it is not. The
last line of the output is for the converged lasso, with the number of nonzero
coefficients as df. There GCV is right.

Run ``python examples/plot_gcv_fails.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import lasso_path

from skacv import IterativeRidge
from skacv.optim.penalties import Zero
from skacv.optim.schedules import GradientDescent, Nesterov

SOLVERS = {
    "gradient descent": ("gd", GradientDescent),
    "Nesterov": ("nesterov", Nesterov),
}
SIGNALS = [1, 10]
SHOWN = [10, 30, 100]
STYLES = {
    "GCV": {"color": "#CC79A7", "linewidth": 2},
    "memory matrix": {"color": "#0072B2", "linewidth": 2.2},
    "leave-one-out": {"color": "#D55E00", "dashes": (5, 2)},
    "truth": {"color": "black"},
}
ESTIMATES = list(STYLES)[:-1]


def degrees_of_freedom(eigenvalues, schedule, n_updates):
    """Trace of the map y -> X b_t of every iterate, squared loss from b_0 = 0.

    Along the eigenvector of XX'/n with eigenvalue s, the fit is a share of y
    that obeys the update itself: its gradient is s (share - 1).
    """
    share = previous = np.zeros_like(eigenvalues)
    traces = [0.0]
    for _, step in zip(range(n_updates), schedule.updates()):
        gradient = eigenvalues * (step.point(share, previous) - 1)
        updated = step.apply(share, previous, gradient, Zero())
        share, previous = updated, share
        traces.append(share.sum())
    return np.array(traces)


def gcv(train_path, df, n):
    """Generalised cross-validation."""
    return train_path / (1 - df / n) ** 2


def gaussian_data(n, p, n_nonzero, signal, rng):
    """Rows, targets with noise of variance one, and the coefficients."""
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[:n_nonzero] = rng.standard_normal(n_nonzero)
    beta *= np.sqrt(signal) / np.linalg.norm(beta)
    return X, X @ beta + rng.standard_normal(n), beta


def paths(X, y, beta, solver):
    """Estimates and truth of every iterate."""
    n_updates = max(SHOWN)
    name, schedule = SOLVERS[solver]
    model = IterativeRidge(
        alpha=0.0,
        solver=name,
        fit_intercept=False,
        max_iter=n_updates,
        tol=0,
        risk="exact",
        loo=True,
    ).fit(X, y)
    eigenvalues = np.linalg.eigvalsh(X @ X.T / len(X))
    df = degrees_of_freedom(eigenvalues, schedule(model.step_size_), n_updates)
    return {
        "GCV": gcv(model.train_path_, df, len(X)),
        "memory matrix": model.risk_path_,
        "leave-one-out": model.loo_path_,
        "truth": ((model.coef_path_ - beta) ** 2).sum(axis=1) + 1,
    }


def converged_lasso(X, y, beta):
    """Generalised cross-validation and truth of the lasso at thirty alphas."""
    alphas = np.abs(X.T @ y).max() / len(X) * np.geomspace(1, 0.02, 30)
    _, coefs, _ = lasso_path(X, y, alphas=alphas)
    train_path = ((y[:, None] - X @ coefs) ** 2).mean(axis=0)
    df = np.count_nonzero(coefs, axis=0)
    truth = ((coefs - beta[:, None]) ** 2).sum(axis=0) + 1
    return {"GCV": gcv(train_path, df, len(X)), "truth": truth}


def cost_of_choice(repeats, name):
    """Mean true risk of what an estimate picks, over the least on the path."""
    return np.mean([r["truth"][r[name].argmin()] / r["truth"].min() for r in repeats])


def print_header(n, p, n_repeats):
    print(f"Gaussian rows, n={n}, p={p}, {n_repeats} repeats. Estimate / truth at")
    print("three iterates, the iterate picked and the best one (medians); true risk")
    print("of the one picked over the least on the path (mean).\n")
    shown = "".join(f"{f't={t}':>9}" for t in SHOWN)
    print(f"{'solver, signal/noise':39}{shown}{'picked':>8}{'best':>6}{'cost':>7}")


def print_rows(label, repeats):
    """Rows of the table: one for every estimate."""
    best = np.median([r["truth"].argmin() for r in repeats])
    for name in ESTIMATES:
        ratios = np.median([r[name] / r["truth"] for r in repeats], axis=0)
        picked = np.median([r[name].argmin() for r in repeats])
        cost = cost_of_choice(repeats, name)
        shown = "".join(f"{ratios[t]:9.2f}" for t in SHOWN)
        print(f"{label:24}{name:15}{shown}{picked:8.0f}{best:6.0f}{cost:7.2f}")


def print_lasso(repeats):
    ratio = np.median([r["GCV"] / r["truth"] for r in repeats])
    cost = cost_of_choice(repeats, "GCV")
    print("\nThe converged lasso at thirty alphas, sparse signal: GCV / truth", end=" ")
    print(f"{ratio:.2f} (median), cost {cost:.2f}")


def draw(ax, repeats, title):
    """Medians over the repeats, and on the truth what each of them picks."""
    medians = {name: np.median([r[name] for r in repeats], axis=0) for name in STYLES}
    truth = medians["truth"]
    for name, style in STYLES.items():
        ax.plot(medians[name], label=name, **style)
    for name in ESTIMATES:
        picked = medians[name].argmin()
        ax.plot(picked, truth[picked], "o", color=STYLES[name]["color"], zorder=4)
    ax.plot([], [], "o", color="grey", label="iterate that it picks")
    ax.set_xlim(0, len(truth) - 1)
    ax.set_ylim(0.8 * truth.min(), 2.2 * truth.min())
    ax.set_xlabel("iteration")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def main(n=600, p=900, n_repeats=10, output=None):
    """Print the table and draw the strongest signal."""
    rng = np.random.default_rng(0)
    print_header(n, p, n_repeats)
    for signal in SIGNALS:
        data = [gaussian_data(n, p, p, signal, rng) for _ in range(n_repeats)]
        repeats = {s: [paths(*one, s) for one in data] for s in SOLVERS}
        for solver in SOLVERS:
            print_rows(f"{solver}, {signal}", repeats[solver])
    sparse = [gaussian_data(n, p, p // 15, signal, rng) for _ in range(n_repeats)]
    print_lasso([converged_lasso(*one) for one in sparse])
    figure, axes = plt.subplots(
        1, 2, figsize=(7, 3.8), sharey=True, constrained_layout=True
    )
    for solver, ax in zip(SOLVERS, axes):
        draw(ax, repeats[solver], f"{solver}, signal/noise {signal}")
    axes[0].set_ylabel("mean squared error")
    axes[0].legend(frameon=False, fontsize="small")
    if output is not None:
        path = Path(output) / "gcv_fails.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
