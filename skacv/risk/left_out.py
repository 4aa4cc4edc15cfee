"""Which rows a replica of the run is fitted without, and what that changes."""

from dataclasses import dataclass, replace

import numpy as np

BY_ROW = ("rows", "loss_scale", "residual_scale", "penalty_scale", "whitening")


@dataclass(frozen=True)
class LeftOutRows:
    """Rows left out one at a time; all arrays have one entry per row.

    Attributes
    ----------
    n_rows : int
        Of the whole problem.
    rows : ndarray of int
    loss_scale : ndarray
        c = 1 / (1 - w): what the weights of the others are multiplied by.
    residual_scale : ndarray
        k: the residual of the replica's own prediction, intercept included,
        over the residual of its coefficients on the centred data.
    penalty_scale : ndarray
        What the penalty's strength is multiplied by.
    whitening : ndarray
        sqrt(n w), by which :meth:`Problem.whitened` scales rows.
    """

    n_rows: int
    rows: np.ndarray
    loss_scale: np.ndarray
    residual_scale: np.ndarray
    penalty_scale: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, problem, rows, fit_intercept, penalty_scale):
        """Describe the rows left out of a problem with shared weights.

        ``penalty_scale`` is a function of the share of the weight that stays.
        """
        weights = problem.row_weights[rows, 0].astype(np.float64)
        loss_scale = 1 / (1 - weights)
        return cls(
            n_rows=len(problem.target),
            rows=rows,
            loss_scale=loss_scale,
            residual_scale=loss_scale if fit_intercept else np.ones(len(rows)),
            penalty_scale=np.broadcast_to(penalty_scale(1 - weights), len(rows)),
            whitening=np.sqrt(len(problem.target) * weights),
        )

    def blocks(self, size):
        """The same, at most ``size`` rows at a time."""
        for first in range(0, len(self.rows), size):
            part = slice(first, first + size)
            yield replace(self, **{name: getattr(self, name)[part] for name in BY_ROW})

    def shared_scales(self):
        """Loss and penalty scales; one entry each if all rows share them."""
        n_scales = 1 if np.ptp(self.loss_scale) == 0 else len(self.rows)
        return self.loss_scale[:n_scales], self.penalty_scale[:n_scales]
