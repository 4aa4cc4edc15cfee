"""Criteria for iterates, and the rules that pick one by them.

Every estimate of ``ESTIMATES`` is a criterion, and so is any scikit-learn scorer, on
the held-out predictions of one of them.

A rule is ``rule(paths, standard_error)``, with paths (..., n_iterates), and returns the
place to keep in each path; smaller is better, NaN (undefined) is worst, and
``standard_error(places)`` has the standard errors at such places. Add a rule here and
list it in ``RULES``. ``rule="blend"`` is none of these: it combines members
(``blending.py``), whose iterates the least picks.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils import indexable

from .._compat import _safe_indexing, on_host
from .._estimator.estimates.readers import ESTIMATES, Estimate
from ..risk.averages import units_of
from .time_limit import Deadline, is_over


def place_of_least(values):
    """Where the least value of every path is, the earliest of equals; NaN is worst."""
    return np.argmax(values == np.fmin.reduce(values, axis=-1, keepdims=True), axis=-1)


def least(paths, standard_error):
    """The place of the least estimate, the earliest of equals."""
    return place_of_least(paths)


def within_one_standard_error(paths, standard_error):
    """The earliest place within one standard error of the least estimate."""
    best = place_of_least(paths)
    largest = np.fmin.reduce(paths, axis=-1) + standard_error(best)
    first = np.argmax(paths <= largest[..., None], axis=-1)
    # If the error is undefined, no place is within it.
    return np.where(np.isnan(largest), best, first)


RULES = {"min": least, "one_se": within_one_standard_error}

# Estimates with held-out predictions, in the order of preference among those that
# candidates are set to compute.
WITH_PREDICTIONS = ("cv", "loo", "risk")


def automatic(candidates, y):
    """The estimate that "auto" stands for, one for all candidates.

    The first with predictions that the candidates are set to compute. If there is none,
    leave-one-out if it takes no longer than folds, otherwise folds. Candidates without
    folds use the estimates that they have.

    Returns
    -------
    Estimate
    """
    estimates = [ESTIMATES[name] for name in WITH_PREDICTIONS]
    for estimate in estimates:
        if all(_is_asked_for(estimate, candidate) for candidate in candidates):
            return estimate
    if all(_leaves_one_out(candidate, y) for candidate in candidates):
        return ESTIMATES["loo"]
    for estimate in estimates:
        if all(_may_compute(estimate, candidate) for candidate in candidates):
            return estimate
    return ESTIMATES["cv"]


def _is_asked_for(estimate, candidate):
    """Whether a candidate's parameter asks for an estimate explicitly."""
    setting = estimate.setting(candidate.estimator)
    is_left_to_us = isinstance(setting, str) and setting == "auto"
    return not (is_left_to_us or setting is None or setting is False)


def _may_compute(estimate, candidate):
    """Whether a candidate can compute an estimate, and has not switched it off."""
    estimator = candidate.estimator
    is_left_to_us = estimate.setting(estimator) is None
    is_possible = is_left_to_us or estimate.is_on(estimator)
    return is_possible and estimate.is_offered_by(estimator)


def _leaves_one_out(candidate, y):
    """Whether leave-one-out is automatic, and takes no longer than folds."""
    estimator, X = candidate.estimator, candidate.X
    if ESTIMATES["loo"].setting(estimator) not in ("auto", True):
        return False
    try:
        return estimator._leaves_one_out_cheaply(X, y)
    except (TypeError, ValueError):
        estimator._check_data(X, y)  # what is wrong with them is said there
        raise


def computed(estimator, estimate, attribute):
    """A fitted attribute of an estimate that the estimator was set to compute.

    Raises
    ------
    ValueError
        If this fit has none, such as leave-one-out of two rows.
    """
    if not hasattr(estimator, attribute):
        needed = (
            f"criterion={estimate.name!r} needs {attribute}, which this fit of "
            f"{type(estimator).__name__} has not computed. {estimate.limits}"
        )
        raise ValueError(needed.rstrip())
    return getattr(estimator, attribute)


class Criterion:
    """Base class of criteria: the rows that they use.

    Attributes
    ----------
    samples : ndarray of int or None
        The rows that all candidates have held out; None means the rows of each.
    groups : ndarray of int, shape (n_samples,), or None
        The groups of rows that depend on each other; None means that none do.
    sign : float
        1 if smaller is better, else -1.
    deadline : Deadline or None
        When a fit with ``time_limit`` must be over.
    """

    samples = None
    groups = None
    deadline = None

    def error_among(self, estimator):
        """The standard errors, as a function of places among the iterates kept."""
        rows = estimator.recorded_iterations()
        return lambda places: self.standard_error(estimator, rows[places])

    def on_common_rows(self, estimators):
        """The criterion on the rows that all fitted estimators have held out.

        Raises
        ------
        ValueError
            If there are none.
        """
        name = self.estimate.indices
        if not all(hasattr(each, name) for each in estimators):
            return self
        rows = [np.unique(np.hstack(getattr(each, name))) for each in estimators]
        if all(np.array_equal(each, rows[0]) for each in rows):
            return self
        common = reduce(np.intersect1d, rows)
        if not len(common):
            raise ValueError(
                "No row has been held out by all members, so that they cannot "
                "be compared: use criterion='cv'."
            )
        return replace(self, samples=common)


@dataclass(frozen=True, eq=False)
class PathCriterion(Criterion):
    """A path that the estimator has computed.

    Attributes
    ----------
    samples, groups : ndarray of int or None
    deadline : Deadline or None
    """

    estimate: Estimate
    y: object = None
    samples: np.ndarray | None = None
    groups: np.ndarray | None = None
    deadline: Deadline | None = None
    sign = 1.0

    @property
    def name(self):
        """The name of the criterion."""
        return self.estimate.name

    @property
    def stage(self):
        """The smallest factor by which a run grows before it is evaluated again."""
        return self.estimate.stage

    def path(self, estimator):
        """Value of every iterate.

        Raises
        ------
        ValueError
            If this fit has no such estimate, or if some rows only are to be used and
            losses of single rows are not available.
        """
        path = computed(estimator, self.estimate, self.estimate.path)
        return path if self.samples is None else self._averages(estimator)[0]

    def standard_error(self, estimator, t):
        """The standard errors of the values of iterates ``t``."""
        if self.samples is None:
            return getattr(estimator, self.estimate.se_path)[t]
        return self._averages(estimator)[1][t]

    def losses(self, estimator):
        """Losses of the held-out rows; None if they are not available."""
        losses = estimator._held_out_losses(self.name, self.y)
        is_whole = losses is None or self.samples is None
        return losses if is_whole else losses.within(self.samples)

    def _averages(self, estimator):
        """The mean losses of the common rows, and their standard errors."""
        losses = self.losses(estimator)
        if losses is None:
            raise ValueError(
                f"Members have held out different rows, and {type(estimator).__name__} "
                "does not provide the losses of the rows that all have held out: use a "
                "scorer as criterion, or members that hold out the same rows."
            )
        return losses.averages(self.groups)


# Blocks of held-out rows that the standard error of a score is taken over.
N_BLOCKS = 20


def scorer_of(scoring):
    """The scorer with this name, or the callable itself."""
    try:
        return (check_scoring if callable(scoring) else get_scorer)(scoring=scoring)
    except ValueError as error:
        known = ", ".join(map(repr, ["auto", *ESTIMATES]))
        raise ValueError(
            f"criterion must be one of {known}, the name of a scorer "
            "(sklearn.metrics.get_scorer_names() lists them) or a callable "
            "scorer(estimator, X, y), such as make_scorer makes of a metric, got "
            f"{scoring!r}."
        ) from error


def _for_several_classes(name, estimator, y):
    """Advice where a scorer of two classes is asked to score several."""
    if not is_classifier(estimator) or len(np.unique(np.asarray(y))) < 3:
        return ""
    others = [f"{name}_{average}" for average in ("ovr", "macro", "weighted")]
    others = [repr(other) for other in others if other in get_scorer_names()]
    said = f", such as criterion={' or '.join(others)}" if others else ""
    return f" With more than two classes take a scorer of several{said}."


@dataclass(frozen=True, eq=False)
class ScorerCriterion(Criterion):
    """A scorer of the pooled held-out predictions of an iterate.

    Attributes
    ----------
    estimate : Estimate
        The estimate that provides held-out predictions.
    scorer : callable
        ``scorer(estimator, X, y)``, greater is better.
    params : dict
        Metadata that the scorer requests.
    samples, groups : ndarray of int or None
    deadline : Deadline or None
    """

    name: str
    estimate: Estimate
    scorer: object
    X: object
    y: object
    params: dict
    samples: np.ndarray | None = None
    groups: np.ndarray | None = None
    deadline: Deadline | None = None
    sign = -1.0
    # Every iterate is scored anew.
    stage = 2.0

    @classmethod
    def of(cls, scoring, estimate, candidates, X, y, params):
        """The criterion from a scorer's name or a callable, tried before any run.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As the scorer sees it.

        Raises
        ------
        ValueError
            If the scorer does not accept the predictions of the estimator.
        """
        scorer, X = scorer_of(scoring), on_host(X)
        name = scoring if isinstance(scoring, str) else repr(scoring)
        for candidate in {each.member: each for each in candidates}.values():
            estimator = candidate.estimator
            try:
                scorer(estimator._trial_estimator(y), X, y, **params)
            except (TypeError, ValueError, AttributeError, IndexError) as error:
                estimator._check_data(
                    candidate.X, y
                )  # what is wrong with it comes first
                raise ValueError(
                    f"criterion={name} does not score the predictions of "
                    f"{type(estimator).__name__}: {str(error).rstrip('.')}."
                    f"{_for_several_classes(name, estimator, y)}"
                ) from error
        return cls(name, estimate, scorer, *indexable(X, y), params)

    def path(self, estimator):
        """Score of every iterate.

        Raises
        ------
        ValueError
            If the estimator had too few rows to leave one out.
        """
        predictions, rows = self._held_out(estimator)
        score = self.scorer_on(rows)
        scores = [
            score(estimator._held_out_estimator(found, t))
            for t, found in enumerate(predictions)
        ]
        return np.array(scores)

    def score_of(self, estimator, t):
        """Score of iterate ``t`` alone."""
        predictions, rows = self._held_out(estimator)
        return self.scorer_on(rows)(estimator._held_out_estimator(predictions[t], t))

    def standard_error(self, estimator, t):
        """The standard error of the score of iterate ``t``."""
        predictions, rows = self._held_out(estimator)
        found = predictions[t]
        return self.jackknife(
            lambda kept: estimator._held_out_estimator(found[kept], t), rows
        )

    def jackknife(self, predicting, rows):
        """Standard error of a score, by the jackknife over blocks of held-out rows.

        Rows of a group are in one block, and so are several predictions for a row.

        Parameters
        ----------
        predicting : callable
            ``predicting(places)``, an estimator that predicts the rows at these places
            as held out, for any X.
        rows : ndarray of int, shape (n_held_out,)

        Returns
        -------
        float
            NaN if there is one block, or no time.
        """
        units = units_of(rows, self.groups)
        order = np.random.default_rng(0).permutation(units.max() + 1)
        n = min(N_BLOCKS, len(order))
        if n < 2:
            return np.nan
        blocks = np.array_split(order, n)
        scores = []
        for block in blocks:
            if is_over(self.deadline):
                return np.nan
            kept = np.flatnonzero(~np.isin(units, block))
            scores.append(self.scorer_on(rows[kept])(predicting(kept)))
        return float(np.sqrt((n - 1) / n * np.sum((scores - np.mean(scores)) ** 2)))

    def losses(self, estimator):
        """None: scores do not refer to single rows."""
        return None

    def scorer_on(self, rows):
        """The scorer as a function of an estimator that predicts held-out rows."""
        X, y = (_safe_indexing(data, rows) for data in (self.X, self.y))
        params = {
            key: value if value is None else _safe_indexing(value, rows)
            for key, value in self.params.items()
        }
        return lambda held_out: self.scorer(held_out, X, y, **params)

    def _held_out(self, estimator):
        """Held-out predictions of every iterate, and the indices of their rows."""
        estimate = self.estimate
        rows = np.hstack(computed(estimator, estimate, estimate.indices))
        predictions = getattr(estimator, estimate.predictions)
        if self.samples is None:
            return predictions, rows
        kept = np.isin(rows, self.samples)
        return predictions[:, kept], rows[kept]
