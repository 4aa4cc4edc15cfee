"""Criteria by which an iteration is chosen, and where an estimator keeps them.

Add a criterion here, list it in ``CRITERIA``. Any scikit-learn scorer is a
criterion too, on the held-out predictions of one of them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils import indexable

from .._compat import _safe_indexing
from .._estimator.left_out import FEWEST_ROWS
from .._estimator.parameters import plain


class Criterion(NamedTuple):
    """A path that a fitted estimator may have; smaller is better.

    Attributes
    ----------
    parameter : str
        The estimator's parameter that switches the computation on or off. Left
        at "auto", it is switched off for every other criterion.
    path, se_path : str
        Fitted attributes: the estimate of every iterate and its standard error.
    predictions, indices : str or None
        Fitted attributes: held-out predictions of every iterate, and the rows
        that they are for. None where there are no held-out rows.
    default : object
        What the parameter becomes where it says None.
    limits : str
        Why estimators may be without the parameter, for errors to say.
    """

    parameter: str
    path: str
    se_path: str
    predictions: str | None = None
    indices: str | None = None
    default: object = None
    limits: str = ""


CRITERIA = {
    "risk": Criterion(
        "risk",
        "risk_path_",
        "risk_se_path_",
        limits=": the memory matrix is of the squared error and linear models",
    ),
    "loo": Criterion(
        "loo", "loo_path_", "loo_se_path_", "loo_prediction_path_", "loo_indices_"
    ),
    "cv": Criterion(
        "cv", "cv_path_", "cv_se_path_", "cv_prediction_path_", "cv_indices_", 5
    ),
}


def setting(estimator, name):
    """What the parameter of a criterion says; False where there is no such one."""
    parameter = CRITERIA[name].parameter
    return plain(estimator.get_params(deep=False).get(parameter, False))


def automatic(candidates, X, y):
    """The criterion that "auto" stands for, one for all candidates.

    "loo" where leaving out every row is cheap, or asked for; else "risk"; else,
    where some candidate does not compute that, "cv".
    """
    if all(_leaves_one_out(candidate, X, y) for candidate in candidates):
        return "loo"
    has_risk = all(setting(candidate, "risk") is not False for candidate in candidates)
    return "risk" if has_risk else "cv"


def _leaves_one_out(candidate, X, y):
    """Whether it leaves out every row where that is left to us."""
    loo = setting(candidate, "loo")
    if loo != "auto":
        return loo is True
    try:
        return candidate.leaves_one_out_cheaply(X, y)
    except (TypeError, ValueError):
        candidate.check_data(X, y)  # what is wrong with them is said there
        raise


def with_predictions(candidates):
    """The criterion whose held-out predictions scorers judge, one for all."""
    return "cv" if all(map(has_folds, candidates)) else "loo"


def has_folds(estimator):
    """Whether the estimator is told to leave out folds."""
    cv = setting(estimator, "cv")
    return cv is not None and cv is not False


def _computed(estimator, name, attribute):
    """A fitted attribute of a criterion that the estimator was told to compute."""
    if not hasattr(estimator, attribute):
        raise ValueError(
            f"criterion={name!r} needs {attribute}, and {type(estimator).__name__} at "
            f"least {FEWEST_ROWS} rows (of positive weight) to compute it."
        )
    return getattr(estimator, attribute)


@dataclass(frozen=True)
class PathJudge:
    """Judges iterates by a path that the estimator has computed.

    Attributes
    ----------
    name : str
    sign : float
        1 where smaller is better.
    """

    name: str
    sign = 1.0

    @property
    def computed(self):
        """Name of the criterion that the estimator has to compute."""
        return self.name

    def path(self, estimator):
        """Value of every iterate.

        Raises
        ------
        ValueError
            If the estimator had too few rows to leave one out.
        """
        return _computed(estimator, self.name, CRITERIA[self.name].path)

    def standard_error(self, estimator, t):
        """Of the value of iterate ``t``."""
        return float(getattr(estimator, CRITERIA[self.name].se_path)[t])


# Groups of held-out rows that the standard error of a score is taken over.
N_GROUPS = 20


def scorer_of(scoring):
    """The scorer of a name, or the callable itself."""
    if callable(scoring):
        return scoring
    try:
        return get_scorer(scoring)
    except ValueError as error:
        known = ", ".join(map(repr, ["auto", *CRITERIA]))
        raise ValueError(
            f"criterion must be one of {known}, a callable or the name of a "
            f"scikit-learn scorer, got {scoring!r}."
        ) from error


@dataclass(frozen=True)
class ScorerJudge:
    """Judges iterates by a scorer on their pooled held-out predictions.

    Attributes
    ----------
    name : str
    computed : str
        The criterion whose held-out predictions are taken.
    scorer : callable
        ``scorer(estimator, X, y)``, greater is better.
    X, y : as passed to fit
    params : dict
        Metadata that the scorer has asked for.
    """

    name: str
    computed: str
    scorer: object
    X: object
    y: object
    params: dict
    sign = -1.0

    @classmethod
    def of(cls, scoring, computed, estimator, X, y, params):
        """The judge of a scorer's name or a callable, tried before anything is run.

        Raises
        ------
        ValueError
            If the scorer does not take the predictions of the estimator.
        """
        scorer = scorer_of(scoring)
        name = scoring if isinstance(scoring, str) else repr(scoring)
        try:
            scorer(estimator.trial_estimator(y), X, y, **params)
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            estimator.check_data(X, y)  # what is wrong with them comes first
            raise ValueError(
                f"criterion={name} does not score the predictions of "
                f"{type(estimator).__name__}, which are all that it can ask for: "
                f"{error}"
            ) from error
        return cls(name, computed, scorer, *indexable(X, y), params)

    def path(self, estimator):
        """Score of every iterate.

        Raises
        ------
        ValueError
            If the estimator had too few rows to leave one out.
        """
        predictions, rows = self._held_out(estimator)
        X, y, params = self._rows(rows)
        shells = map(estimator.held_out_estimator, predictions)
        return np.array([self.scorer(shell, X, y, **params) for shell in shells])

    def standard_error(self, estimator, t):
        """By the jackknife over groups of held-out rows."""
        predictions, rows = self._held_out(estimator)
        order = np.random.default_rng(0).permutation(len(rows))
        groups = np.array_split(order, min(N_GROUPS, len(rows)))
        scores = []
        for group in groups:
            kept = np.setdiff1d(order, group)
            X, y, params = self._rows(rows[kept])
            shell = estimator.held_out_estimator(predictions[t][kept])
            scores.append(self.scorer(shell, X, y, **params))
        n = len(groups)
        return float(np.sqrt((n - 1) / n * np.sum((scores - np.mean(scores)) ** 2)))

    def _held_out(self, estimator):
        criterion = CRITERIA[self.computed]
        rows = np.hstack(_computed(estimator, self.computed, criterion.indices))
        return getattr(estimator, criterion.predictions), rows

    def _rows(self, rows):
        """The data of the held-out rows, and what goes with them."""
        params = {
            key: value if value is None else _safe_indexing(value, rows)
            for key, value in self.params.items()
        }
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), params
