"""Do more rows make the default worse than its rivals, 500 to a million?"""

from functools import partial
from itertools import pairwise, product

from ..unseen.tables import TASKS
from .bars import Bar, over
from .data import drawn
from .measure import compared, megabytes
from .methods import LIGHTGBM, OURS, methods

TITLE = "Simulated rows"
ABOUT = """
Uniform columns, ten of which matter: half of the signal is smooth and half
interactions, each of variance one; noise of variance one, or labels with the signal as
their logit. The error is the mean squared error or the log loss on 50,000 fresh rows,
whose noise is another at every size: sizes are compared by the excess.
"""
SIZES = {n: 20 for n in (500, 2000, 5000, 20_000, 100_000, 300_000)} | {1_000_000: 10}
MANY_ROWS = 20_000  # from here on there are bars against LightGBM


def measured(task, n, n_columns, settings):
    data = drawn(task, settings.rows(n), n_columns)
    results = compared(methods(), data, settings)
    return {"x_megabytes": megabytes(data.X), "methods": results}


def cases():
    """Functions of the settings, by name."""
    return {
        f"{task}-{n}": partial(measured, task, n, n_columns)
        for task, (n, n_columns) in product(TASKS, SIZES.items())
    }


def bars(results):
    """Bars of all cases that are there.

    Parameters
    ----------
    results : dict of str to dict
        What the cases have given, by name.
    """
    for task in TASKS:
        excesses = {}
        for n in SIZES:
            case = f"{task}-{n}"
            found = results.get(case, {}).get("methods", {})
            if "excess" in found.get(OURS, {}):
                excesses[n] = found[OURS]["excess"]
                if n >= MANY_ROWS:
                    limits = {"error": 1.01, "excess": 1.1, "seconds": 3.0}
                    yield from over(case, found, LIGHTGBM, **limits)
        for fewer, more in pairwise(excesses):
            what, ratio = f"excess, over that with {fewer} rows", excesses[more]
            yield Bar(f"{task}-{more}", what, ratio / excesses[fewer], 1.0)
