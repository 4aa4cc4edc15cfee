"""
Survival curves from a Cox model that stops itself
==================================================

The hazards of 300 simulated patients depend on five of 500 measurements. About a fifth
of the times are censored. A Cox model with an l1 penalty runs along thirty strengths,
on all patients and on five folds of them, and the held-out patients of all folds are
compared with each other in one partial likelihood.

On the left is this held-out loss along the run, half the deviance of the partial
likelihood over the number of patients, with that of other patients, in seven groups of
300 each: the loss grows with the number of patients that are compared. The two have
their least values near each other. The loss of the training patients falls to the end.

On the right are survival curves of three of the other patients, whose hazards are at
the 10%, 50% and 90% quantiles: the true ones (dashed), those of the iterate that is
kept (solid) and those of the last iterate (dotted), which tell the three apart too
sharply.

The table shows means over five simulations, on the other patients: the loss, Harrell's
concordance, and the mean distance of predicted and true survival probabilities. The
kept iterate has the best of all three. The curves of the last iterate are further from
the truth than one curve for all patients, though it still orders most pairs of them.

Run ``python examples/plot_survival.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import TrajectoryCoxRegressor, TrajectoryEarlyStoppingCV

EFFECTS = np.array([0.8, -0.8, 0.6, -0.6, 0.4])
QUANTILES = (0.1, 0.5, 0.9)
N_GROUPS = 7
# Times at which curves are drawn, and compared.
TIMES = np.linspace(0, 1.5, 151)
COLOURS = ["tab:green", "tab:orange", "tab:red"]


def simulate(n, p, rng):
    """Measurements, events and times, and the true logarithms of hazards."""
    X = rng.standard_normal((n, p))
    log_hazards = X[:, : len(EFFECTS)] @ EFFECTS
    event_times, ends = rng.exponential(np.exp(-log_hazards)), rng.uniform(1, 6, n)
    return X, (event_times <= ends, np.minimum(event_times, ends)), log_hazards


def curves_of(model, X):
    """Survival probabilities at TIMES."""
    functions = model.predict_survival_function(X)
    known = np.minimum(TIMES, functions[0].domain[1])
    return np.array([function(known) for function in functions])


def simulate_and_fit(n_rows, n_columns, max_iter, seed):
    """One simulation: what is drawn, and the numbers of the table."""
    rng = np.random.default_rng(seed)
    X, y, _ = simulate(n_rows, n_columns, rng)
    X_test, y_test, log_hazards = simulate(N_GROUPS * n_rows, n_columns, rng)
    cox = TrajectoryCoxRegressor("path", penalty="l1", max_iter=max_iter)
    model = TrajectoryEarlyStoppingCV(cox, patience=None, random_state=0).fit(X, y)
    truth = np.exp(-np.outer(np.exp(log_hazards), TIMES))
    event, time = y_test
    test_path = np.mean(
        [
            model.estimator_.staged_loss(X_test[rows], (event[rows], time[rows]))
            for rows in np.split(np.arange(len(X_test)), N_GROUPS)
        ],
        axis=0,
    )
    kept, last = model.at_iteration(model.best_iter_), model.at_iteration(-1)
    iterates = {"no measurement": model.at_iteration(0), "kept": kept, "last": last}
    rows, curves = {}, {}
    for name, iterate in iterates.items():
        curves[name] = curves_of(iterate, X_test)
        distance = np.abs(curves[name] - truth).mean()
        loss = test_path[iterate.iteration_]
        rows[name] = loss, iterate.score(X_test, y_test), distance
    return model, test_path, truth, curves, log_hazards, rows


def draw(axes, simulated):
    """The losses along a run, and the curves of three patients."""
    model, test_path, truth, curves, log_hazards, _ = simulated
    left, right = axes
    run, best = model.estimator_, model.best_iter_
    updates = np.arange(len(model.path_))
    left.plot(updates, model.path_, label="held-out rows of folds")
    error = run.cv_se_path_
    band = model.path_ - error, model.path_ + error
    left.fill_between(updates, *band, color="tab:blue", alpha=0.2)
    left.plot(updates, test_path, label="other patients", color="black")
    left.plot(updates, run.train_path_, label="training rows", color="tab:gray")
    left.plot(best, model.path_[best], "o", color="tab:blue")
    left.set(xlabel="update", ylabel="half deviance / rows", title="Partial likelihood")
    left.set_ylim(0, 2 * model.path_[0])
    left.legend(loc="lower left")
    order = np.argsort(log_hazards)
    patients = order[[int(q * (len(order) - 1)) for q in QUANTILES]]
    styles = {"true": "--", "kept": "-", "last": ":"}
    drawn = {"true": truth} | curves
    for patient, colour in zip(patients, COLOURS):
        for name, style in styles.items():
            right.plot(TIMES, drawn[name][patient], style, color=colour)
    for name, style in styles.items():
        right.plot([], [], style, color="black", label=name)
    right.set(xlabel="time", ylabel="probability of no event", ylim=(0, 1.02))
    right.set_title("Three of the other patients")
    right.legend()


def main(n_rows=300, n_columns=500, max_iter=20, n_repeats=5, output=None):
    """Print the table and draw the figure."""
    simulated = [
        simulate_and_fit(n_rows, n_columns, max_iter, seed) for seed in range(n_repeats)
    ]
    print(f"{'iterate':18}{'loss':>8}{'concordance':>14}{'distance':>11}")
    for name in simulated[0][-1]:
        loss, score, distance = np.mean([each[-1][name] for each in simulated], axis=0)
        print(f"{name:18}{loss:8.3f}{score:14.3f}{distance:11.3f}")
    kept = [each[0].best_score_ for each in simulated]
    print(f"\nheld-out loss of the kept iterates: {np.mean(kept):.3f}")
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.9), constrained_layout=True)
    draw(axes, simulated[0])
    if output is not None:
        path = Path(output) / "survival.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
