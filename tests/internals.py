"""The few parts of skacv that tests reach besides what is public, all of them here.

They are functions of arrays with an oracle by brute force that no fit shows alone, and
tables of default members for data that would be too large for a test. A test that takes
what it needs of ``_estimator``, ``kernel``, ``staged``, ``tables`` and
``model_selection`` from here goes on when these change.
"""

import numpy as np
from sklearn.utils import check_random_state

from skacv._estimator.devices import convert_to_numpy
from skacv._estimator.estimates.held_out import HeldOutLosses, OfOneIterate
from skacv._estimator.prediction.calibration import scale_of
from skacv._estimator.prediction.prediction_intervals import (
    fit_sizes,
    select_kept_columns,
)
from skacv._estimator.run.data_reduction import parts_of_rows
from skacv._estimator.run.stopping import Patience, halve_runs, later_gain
from skacv.converged.fitted_models import adapter_of
from skacv.kernel.centers import Features
from skacv.kernel.classifier import clip_probabilities
from skacv.kernel.eigenpro import batches_of
from skacv.kernel.kernels import KERNELS, RADIAL_KERNELS, scale_gamma, squared_distances
from skacv.kernel.ridge import (
    DiagonalInverse,
    EveryRow,
    FewerCenters,
    KernelRidge,
    ShiftedInverse,
    enough_centers,
)
from skacv.model_selection.advice import is_still_improving
from skacv.model_selection.criteria import RULES
from skacv.model_selection.defaults.portfolio import (
    PORTFOLIOS,
    TableInfo,
    infer_task,
    select_members,
)
from skacv.model_selection.mixtures import (
    greedy_weights,
    least_squares_weights,
    likeliest_weights,
)
from skacv.model_selection.optimism import (
    Draws,
    RecordedLosses,
    choose_in_draws,
    possible_gain,
)
from skacv.staged.estimator import as_staged
from skacv.staged.fits import last_of

__all__ = [
    "KERNELS",
    "RADIAL_KERNELS",
    "RULES",
    "TASKS",
    "DiagonalInverse",
    "EveryRow",
    "Features",
    "FewerCenters",
    "KernelRidge",
    "OfOneIterate",
    "Patience",
    "ShiftedInverse",
    "as_staged",
    "batches_of",
    "bound_of_later_gain",
    "clip_probabilities",
    "converged_fit",
    "convert_to_numpy",
    "default_members",
    "drawn_groups",
    "enough_centers",
    "fit_sizes",
    "folds_beside",
    "greedy_weights",
    "halve_runs",
    "inferred_task",
    "is_still_improving",
    "keeps_data",
    "last_of",
    "later_gain",
    "least_squares_weights",
    "likeliest_weights",
    "loss_name",
    "parts_of_rows",
    "row_weights",
    "rows_of_staged_run",
    "scale_gamma",
    "scale_of",
    "score_of_choice",
    "select_kept_columns",
    "solver_on",
    "squared_distances",
    "stages_of",
    "without_rows",
]

TASKS = tuple(PORTFOLIOS)


def default_members(task, n_rows=100, n_columns=5, n_targets=1, **properties):
    """The default members for a table of some size that take it, by name."""
    table = TableInfo(n_rows, n_columns, n_targets, **properties)
    kept, _ = select_members(PORTFOLIOS[task](table), table)
    return {member.name: member.estimator for member in kept}


def inferred_task(y):
    """What the default takes y for."""
    return infer_task(None, y)


def converged_fit(model, *data):
    """A model of scikit-learn as ``approximate_loo`` sees it."""
    (converged,) = adapter_of(type(model))(model, *data)
    return converged


def drawn_groups(n_rows, groups=None, classes=None, seed=0):
    """Groups of rows, and how often draws of a corrected score have each of them."""
    rng = check_random_state(seed)
    return Draws.of(np.arange(n_rows), np.ones(n_rows), rng, groups, classes)


def _recorded(losses):
    """A run with these losses of rows, (n_iterates, n_rows), which has no errors."""
    rows, n_iterates = np.arange(losses.shape[1]), len(losses)
    weights = np.ones(len(rows))
    held_out = HeldOutLosses(rows, rows, weights, n_iterates, losses.__getitem__)
    return RecordedLosses(0, held_out, np.arange(n_iterates), None)


def score_of_choice(losses, seed):
    """The corrected score of a choice among iterates, losses (n_iterates, n_rows)."""
    draws = drawn_groups(losses.shape[1], seed=seed)
    counts = draws.without_parts
    recorded = [_recorded(losses)]
    chosen = choose_in_draws(recorded, RULES["min"], draws.group_of, counts)
    return chosen.mean_over_rest(counts)[0]


def bound_of_later_gain(losses, t, seed=0, groups=None):
    """The bound of what iterates after t may gain, losses (n_iterates, n_rows)."""
    draws = drawn_groups(losses.shape[1], groups, seed=seed)
    return possible_gain(_recorded(losses), t, draws)


def row_weights(model):
    """Weights of the rows in the loss of a fitted model, times those of classes."""
    return model.record_.weights


def loss_name(model):
    """The name of the loss in the paths of a fitted model."""
    return model.record_.loss.name


def rows_of_staged_run(run):
    """The rows that the fits of a run in stages keep beside their library; or None."""
    return [fit.X for fit in (run.main, *run.folds)]


def folds_beside(run):
    """The folds that go on in the products of a run; None if they run afterwards."""
    side_runs = run.live.side_runs
    return None if side_runs is None else side_runs.folds


def without_rows(model):
    """Coefficients and intercepts without each left-out row, for every target."""
    return model._coefficients_without_rows()


def stages_of(model):
    """The stages of a booster, of which a run that has ended keeps no training rows."""
    return model.record_.iterates.model.stages


def keeps_data(model):
    """Whether a fitted model keeps its rows for later questions."""
    return model.record_.data is not None


def solver_on(n_rows, machine):
    """The solver of a kernel machine for so many rows, which a fit need not have."""
    return machine._spec().solver.name_on(n_rows)
