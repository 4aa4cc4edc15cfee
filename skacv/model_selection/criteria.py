"""Criteria for iterates, and the rules that pick one by them.

Every estimate of ``ESTIMATES`` is a criterion, and so is any scikit-learn scorer, on
the held-out predictions of one of them.

A rule is ``rule(paths, standard_error)``, with paths (..., n_iterates), and returns the
index to keep in each path; smaller is better, NaN (undefined) is worst, and
``standard_error(indices)`` has the standard errors at such indices. Add a rule here and
list it in ``RULES``. ``rule="blend"`` is none of these: it combines members
(``blending.py``), each at its least iterate; nor is ``rule="average"``, which combines
iterates of one run (``averaging.py``).
"""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import (
    check_scoring,
    get_scorer,
    get_scorer_names,
    make_scorer,
)
from sklearn.utils import indexable

from .._compat import _safe_indexing, on_host, with_positive_class
from .._estimator.delegation import class_of
from .._estimator.estimates.held_out import held_out_losses_of
from .._estimator.estimates.held_out_predictor import HeldOutPredictor
from .._estimator.estimates.readers import ESTIMATES, Estimate
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto, is_off
from .._estimator.prediction.survival_scores import (
    concordance,
    integrated_brier_score,
)
from .._names import did_you_mean, question
from .._warnings import warn
from ..risk.held_out_rows import units_of
from .failures import Failed, attempt, score_or_nan


def index_of_least(paths, standard_error=None):
    """Index of the least value of every path, the earliest of equals; NaN is worst."""
    return np.argmax(paths == np.fmin.reduce(paths, axis=-1, keepdims=True), axis=-1)


def within_one_standard_error(paths, standard_error):
    """The earliest index within one standard error of the least estimate."""
    best = index_of_least(paths)
    largest = np.fmin.reduce(paths, axis=-1) + standard_error(best)
    first = np.argmax(paths <= largest[..., None], axis=-1)
    # If the error is undefined, no index is within it.
    return np.where(np.isnan(largest), best, first)


RULES = {"min": index_of_least, "one_se": within_one_standard_error}
# Rules that keep a weighted mean: of members, or of iterates.
MEANS = "blend", "average"

# Estimates with held-out predictions. The first that candidates are set to compute is
# preferred.
WITH_PREDICTIONS = ("cv", "loo", "risk")


def resolve_auto(candidates, y):
    """The estimate that "auto" stands for, one for all candidates.

    The first with predictions that the candidates are set to compute. If there is none,
    leave-one-out if it takes no longer than folds, otherwise folds. Candidates without
    folds use the estimates that they have.
    """
    for name in WITH_PREDICTIONS:
        for candidate in candidates:
            setting = ESTIMATES[name].setting(candidate.model)
            if is_off(setting) or is_auto(setting):
                break
        else:
            return ESTIMATES[name]
    leaves_one_out = True
    for candidate in candidates:
        estimator, X = candidate.model, candidate.X
        if ESTIMATES["loo"].setting(estimator) not in ("auto", True):
            leaves_one_out = False
        if not leaves_one_out:
            break
        try:
            leaves_one_out = terms_of(estimator).leaves_one_out_cheaply(X, y)
        except (TypeError, ValueError):
            terms_of(estimator).check_data(X, y)  # bad data have an error of their own
            raise
    if leaves_one_out:
        return ESTIMATES["loo"]
    for name in WITH_PREDICTIONS:
        estimate = ESTIMATES[name]
        for candidate in candidates:
            estimator = candidate.model
            # All can compute it, and none has switched it off.
            is_off_here = not (
                estimate.setting(estimator) is None or estimate.is_on(estimator)
            )
            if is_off_here or not estimate.is_offered_by(estimator):
                break
        else:
            return estimate
    return ESTIMATES["cv"]


def list_losses(losses):
    """The members and their losses, for errors."""
    return ", ".join(
        f"{name!r}: {getattr(loss, 'name', 'another loss')}"
        for name, loss in losses.items()
    )


def not_computed(estimator, estimate, attribute):
    """The error of a fit without an estimate, such as leave-one-out of two rows."""
    needed = (
        f"criterion={estimate.name!r} needs {attribute}, which this fit of "
        f"{class_of(estimator)} did not compute. {estimate.limits}"
    )
    return ValueError(needed.rstrip())


@dataclass(frozen=True, eq=False)
class Criterion:
    """Base class of criteria; ``estimate`` provides what they are computed from."""

    name: str
    estimate: Estimate
    y: Any = None
    # The rows that all candidates have held out; None means the rows of each.
    samples: np.ndarray | None = None
    # The group of every sample, where rows depend on each other.
    groups: np.ndarray | None = None
    # The end of a fit with ``time_limit``.
    deadline: Any = None
    # What judges the order of rankers, such as "ndcg@5"; None: what they choose.
    measure: str | None = None
    # 1 if smaller is better, else -1.
    sign = 1.0

    @property
    def settings(self):
        """Arguments of ``begin`` of the runs that it evaluates."""
        return {} if self.measure is None else {"measure": self.measure}

    def growth_of(self, model):
        """The smallest factor by which a run grows before it is evaluated again."""
        return 2.0

    def restrict_to_common_rows(self, runs):
        """The criterion on the rows that all runs have held out; ValueError if none."""
        rows = []
        for run in runs:
            held_out = self.estimate.of(run.estimator)
            if held_out is None or held_out.indices is None:
                return self
            rows.append(np.unique(np.hstack(held_out.indices)))
        common = reduce(np.intersect1d, rows)
        if len(common) == max(map(len, rows)):
            return self
        if not len(common):
            raise ValueError(
                "No row was held out by all members, so they cannot be compared: use "
                "criterion='cv'."
            )
        return replace(self, samples=common)


@dataclass(frozen=True, eq=False)
class PathCriterion(Criterion):
    """A path that the estimator has computed."""

    def growth_of(self, model):
        return min(self.estimate.growth, terms_of(model).growth)

    def path(self, estimator):
        """Value of every iterate, from losses of single rows if only some count."""
        held_out = self.estimate.of(estimator)
        if held_out is None:
            raise not_computed(estimator, self.estimate, self.estimate.path)
        return held_out.path if self.samples is None else self._averages(estimator)[0]

    def error_among(self, estimator, iterations, indices):
        """The standard errors of those of some iterates that are at these indices."""
        if self.samples is None:
            errors = self.estimate.of(estimator).se_path
        else:
            _, errors = self._averages(estimator)
        return errors[iterations[indices]]

    def losses(self, estimator):
        """Losses of the held-out rows; None if they are not available."""
        losses = held_out_losses_of(estimator, self.estimate, self.y)
        if losses is None or self.samples is None:
            return losses
        return losses.restrict_to(self.samples)

    def _averages(self, estimator):
        """The mean losses of the common rows, and their standard errors."""
        losses = self.losses(estimator)
        if losses is None:
            raise ValueError(
                f"Members have held out different rows, and {class_of(estimator)} "
                "does not provide the losses of the rows held out by all: use a "
                "scorer as criterion, or members that hold out the same rows."
            )
        return losses.averages(self.groups)


# Criteria for survival times, of all held-out rows together: the path of folds under
# another name, and scorers.
SURVIVAL_CRITERIA = "cox", "concordance", "ibs"

# Blocks of held-out rows that the standard error of a score is taken over.
N_BLOCKS = 20


def score_brier(estimator, X, y, sample_weight=None):
    """Minus the integrated Brier score of held-out predictions of a survival model."""
    log_ratios = estimator.predict(X)
    # Before any run there is no record, and the predictions are only tried.
    if hasattr(estimator.model, "record_"):
        log_ratios = estimator.model.record_.loss.predictor(log_ratios)
    return -integrated_brier_score(y, log_ratios, sample_weight)


SURVIVAL_SCORERS = {"concordance": make_scorer(concordance), "ibs": score_brier}


def scorer_of(scoring):
    """The scorer with this name, or the callable itself."""
    if isinstance(scoring, str) and scoring in SURVIVAL_SCORERS:
        return SURVIVAL_SCORERS[scoring]
    try:
        return (check_scoring if callable(scoring) else get_scorer)(scoring=scoring)
    except ValueError as error:
        names = ", ".join(map(repr, ["auto", *ESTIMATES]))
        meant = suggest_criterion(scoring) if isinstance(scoring, str) else ""
        raise ValueError(
            f"criterion must be one of {names}, the name of a scorer "
            "(sklearn.metrics.get_scorer_names() lists them) or a callable "
            "scorer(estimator, X, y), such as one from make_scorer, or of survival "
            f"times 'cox', 'concordance' or 'ibs', got {scoring!r}.{meant}"
        ) from error


# What other packages call scorers.
OTHER_NAMES = {"aucpr": "average_precision", "prauc": "average_precision"}


def suggest_criterion(name, most=3):
    """Whether a criterion was meant that contains a name, or has it as initials."""
    criteria = [*ESTIMATES, *get_scorer_names()]
    letters = {criterion: criterion.replace("_", "") for criterion in criteria}
    squeezed = "".join(filter(str.isalnum, name.lower()))
    if squeezed in OTHER_NAMES:
        return question([OTHER_NAMES[squeezed]])
    for criterion, joined in letters.items():
        if squeezed.removesuffix("score") == joined:
            return question([criterion])
    nearest = []
    for criterion, joined in letters.items():
        words = criterion.removeprefix("neg_").split("_")
        initials = "".join(word[0] for word in words)
        if squeezed and (squeezed in joined or squeezed == initials):
            nearest.append(criterion)
    if not nearest:
        return did_you_mean(name, criteria, most)
    return question(sorted(nearest, key=len)[:most])


def _advise_for_several_classes(name, estimator, y):
    """Advice if a scorer of two classes is to score several."""
    if not is_classifier(estimator) or len(np.unique(np.asarray(y))) < 3:
        return ""
    scorers = [f"{name}_{average}" for average in ("ovr", "macro", "weighted")]
    scorers = [repr(scorer) for scorer in scorers if scorer in get_scorer_names()]
    such_as = f", such as criterion={' or '.join(scorers)}" if scorers else ""
    return f" With more than two classes use a multiclass scorer{such_as}."


@dataclass(frozen=True, eq=False)
class ScorerCriterion(Criterion):
    """A scorer of the pooled held-out predictions of an iterate."""

    # ``scorer(estimator, X, y)``, greater is better.
    scorer: Any = field(kw_only=True)
    X: Any = field(kw_only=True)
    # Metadata that the scorer requests.
    params: dict = field(kw_only=True)
    sign = -1.0

    @classmethod
    def of(cls, scoring, estimate, candidates, X, y, params):
        """The criterion from a scorer's name or a callable, tried before any run.

        X is what the scorer sees; ``params`` are metadata that it requests.
        """
        scorer, X, name = scorer_of(scoring), on_host(X), repr(scoring)
        if isinstance(scoring, str):
            name = scoring
            if scoring not in SURVIVAL_SCORERS:
                scorer = with_positive_class(scorer, y)

        def check_scores(candidate):
            estimator = candidate.model
            try:
                trial = HeldOutPredictor.from_targets(estimator, candidate.X, y)
                scorer(trial, X, y, **params)
            except (TypeError, ValueError, AttributeError, IndexError) as error:
                # Bad data have an error of their own.
                terms_of(estimator).check_data(candidate.X, y)
                model = class_of(estimator)
                # Errors of scikit-learn name the class of what is scored.
                why = str(error).replace(HeldOutPredictor.__name__, model).rstrip(".")
                raise ValueError(
                    f"criterion={name} cannot score the predictions of {model}: {why}."
                    f"{_advise_for_several_classes(name, estimator, y)}"
                ) from error

        # What some of the members cannot do their runs show.
        of_members = {candidate.member: candidate for candidate in candidates}.values()
        tried = [attempt(check_scores, candidate) for candidate in of_members]
        if all(isinstance(result, Failed) for result in tried):
            raise tried[0].error
        X, y = indexable(X, y)
        return cls(name, estimate, y, scorer=scorer, X=X, params=params)

    def path(self, estimator, iterations=None):
        """Score of every iterate, or of some; NaN for those that it cannot score.

        The error is raised if these are all.
        """
        predictions, rows = self._held_out(estimator)
        score, scores, failed = self.bind_scorer(rows), [], []

        def score_at(t):
            return score(HeldOutPredictor.from_model(estimator, predictions[t], t))

        for t in range(len(predictions)) if iterations is None else iterations:
            result = attempt(score_at, t)
            if isinstance(result, Failed):
                failed.append(result)
            scores.append(score_or_nan(result))
        if failed and len(failed) == len(scores):
            raise failed[0].error
        if failed:
            warn(
                f"Scoring failed. The score of {len(failed)} of {len(scores)} iterates "
                f"of {type(estimator).__name__} by criterion={self.name} is nan. "
                f"Details: {failed[0].why}",
                UserWarning,
            )
        return np.array(scores)

    def error_among(self, estimator, iterations, indices):
        """The standard errors of those of some iterates that are at these indices."""
        return self.standard_error(estimator, iterations[indices])

    def standard_error(self, estimator, t):
        """The standard error of the score of iterate ``t``."""
        predictions, rows = self._held_out(estimator)
        predictions_t = predictions[t]
        return self.jackknife(
            lambda kept: HeldOutPredictor.from_model(estimator, predictions_t[kept], t),
            rows,
        )

    def jackknife(self, predicting, rows):
        """Standard error of a score, by the jackknife over blocks of held-out rows.

        Rows of a group are in one block, and so are several predictions for a row.
        ``predicting(indices)`` is an estimator that predicts the rows at these indices
        as held out, for any X. Returned is NaN if there is one block, or no time.

        Shapes: rows (n_held_out,).
        """
        units = units_of(rows, self.groups)
        order = np.random.default_rng(0).permutation(units.max() + 1)
        n = min(N_BLOCKS, len(order))
        if n < 2:
            return np.nan
        scores = []

        def score_of(kept):
            return self.bind_scorer(rows[kept])(predicting(kept))

        for block in np.array_split(order, n):
            if self.deadline is not None and self.deadline.is_over():
                return np.nan
            kept = np.flatnonzero(~np.isin(units, block))
            scores.append(score_or_nan(attempt(score_of, kept)))
        return float(np.sqrt((n - 1) / n * np.sum((scores - np.mean(scores)) ** 2)))

    def losses(self, estimator):
        """None: scores do not refer to single rows."""
        return None

    def bind_scorer(self, rows):
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
        held_out = estimate.of(estimator)
        if held_out is None or held_out.indices is None:
            raise not_computed(estimator, estimate, f"{estimate.name}_indices_")
        rows, predictions = np.hstack(held_out.indices), held_out.prediction
        if self.samples is None:
            return predictions, rows
        kept = np.isin(rows, self.samples)
        return predictions[:, kept], rows[kept]
