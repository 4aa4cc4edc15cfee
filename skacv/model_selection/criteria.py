"""What iterates are judged by: an estimate of the table, or a scorer.

Every estimate of ``ESTIMATES`` is a criterion, and so is any scikit-learn scorer, on
the held-out predictions of one of them.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils import indexable

from .._compat import _safe_indexing, on_host
from .._estimator.estimates.readers import ESTIMATES, Estimate

# Estimates with held-out predictions, in the order of preference among those that
# candidates are set to compute.
WITH_PREDICTIONS = ("cv", "loo", "risk")


def automatic(candidates, X, y, names=WITH_PREDICTIONS):
    """The estimate that "auto" stands for, one for all candidates.

    The first of ``names`` that the candidates are set to compute. If that is left to
    us, leave-one-out where it costs no more than folds would, else folds. Candidates
    that have no folds are judged by what they have.

    Returns
    -------
    Estimate
    """
    estimates = [ESTIMATES[name] for name in names]
    for estimate in estimates:
        if all(_is_asked_for(estimate, candidate) for candidate in candidates):
            return estimate
    if all(_leaves_one_out(candidate, X, y) for candidate in candidates):
        return ESTIMATES["loo"]
    for estimate in estimates:
        if all(_may_compute(estimate, candidate) for candidate in candidates):
            return estimate
    return ESTIMATES["cv"]


def _is_asked_for(estimate, candidate):
    """Whether a candidate's parameter asks for an estimate in so many words."""
    setting = estimate.setting(candidate)
    is_left_to_us = isinstance(setting, str) and setting == "auto"
    return not (is_left_to_us or setting is None or setting is False)


def _may_compute(estimate, candidate):
    """Whether a candidate can compute an estimate, and has not switched it off."""
    setting = estimate.setting(candidate)
    if not estimate.is_offered_by(candidate) or setting is False:
        return False
    return setting is None or estimate.is_on(candidate)


def _leaves_one_out(candidate, X, y):
    """Whether leave-one-out is left to us, and costs no more than folds would."""
    if ESTIMATES["loo"].setting(candidate) not in ("auto", True):
        return False
    try:
        return candidate._leaves_one_out_cheaply(X, y)
    except (TypeError, ValueError):
        candidate._check_data(X, y)  # what is wrong with them is said there
        raise


def computed(estimator, estimate, attribute):
    """A fitted attribute of an estimate that the estimator was set to compute.

    Raises
    ------
    ValueError
        If this fit had none, such as leave-one-out of two rows.
    """
    if not hasattr(estimator, attribute):
        needed = (
            f"criterion={estimate.name!r} needs {attribute}, which this fit of "
            f"{type(estimator).__name__} has not computed. {estimate.limits}"
        )
        raise ValueError(needed.rstrip())
    return getattr(estimator, attribute)


class Criterion:
    """What both judges have: the rows that they judge by.

    Attributes
    ----------
    samples : ndarray of int or None
        The rows that all candidates have held out; None is those that each has.
    sign : float
        1 where smaller is better.
    """

    samples = None

    def on_common_rows(self, estimators):
        """The judge by rows that all fitted estimators have held out.

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
    """Judges iterates by a path that the estimator has computed.

    Attributes
    ----------
    estimate : Estimate
    y : as passed to fit
    samples : ndarray of int or None
    """

    estimate: Estimate
    y: object = None
    samples: np.ndarray | None = None
    sign = 1.0

    @property
    def name(self):
        """What the criterion is called."""
        return self.estimate.name

    @property
    def stage(self):
        """By what factor a run grows at least before it is judged again."""
        return self.estimate.stage

    def path(self, estimator):
        """Value of every iterate.

        Raises
        ------
        ValueError
            If this fit had no such estimate, or does not say what single rows cost and
            has to be judged by some of its rows.
        """
        path = computed(estimator, self.estimate, self.estimate.path)
        return path if self.samples is None else self._averages(estimator)[0]

    def standard_error(self, estimator, t):
        """The standard errors of the values of iterates ``t``."""
        if self.samples is None:
            return getattr(estimator, self.estimate.se_path)[t]
        return self._averages(estimator)[1][t]

    def losses(self, estimator):
        """Losses of the held-out rows; None if the estimator does not say them."""
        losses = estimator._held_out_costs(self.name, self.y)
        is_whole = losses is None or self.samples is None
        return losses if is_whole else losses.within(self.samples)

    def _averages(self, estimator):
        """The mean losses of the common rows, and their standard errors."""
        losses = self.losses(estimator)
        if losses is None:
            raise ValueError(
                "Members have held out different rows, and the losses of the rows that "
                f"all have held out are not known of {type(estimator).__name__}: take "
                "a scorer as criterion, or members that hold out the same rows."
            )
        return losses.averages()


# Groups of held-out rows that the standard error of a score is taken over.
N_GROUPS = 20


def scorer_of(scoring):
    """The scorer of a name, or the callable itself."""
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


@dataclass(frozen=True, eq=False)
class ScorerCriterion(Criterion):
    """Judges iterates by a scorer on their pooled held-out predictions.

    Attributes
    ----------
    name : str
    estimate : Estimate
        Whose held-out predictions are taken.
    scorer : callable
        ``scorer(estimator, X, y)``, greater is better.
    X, y : as passed to fit
    params : dict
        Metadata that the scorer has asked for.
    samples : ndarray of int or None
    """

    name: str
    estimate: Estimate
    scorer: object
    X: object
    y: object
    params: dict
    samples: np.ndarray | None = None
    sign = -1.0
    # Every iterate is scored anew.
    stage = 2.0

    @classmethod
    def of(cls, scoring, estimate, estimators, X, y, params):
        """The judge of a scorer's name or a callable, tried before anything is run.

        Raises
        ------
        ValueError
            If the scorer does not take the predictions of the estimator.
        """
        scorer, X = scorer_of(scoring), on_host(X)
        name = scoring if isinstance(scoring, str) else repr(scoring)
        for estimator in estimators:
            try:
                scorer(estimator._trial_estimator(y), X, y, **params)
            except (TypeError, ValueError, AttributeError, IndexError) as error:
                estimator._check_data(X, y)  # what is wrong with them comes first
                raise ValueError(
                    f"criterion={name} does not score the predictions of "
                    f"{type(estimator).__name__}: {error}"
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
        return np.array(
            [
                score(estimator._held_out_estimator(found, t))
                for t, found in enumerate(predictions)
            ]
        )

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
        """Standard error of a score, by the jackknife over groups of held-out rows.

        Parameters
        ----------
        predicting : callable
            ``predicting(places)``, an estimator that predicts the rows at these places
            as held out, whatever X is.
        rows : ndarray of int, shape (n_held_out,)

        Returns
        -------
        float
        """
        order = np.random.default_rng(0).permutation(len(rows))
        groups = np.array_split(order, min(N_GROUPS, len(rows)))
        others = (np.setdiff1d(order, group) for group in groups)
        scores = [self.scorer_on(rows[kept])(predicting(kept)) for kept in others]
        n = len(groups)
        return float(np.sqrt((n - 1) / n * np.sum((scores - np.mean(scores)) ** 2)))

    def losses(self, estimator):
        """None: scores are not of single rows."""
        return None

    def scorer_on(self, rows):
        """The scorer as a function of what predicts these rows as held out."""
        X, y = (_safe_indexing(data, rows) for data in (self.X, self.y))
        params = {
            key: value if value is None else _safe_indexing(value, rows)
            for key, value in self.params.items()
        }
        return lambda held_out: self.scorer(held_out, X, y, **params)

    def _held_out(self, estimator):
        """Held-out predictions of every iterate, and which rows they are of."""
        estimate = self.estimate
        rows = np.hstack(computed(estimator, estimate, estimate.indices))
        predictions = getattr(estimator, estimate.predictions)
        if self.samples is None:
            return predictions, rows
        kept = np.isin(rows, self.samples)
        return predictions[:, kept], rows[kept]
