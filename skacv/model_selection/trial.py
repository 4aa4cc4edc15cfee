"""A trial of the default members on a sample of rows, before they run on all."""

import warnings
from contextlib import suppress
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from .._compat import _num_samples, _safe_indexing, drop_callbacks, is_foreign
from .._estimator.data.checks import validate_groups
from .._estimator.estimates.folds import ShuffledFolds
from ..risk.held_out_rows import drawn_units
from .candidates import list_candidates
from .choose_criteria import choose_criteria
from .data import SearchData
from .defaults.decisive_rows import count_decisive_rows
from .defaults.portfolio import FEWEST_ROWS, list_trial_forms
from .optimism import Uncorrected
from .runner import Budget, run_all
from .select import select
from .shared import shared_work

# Rows of a trial: a twentieth of all, from the first number to the second. The weights
# of the members are found within a tenth or two from as many. Under a log link rows
# count as ``count_decisive_rows`` says.
ROWS_OF_TRIAL = 1000, 2000
SHARE_OF_ROWS = 0.05
# A member of smaller weight moves predictions by less than a tenth of what it differs
# from the other members, and squared errors by a hundredth of the square.
LEAST_WEIGHT = 0.1
# Rows of each class that a sample has to have.
ROWS_OF_CLASS = 10
# The share of a time limit that a trial may take.
SHARE_OF_TIME = 0.1
WITHOUT_WEIGHT = "no weight in a trial on some of the rows"


def leave_out_the_weightless(owner, data):
    """The data without default members that would have no weight in the blend.

    A trial on some of the rows shows which, where these are many. Those that gain most
    from more rows stay whatever their weight. A trial says nothing of members where the
    sample lacks classes, or where ``cv`` or metadata cannot be those of a sample.
    """
    is_blend = owner.estimator is None and data.rule == "blend"
    if not (is_blend and data.n_rows >= FEWEST_ROWS):
        return data
    weights = data.params.get("sample_weight")
    n_decisive = count_decisive_rows(owner._default_loss(), data.y, weights)
    if n_decisive < FEWEST_ROWS:
        return data
    has_own_folds = not isinstance(owner.cv, Integral | None)
    has_metadata = bool(data.params.keys() - {"sample_weight", "groups"})
    if has_own_folds or has_metadata or is_foreign(data.passed_X):
        return data
    rows = draw_rows(data.X, data.params, n_decisive / data.n_rows)
    if rows is None or (data.of_classes and lacks_classes(np.asarray(data.y), rows)):
        return data
    weights = weights_in_trial(owner, data, rows)
    weightless = {name for name, weight in weights.items() if weight < LEAST_WEIGHT}
    return data.leave_out(weightless - data.essential, WITHOUT_WEIGHT)


def weights_in_trial(owner, data, rows):
    """By name, the largest weight that default members may have, by a blend of rows.

    It is the mean weight over bootstrap draws of held-out rows, and its standard error
    more. Members without a weight that is known are not in it.
    """
    # Two folds take half the time of five, and hold out every row as well.
    trial = clone(owner).set_params(
        verbose=0, cv=ShuffledFolds(data.of_classes, n_splits=2)
    )
    if owner.time_limit is not None:
        trial.set_params(time_limit=SHARE_OF_TIME * owner.time_limit)
    if is_classifier(trial) and trial.class_weight is not None:
        trial.set_params(class_weight=None)  # weights of rows have those of classes
    drop_callbacks(trial)
    params = {name: _safe_indexing(value, rows) for name, value in data.params.items()}
    X, y = _safe_indexing(data.X, rows), np.asarray(data.y)[rows]
    rng = check_random_state(trial.random_state)
    with warnings.catch_warnings(action="ignore"):
        originals = None if data.originals is None else data.originals[rows]
        sample = SearchData.of(
            trial, X, y, params, forms=list_trial_forms, originals=originals
        )
        candidates = list_candidates(trial, sample, rng)
        criteria = choose_criteria(trial, sample, candidates)
        # Models on all rows are not used, and have few stages.
        budget = Budget.of(trial, sample, criteria)
        budget = replace(budget, growth="first", min_delta=0, judges_open_ended=False)
        with shared_work(trial, sample, candidates, criteria) as groups:
            run_all(trial, sample, candidates, criteria, budget, groups)
        selection = select(candidates, criteria, sample, groups)
        with suppress(Uncorrected):  # its time is over
            return selection.comparison.largest_weights(rng)
    return {}


def lacks_classes(y, rows):
    """Whether a sample of rows has too few of a class, of which each row has one."""
    if y.size != len(y):
        return False
    counts = np.unique(y[rows], return_counts=True)[1]
    return len(counts) < len(np.unique(y)) or counts.min() < ROWS_OF_CLASS


def draw_rows(X, params, decisive_share):
    """Indices of the rows of a trial; None if they would be of one group.

    ``decisive_share`` is that of the rows that count. They are rows of positive weight,
    of whole groups where at least two of these are as many rows; of some groups that
    are larger, rows are drawn as if they had none.
    """
    counted, groups = np.arange(_num_samples(X)), None
    if "sample_weight" in params:
        counted = np.flatnonzero(params["sample_weight"])
    if "groups" in params:
        labels = validate_groups(params["groups"], _num_samples(X))
        groups = np.unique(labels[counted], return_inverse=True)[1]
    n_decisive = decisive_share * len(counted)
    n_drawn = np.clip(SHARE_OF_ROWS * n_decisive, *ROWS_OF_TRIAL) / decisive_share
    n_drawn = round(float(n_drawn))
    for units in (groups, None):
        rows, _ = drawn_units(len(counted), units, n_drawn)
        if groups is None or len(np.unique(groups[rows])) > 1:
            return counted[rows]
    return None
