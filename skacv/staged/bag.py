"""Rows that members of an ensemble have not drawn, in the place of rows of folds."""

from dataclasses import dataclass, replace

import numpy as np

from .._compat import _safe_indexing
from .fits import StagedFit

# With so many members that leave out a row, on average, these judge the ensemble. The
# log loss of fewer, infinite where all are sure of the wrong class, says little of that
# of all members.
FEWEST_LEFT_OUT = 30


@dataclass
class OutOfBag:
    """A fit whose members have drawn their rows, and rows that it holds out of each.

    It predicts a row as the mean of the members that have not drawn it. No fit without
    the row is needed (Breiman 2001, "Random forests").

    Shapes: rows (n_held_out,), constant (n_held_out, n_outputs).
    """

    fit: StagedFit
    # The numbers of the rows among those of the fit, and X as its members take it.
    rows: np.ndarray
    X: object
    # The predictions of rows that all members so far have drawn.
    constant: np.ndarray

    @classmethod
    def of(cls, fit, X, fitted, held_out, constant):
        """The rows ``held_out`` of X; rows ``fitted``, in order, are those of a fit.

        Shapes: fitted (n_fitted,), held_out (n_held_out,).
        """
        rows = np.searchsorted(fitted, held_out)
        return cls(fit, rows, _safe_indexing(X, held_out), constant)

    @property
    def stages(self):
        """Those of the fit."""
        return self.fit.stages

    def held_out_predictions(self, first, last, classes, former=None):
        """Predictions of stages ``first + 1`` to ``last`` for the rows, and more.

        The second result is by how much they vary beyond those of all members for new
        rows, as standard deviations: they are means of fewer members. The third is
        passed as ``former`` where they are predicted from ``last`` on.
        """
        begin = 0 if former is None else first
        predictions, deviations, former = self.stages.predict_left_out(
            self.X, self.rows, begin, last, former
        )
        constant = self.constant.reshape(predictions.shape[1:])
        predictions = np.where(np.isnan(predictions), constant, predictions)
        return predictions[first - begin :], deviations[first - begin :], former

    def drop_training_rows(self):
        """The same without rows that only further stages need."""
        return replace(self, fit=self.fit.drop_training_rows())
