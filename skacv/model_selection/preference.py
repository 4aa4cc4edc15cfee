"""Which of several members is kept where chance may have decided between them."""

from dataclasses import dataclass

import numpy as np

# Standard errors of the difference by which a later member must be better.
MARGIN = 1.0


@dataclass(frozen=True, eq=False)
class PairedErrors:
    """Errors of held-out predictions, compared row by row.

    Attributes
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    weights : ndarray of shape (n_samples,)
    are_labels : bool
        Whether an error is a wrong label, else it is a squared difference.
    """

    y: object
    weights: np.ndarray
    are_labels: bool

    def of(self, estimator, t):
        """Mean error of every sample by iterate ``t``; NaN where it was not held out.

        Parameters
        ----------
        estimator : fitted estimator with folds
        t : int

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        y = np.asarray(self.y, dtype=None if self.are_labels else np.float64)
        rows = np.concatenate(estimator.cv_indices_)
        held_out = estimator._held_out_estimator(estimator.cv_prediction_path_[t], t)
        found = np.reshape(held_out.predict(None), y[rows].shape)
        error = found != y[rows] if self.are_labels else (found - y[rows]) ** 2
        error = error.reshape(len(rows), -1).mean(axis=1)
        counts = np.bincount(rows, minlength=len(y))
        with np.errstate(invalid="ignore"):
            return np.bincount(rows, error, minlength=len(y)) / counts

    def on(self, rows):
        """The same of some rows alone."""
        y, weights = np.asarray(self.y)[rows], self.weights[rows]
        return PairedErrors(y, weights, self.are_labels)

    def is_worse(self, errors, others):
        """Whether errors are larger than others by more than chance.

        Parameters
        ----------
        errors, others : ndarray of shape (n_samples,)

        Returns
        -------
        bool
        """
        both = np.isfinite(errors) & np.isfinite(others)
        share = self.weights[both] / self.weights[both].sum()
        difference = (errors - others)[both]
        mean = share @ difference
        # The standard error of a weighted mean.
        spread = np.sqrt(np.sum((share * (difference - mean)) ** 2))
        return bool(mean > MARGIN * spread)


def preferred(places, best, errors, paired):
    """The first of some members that the best is not better than by more than chance.

    Parameters
    ----------
    places : list of int
        Members, simpler ones first.
    best : int
        The one of least estimated error.
    errors : callable
        ``errors(place)``, the errors of a member, sample by sample.
    paired : PairedErrors

    Returns
    -------
    int
    """
    least = errors(best)
    for place in places:
        if place == best or not paired.is_worse(errors(place), least):
            return place
    return best
