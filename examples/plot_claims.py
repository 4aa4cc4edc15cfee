"""
Claim frequencies and severities, with exposures
================================================

The policies of a simulated motor portfolio were insured for a part of a year each, and
one in sixteen had a claim. Claim counts are fitted with the logarithm of this exposure
as ``offset``. How often drivers claim depends on their age, in no straight line, on the
region, the body of the car and the density of the population; powerful cars make young
drivers claim more often, and others hardly.

The upper table shows how far predicted frequencies are from the true ones, which are
known in a simulation: by how much the expected deviance of new claims exceeds that of
the true frequencies, in thousandths per year of exposure. A lasso path with columns for
bins and levels, stopped by folds, is about as good as scikit-learn's
``PoissonRegressor``, whose penalty a grid search tunes on rates, with exposures as
weights. The default models of ``SelfStoppingRegressor`` read the raw columns, and their
blend is nearer to the truth: its trees find that age and power belong together.

The lower table shows the same for mean amounts of claims: the gamma deviance, with
numbers of claims as weights. Of little more than a thousand claims, a ridge path that
stops itself learns at least as much as the grid search.

On the left are losses along the lasso path, half the deviance, less those of the true
frequencies: of the rows that folds hold out and, as expected, of other policies. Both
are least between the ends of the path, while the loss of the training rows falls to the
end. On the right are the frequencies of other policies, observed and
predicted, by tenths of the predictions, with two standard errors.

Run ``python examples/plot_claims.py --output DIR`` to write the figure.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from skacv import (
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryGammaRegressor,
    TrajectoryRegressor,
)

NUMBERS = ["driver_age", "car_age", "power", "density"]
LEVELS = ["region", "body", "fuel"]
N_REGIONS, N_BODIES = 20, 8
STEP = 5  # updates between those that are drawn
ALPHAS = np.geomspace(1e-6, 1e-1, 11)


def simulate(n, rng):
    """Policies with their exposures, claims and mean amounts, and the true means."""
    effects = np.random.default_rng(0)  # the same of every portfolio
    of_regions, of_bodies = (effects.normal(0, 0.25, k) for k in (N_REGIONS, N_BODIES))
    X = pd.DataFrame(
        {
            "driver_age": rng.gamma(6, 5, n).clip(0, 70) + 18,
            "car_age": rng.gamma(2, 4, n).clip(0, 30),
            "power": rng.gamma(9, 12, n),
            "density": rng.lognormal(5, 1.3, n),
        }
    ).round()
    region, body = rng.integers(N_REGIONS, size=n), rng.integers(N_BODIES, size=n)
    X["region"] = pd.Categorical.from_codes(region, [f"R{k}" for k in range(N_REGIONS)])
    X["body"] = pd.Categorical.from_codes(body, [f"B{k}" for k in range(N_BODIES)])
    X["fuel"] = pd.Categorical.from_codes(rng.integers(2, size=n), ["diesel", "petrol"])
    young = np.exp(-(X["driver_age"].to_numpy() - 18) / 8)
    old = np.maximum(X["driver_age"].to_numpy() - 65, 0) / 20
    power = (X["power"].to_numpy() - 108) / 36
    density = np.log(X["density"].to_numpy() + 1) - 5
    frequency = np.exp(
        -2.4
        + 1.0 * young
        + 0.5 * old
        + 2.0 * young * power
        + 0.15 * density
        + of_regions[region]
        + of_bodies[body]
    ).clip(max=2)
    amount = 1500 * np.exp(
        0.2 * power - 0.03 * X["car_age"].to_numpy() + 0.3 * young - of_bodies[body]
    )
    exposure = rng.beta(0.9, 0.6, n).clip(1 / 365, 1)
    counts = rng.poisson(exposure * frequency)
    # The mean of as many amounts, each with a coefficient of variation of 1.2.
    shape = np.maximum(counts, 1) / 1.2**2
    amounts = np.where(counts > 0, rng.gamma(shape, amount / shape), 0)
    return X, exposure, counts, amounts, frequency, amount


def columns_of_bins():
    """Columns for ten bins of every number and for every level."""
    bins = KBinsDiscretizer(10, encode="onehot-dense")
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((bins, NUMBERS), (levels, LEVELS))


def excess_of_poisson(true, found, exposure):
    """The deviance of counts beyond that of the true frequencies, as expected."""
    excess = 2 * (xlogy(true, true / found) - true + found)
    return 1000 * np.average(excess, weights=exposure)


def half_deviance(counts, frequency, exposure):
    """Half the deviance of counts, per year."""
    expected = exposure * frequency
    values = xlogy(counts, counts / expected) - counts + expected
    return values.sum() / exposure.sum()


def excess_of_gamma(true, found, exposure):
    """The same of mean amounts, by expected claims."""
    return 1000 * np.average(
        2 * (true / found - 1 - np.log(true / found)), weights=exposure
    )


def fit_frequencies(X, bins, counts, exposure):
    """The models of claim frequencies by name, and the lasso path that is stopped."""
    offset = np.log(exposure)
    path = TrajectoryRegressor(
        "path", loss="poisson", penalty="l1", max_iter=15, cv=5, loo=False, risk=False
    )
    lasso = TrajectoryEarlyStoppingCV(path, patience=None, random_state=0)
    lasso.fit(bins, counts, offset=offset)
    grid = GridSearchCV(PoissonRegressor(solver="newton-cholesky"), {"alpha": ALPHAS})
    grid.fit(bins, counts / exposure, sample_weight=exposure)
    blend = SelfStoppingRegressor(loss="poisson", random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        blend.fit(X, counts, offset=offset)  # a few more trees would change little
    return lasso, grid, blend


def simulate_and_fit(n_rows, seed):
    """One portfolio: the tables, and what the figure shows."""
    rng = np.random.default_rng(seed)
    X, exposure, counts, amounts, of_rows, _ = simulate(n_rows, rng)
    X_test, years, test_counts, _, frequency, amount = simulate(2 * n_rows, rng)
    encoder = columns_of_bins().fit(X)
    bins, test_bins = encoder.transform(X), encoder.transform(X_test)
    lasso, grid, blend = fit_frequencies(X, bins, counts, exposure)
    one_year = np.zeros(len(years))
    predicted = {
        "one frequency for all": np.full(len(years), counts.sum() / exposure.sum()),
        "PoissonRegressor, grid search": grid.predict(test_bins),
        "lasso path, stopped": lasso.predict(test_bins, offset=one_year),
        "blend of the default": blend.predict(X_test, offset=one_year),
    }
    frequencies = {
        name: excess_of_poisson(frequency, found, years)
        for name, found in predicted.items()
    }
    claimed = counts > 0
    claims = bins[claimed], amounts[claimed], counts[claimed]
    gamma = TrajectoryGammaRegressor("path", cv=5, loo=False, risk=False)
    stopped = TrajectoryEarlyStoppingCV(gamma, random_state=0)
    stopped.fit(*claims[:2], sample_weight=claims[2])
    tuned = GridSearchCV(
        GammaRegressor(solver="newton-cholesky"), {"alpha": 100 * ALPHAS}
    )
    tuned.fit(*claims[:2], sample_weight=claims[2])
    severities = {
        "one amount for all": np.average(claims[1], weights=claims[2]),
        "GammaRegressor, grid search": tuned.predict(test_bins),
        "ridge path, stopped": stopped.predict(test_bins),
    }
    severities = {
        name: excess_of_gamma(amount, found, years * frequency)
        for name, found in severities.items()
    }
    run, of_truth = lasso.estimator_, half_deviance(counts, of_rows, exposure)
    of_others = []
    for coef, intercept in zip(run.coef_path_[::STEP], run.intercept_path_[::STEP]):
        found = np.exp(test_bins @ coef + intercept)
        of_others.append(0.5 * excess_of_poisson(frequency, found, years))
    paths = {
        "held-out rows of folds": 1000 * (lasso.path_ - of_truth)[::STEP],
        "other policies": of_others,
        "training rows": 1000 * (run.train_path_ - of_truth)[::STEP],
    }
    kept = lasso.best_iter_, 1000 * (lasso.best_score_ - of_truth)
    shown = paths, kept, predicted, test_counts, years
    return frequencies, severities, blend.weights_, shown


def draw(axes, shown):
    """The losses along the lasso path, and frequencies by tenths of the predictions."""
    paths, kept, predicted, counts, years = shown
    left, right = axes
    for (name, path), colour in zip(paths.items(), ["tab:blue", "black", "tab:gray"]):
        left.plot(STEP * np.arange(len(path)), path, label=name, color=colour)
    left.plot(*kept, "o", color="tab:blue")
    left.axhline(0, color="tab:gray", linestyle="--")
    left.set(xlabel="update", title="Lasso path", ylim=(-1, 2.5 * kept[1]))
    left.set_ylabel("half deviance / 1000 years, beyond the truth")
    left.legend(loc="upper right")
    for name, colour in [
        ("lasso path, stopped", "tab:blue"),
        ("blend of the default", "tab:orange"),
    ]:
        order = np.argsort(predicted[name], kind="stable")
        shares = np.cumsum(years[order]) / years.sum()
        tenths = np.split(order, np.searchsorted(shares, np.arange(1, 10) / 10))
        found, observed, error = [], [], []
        for rows in tenths:
            found.append(np.average(predicted[name][rows], weights=years[rows]))
            observed.append(counts[rows].sum() / years[rows].sum())
            error.append(2 * np.sqrt(counts[rows].sum()) / years[rows].sum())
        right.errorbar(found, observed, error, fmt="o", color=colour, label=name)
    ends = [0, 1.1 * max(found)]
    right.plot(ends, ends, color="tab:gray", linestyle="--")
    right.set(xlabel="predicted claims / year", ylabel="observed claims / year")
    right.set_title("Tenths of other policies")
    right.legend()


def main(n_rows=20_000, n_repeats=3, output=None):
    """Print the tables and draw the figure."""
    simulated = [simulate_and_fit(n_rows, seed) for seed in range(n_repeats)]
    titles = "claim frequency", "claim severity"
    for number, title in enumerate(titles):
        print(f"{title + ', beyond the truth':40}{'deviance / 1000':>16}")
        for name in simulated[0][number]:
            value = np.mean([each[number][name] for each in simulated])
            print(f"{name:40}{value:16.2f}")
        print()
    weights = simulated[0][2].items()
    print("first blend:", ", ".join(f"{name} {value:.2f}" for name, value in weights))
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.9), constrained_layout=True)
    draw(axes, simulated[0][-1])
    if output is not None:
        path = Path(output) / "claims.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
