"""Sets of classes that contain the class of an unseen row, from held-out probabilities.

A conformity score says how little a class agrees with the probabilities p of a row. The
set of a row has the classes whose score is at most q, a quantile of the scores that the
true classes of held-out rows have. For exchangeable rows, and a model that one of them
changes little, it contains the true class as often as the quantile says, or more often
where scores are tied (Angelopoulos and Bates 2023, "Conformal prediction: a gentle
introduction", sections 1 and 2.1).

"lac" is 1 - p_k (Sadinle, Lei and Wasserman 2019, "Least ambiguous set-valued
classifiers with bounded error levels"): no other sets are smaller on average at the
same coverage. Where no class is likely enough, a set is empty.

"aps" is the probability of all classes that are likelier than k (Romano, Sesia and
Candes 2020, "Classification with valid and adaptive coverage", with their u = 1): the
set has the likeliest classes, up to the first whose probabilities together exceed q.
Nothing is drawn at random, the likeliest class is always there, and unlikely rows have
larger sets.
"""

from typing import NamedTuple

import numpy as np

from .._names import did_you_mean
from .held_out_rows import drawn_units
from .intervals import rank_of, ranked


def likelier_classes(probabilities):
    """The probability of all likelier classes, for each class, (n_rows, n_classes)."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    falling = np.take_along_axis(probabilities, order, axis=1)
    before = np.cumsum(falling, axis=1)[:, :-1]
    before = np.concatenate([np.zeros((len(before), 1), before.dtype), before], axis=1)
    # Equally likely classes are not before one another.
    is_first = np.diff(falling, axis=1, prepend=np.inf) < 0
    before = np.maximum.accumulate(np.where(is_first, before, 0), axis=1)
    scores = np.empty_like(before)
    np.put_along_axis(scores, order, before, axis=1)
    return scores


# Functions of the probabilities, (n_rows, n_classes), to scores of the same shape.
CONFORMITY_SCORES = {
    "lac": lambda probabilities: 1 - probabilities,
    "aps": likelier_classes,
}


class HeldOutScores(NamedTuple):
    """Conformity scores of held-out rows, for prediction sets."""

    scores: dict[str, np.ndarray]  # by the name of the score, (n_held_out,)
    units: np.ndarray | None  # (n_held_out,)

    @classmethod
    def of(cls, probabilities, labels, units):
        """Scores of labels (n_rows,) by probabilities (n_rows, n_classes)."""
        rows = np.arange(len(labels))
        probabilities = probabilities.astype(np.float64)
        scores = {
            name: score(probabilities)[rows, labels]
            for name, score in CONFORMITY_SCORES.items()
        }
        return cls(scores, units)

    def at_most(self, n_rows):
        """At most ``n_rows`` of the rows, in whole units that are drawn at random."""
        (first, *_) = self.scores.values()
        indices, units = drawn_units(len(first), self.units, n_rows)
        scores = {name: values[indices] for name, values in self.scores.items()}
        return HeldOutScores(scores, units)


def check_score(method):
    """Raise if there is no conformity score of this name."""
    if method not in CONFORMITY_SCORES:
        raise ValueError(
            f"method must be one of {list(CONFORMITY_SCORES)}, got {method!r}."
            f"{did_you_mean(method, CONFORMITY_SCORES)}"
        )


def sets_around(probabilities, held_out, coverage, method):
    """Masks of the classes whose score is at most a quantile of held-out scores."""
    scores_of_labels, units = held_out.scores[method], held_out.units
    n_units = len(scores_of_labels) if units is None else int(units.max()) + 1
    ranks = [rank_of(share, n_units) for share in coverage.ravel()]
    # In double precision, as those of held-out rows: equal probabilities are tied.
    scores = CONFORMITY_SCORES[method](probabilities.astype(np.float64))
    sets = [scores <= ranked(scores_of_labels, rank, units) for rank in ranks]
    return np.stack(sets, axis=-1).reshape(*scores.shape, *coverage.shape)
