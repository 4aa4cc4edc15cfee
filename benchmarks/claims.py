"""Claim frequencies of public motor portfolios beside peers: ``make bench-claims``.

Four tables of CASdatasets, which are no part of the project: files of a repository, of
which CLONES has a clone as ``CLONES/dutangc/CASdatasets``. "ausprivauto0405" has
Australian policies, "norauto" Norwegian and "beMTPL97" Belgian ones, and "swmotorcycle"
Swedish motorcycles; 40,000 policies of each are drawn, of those with an exposure.

Random splits, a quarter for the test. Mean Poisson deviance of the test policies, per
year of exposure, and mean processor seconds of one thread. "ours" are the default
models with ``loss="poisson"`` and the logarithm of the exposure as ``offset``; "our
lasso" is a path that folds stop, on columns for levels and standardised numbers. On
these columns a grid search of five folds tunes "PoissonRegressor". Trees read levels as
categories, and are fitted to rates with exposures as weights: "HistGradientBoosting"
stops early by itself; LightGBM and CatBoost by a fifth of the rows, for each of four
sizes of trees, and the best of these is fitted again to all. "wins" are the splits in
which no peer has a smaller deviance than ours.
"""

import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skacv import SelfStoppingRegressor, TrajectoryEarlyStoppingCV, TrajectoryRegressor

from .framework import arguments, header, heading, line

REPOSITORY = "dutangc/CASdatasets"
COMMIT = "dbac69aca3dc8dc872a744e20b94c60c06cbd440"
N_ROWS = 40_000
PATIENCE, MOST_TREES, RATE = 50, 2000, 0.05
ALPHAS = np.geomspace(1e-6, 1e-1, 11)
# The columns of each table: the exposure, the number of claims, and what is left out.
TABLES = {
    "ausprivauto0405": ("Exposure", "ClaimNb", ["ClaimOcc", "ClaimAmount"]),
    "norauto": ("Expo", "NbClaim", ["ClaimAmount"]),
    "beMTPL97": ("expo", "nclaims", ["id", "claim", "amount", "average", "postcode"]),
    "swmotorcycle": ("Exposure", "ClaimNb", ["ClaimAmount"]),
}


@dataclass(frozen=True)
class Policies:
    """Policies, their claims and exposures."""

    X: pd.DataFrame
    counts: np.ndarray
    years: np.ndarray

    def of(self, rows):
        """Some of the policies."""
        return Policies(self.X.iloc[rows], self.counts[rows], self.years[rows])

    def split(self, share, seed):
        """Policies without a random share, and that share."""
        rows = np.arange(len(self.X))
        return map(self.of, train_test_split(rows, test_size=share, random_state=seed))

    @property
    def rates(self):
        """Claims per year."""
        return self.counts / self.years

    def deviance(self, frequencies):
        """The mean deviance of frequencies, per year."""
        return mean_poisson_deviance(self.rates, frequencies, sample_weight=self.years)


def read(clones, name):
    """The policies of a table."""
    import rdata

    command = ["git", "-C", clones / REPOSITORY, "show", f"{COMMIT}:data/{name}.rda"]
    content = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.NamedTemporaryFile(suffix=".rda") as file:
        file.write(content)
        file.flush()
        with warnings.catch_warnings(action="ignore"):  # of encodings that R leaves out
            (table,) = rdata.read_rda(file.name).values()
    exposure, number, others = TABLES[name]
    table = table[table[exposure] > 0].sample(N_ROWS, random_state=0)
    X = table.drop(columns=[exposure, number, *others])
    for column in X:
        is_number = pd.api.types.is_numeric_dtype(X[column])
        as_category = X[column].astype(str).astype("category")
        X[column] = X[column].astype(float) if is_number else as_category
    counts, years = (table[key].to_numpy(np.float64) for key in (number, exposure))
    return Policies(X.reset_index(drop=True), counts, years)


def levels_of(X):
    """Names of the columns that are categories."""
    return X.select_dtypes("category").columns.tolist()


def columns(X):
    """Columns for levels, and standardised numbers."""
    levels = levels_of(X)
    numbers = [name for name in X if name not in levels]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((encoder, levels), (StandardScaler(), numbers))


def ours(policies):
    """The default models, blended."""
    model = SelfStoppingRegressor(loss="poisson", random_state=0)
    model.fit(policies.X, policies.counts, offset=np.log(policies.years))
    return lambda X: model.predict(X, offset=np.zeros(len(X)))


def our_lasso(policies):
    """A lasso path that folds stop."""
    encoder = columns(policies.X).fit(policies.X)
    path = TrajectoryRegressor("path", loss="poisson", penalty="l1", cv=5, loo=False)
    model = TrajectoryEarlyStoppingCV(path, random_state=0)
    bins, offset = encoder.transform(policies.X), np.log(policies.years)
    model.fit(bins, policies.counts, offset=offset)
    return lambda X: model.predict(encoder.transform(X), offset=np.zeros(len(X)))


def poisson_regressor(policies):
    """scikit-learn's generalised linear model, tuned."""
    glm = make_pipeline(
        columns(policies.X), PoissonRegressor(solver="newton-cholesky", max_iter=1000)
    )
    grid = GridSearchCV(glm, {"poissonregressor__alpha": ALPHAS}, cv=5)
    weights = {"poissonregressor__sample_weight": policies.years}
    return grid.fit(policies.X, policies.rates, **weights).predict


def hist_gradient_boosting(policies):
    """scikit-learn's boosted trees, which stop early."""
    settings = {"learning_rate": RATE, "max_iter": MOST_TREES, "early_stopping": True}
    model = HistGradientBoostingRegressor(
        loss="poisson", n_iter_no_change=PATIENCE, random_state=0, **settings
    )
    years = policies.years
    return model.fit(policies.X, policies.rates, sample_weight=years).predict


def lightgbm(policies):
    """LightGBM: sizes of leaves, and the number of trees, by a fifth of the rows."""
    from lightgbm import LGBMRegressor, early_stopping

    def make(n_trees, n_leaves, n_rows):
        sizes = {"num_leaves": n_leaves, "min_child_samples": n_rows}
        settings = {"learning_rate": RATE, "random_state": 0, "n_jobs": 1}
        return LGBMRegressor(
            objective="poisson", n_estimators=n_trees, verbose=-1, **sizes, **settings
        )

    fitted, judging = policies.split(0.2, 0)
    found = []
    for sizes in [(4, 20), (4, 200), (31, 20), (31, 200)]:
        model = make(MOST_TREES, *sizes)
        model.fit(
            fitted.X,
            fitted.rates,
            sample_weight=fitted.years,
            eval_X=judging.X,
            eval_y=judging.rates,
            eval_sample_weight=[judging.years],
            callbacks=[early_stopping(PATIENCE, verbose=False)],
        )
        deviance = judging.deviance(model.predict(judging.X))
        found.append((deviance, model.best_iteration_, sizes))
    _, n_trees, sizes = min(found)
    model = make(n_trees, *sizes)
    return model.fit(policies.X, policies.rates, sample_weight=policies.years).predict


def catboost(policies):
    """CatBoost: the depth, and the number of trees, likewise."""
    from catboost import CatBoostRegressor, Pool

    levels = levels_of(policies.X)

    def pool(some):
        return Pool(some.X, some.rates, weight=some.years, cat_features=levels)

    def make(n_trees, depth):
        settings = {"learning_rate": RATE, "thread_count": 1, "random_seed": 0}
        return CatBoostRegressor(
            loss_function="Poisson",
            iterations=n_trees,
            depth=depth,
            verbose=False,
            allow_writing_files=False,
            **settings,
        )

    fitted, judging = policies.split(0.2, 0)
    found = []
    for depth in (2, 3, 4, 6):
        model = make(MOST_TREES, depth)
        model.fit(pool(fitted), eval_set=pool(judging), early_stopping_rounds=PATIENCE)
        found_rates = model.predict(pool(judging), prediction_type="Exponent")
        deviance = judging.deviance(found_rates)
        found.append((deviance, model.tree_count_, depth))
    _, n_trees, depth = min(found)
    model = make(n_trees, depth).fit(pool(policies))
    return lambda X: model.predict(X, prediction_type="Exponent")


def null(policies):
    """One frequency for all."""
    frequency = policies.counts.sum() / policies.years.sum()
    return lambda X: np.full(len(X), frequency)


MODELS = {
    "null": null,
    "ours": ours,
    "our lasso": our_lasso,
    "PoissonRegressor": poisson_regressor,
    "HistGradientBoosting": hist_gradient_boosting,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
}
PEERS = [name for name in MODELS if "our" not in name]


def compared(policies, seed):
    """Of one split: deviances and seconds of all models."""
    training, test = policies.split(0.25, seed)
    deviances, seconds = [], []
    for fit in MODELS.values():
        begun = process_time()
        with warnings.catch_warnings(action="ignore"):
            predict = fit(training)
        seconds.append(process_time() - begun)
        deviances.append(test.deviance(predict(test.X)))
    return deviances, seconds


def lines_of(name, policies, n_splits):
    """Lines of a table: the deviances of every split, their means, and seconds."""
    splits = [compared(policies, seed) for seed in range(n_splits)]
    deviances, seconds = (np.array(part) for part in zip(*splits))
    of = dict(zip(MODELS, deviances.T))
    n_wins = int((of["ours"] <= np.min([of[peer] for peer in PEERS], axis=0)).sum())
    for seed, values in enumerate(deviances):
        cells = [f"{value:.4f}" for value in values]
        yield line(name, f"split {seed}", *cells, "")
    cells = [f"{value:.4f}" for value in deviances.mean(axis=0)]
    yield line(name, "mean", *cells, f"{n_wins} of {n_splits}")
    yield line(name, "seconds", *[f"{value:.1f}" for value in seconds.mean(axis=0)], "")


if __name__ == "__main__":
    args = arguments(__doc__, TABLES, splits=3, clones="clones")
    said = __doc__.partition("\n\n")[2].strip()
    lines = [
        "# Claim frequencies of motor portfolios\n",
        f"`make bench-claims` ({heading(('lightgbm', 'catboost'))}), "
        f"{args.splits} splits\n",
        f"{said}\n",
        *header("table", "", *MODELS, "wins"),
    ]
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for name in args.names or TABLES:
            policies = read(Path(args.clones), name)
            for one in lines_of(name, policies, args.splits):
                lines.append(one)
                print(one, flush=True)
    if args.output:
        args.output.write_text("\n".join([*lines, ""]))
