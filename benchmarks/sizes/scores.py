"""Does the default say the truth about itself where folds are partly run?"""

import warnings
from functools import partial
from itertools import product

import numpy as np
from scipy.special import xlogy
from threadpoolctl import threadpool_limits

from ..framework import seconds
from ..unseen.tables import TASKS
from .bars import Bar
from .data import drawn, probabilities
from .measure import errors
from .methods import OURS, methods

TITLE = "What the default says of itself"
ABOUT = """
The same data and other seeds: `best_score_corrected_` over the true error, which is the
excess on 50,000 fresh rows and the error of the truth, and how many of these rows
`predict_interval(coverage=0.9)` covers.
"""
COVERAGE = 0.9
# Seeds by number of rows; of one number of rows the mean over seeds is asked for.
SEEDS = {20_000: range(1, 21), 100_000: range(1, 3)}
N_COLUMNS = 20


def of_truth(data):
    """The mean error of the truth on the fresh rows."""
    if data.task == "regression":
        return 1.0
    true = probabilities(data.truth)
    return -float(np.mean(xlogy(true, true) + xlogy(1 - true, 1 - true)))


def measured(task, n, seed, settings):
    data = drawn(task, settings.rows(n), N_COLUMNS, seed)
    with warnings.catch_warnings(), threadpool_limits(settings.threads):
        warnings.simplefilter("ignore")
        model = methods()[OURS](task, settings.threads, False)
        elapsed, model = seconds(model.fit, data.X, data.y)
        true = of_truth(data) + errors(model, data)["excess"]
        said = float(model.best_score_corrected_)
        results = {"seconds": elapsed, "true": true, "said": said}
        if task == "regression":
            bounds = model.predict_interval(data.X_fresh, coverage=COVERAGE)
            covered = (bounds[:, 0] <= data.y_fresh) & (data.y_fresh <= bounds[:, 1])
            results["coverage"] = float(np.mean(covered))
    return {"methods": {OURS: results}}


def cases():
    """Functions of the settings, by name."""
    return {
        f"{task}-{n}-seed-{seed}": partial(measured, task, n, seed)
        for task, (n, seeds) in product(TASKS, SEEDS.items())
        for seed in seeds
    }


def bars(results):
    """Bars of the means over seeds.

    Parameters
    ----------
    results : dict of str to dict
        What the cases have given, by name.
    """
    for task, (n, seeds) in product(TASKS, SEEDS.items()):
        names = [f"{task}-{n}-seed-{seed}" for seed in seeds]
        found = [results[name]["methods"][OURS] for name in names if name in results]
        if not found:
            continue
        ratio = float(np.mean([one["said"] / one["true"] for one in found]))
        case = f"{task}-{n}, {len(found)} seeds"
        yield Bar(case, "best_score_corrected_ over the true error", ratio, 1.02, 0.98)
        covered = [one["coverage"] for one in found if "coverage" in one]
        if covered:
            what = f"coverage of intervals of {COVERAGE:.0%}"
            yield Bar(case, what, float(np.mean(covered)), 0.91, 0.89)
