"""Predictions of folds for their held-out rows, iterate after iterate."""

from dataclasses import dataclass

import numpy as np

from ...optim.array_path import Predictors, StoredPredictors, with_room

# Coefficients of folds that wait until their predictions are computed, in numbers, and
# as many iterates at most.
MOST_WAITING, N_WAITING = 1 << 21, 32


@dataclass(frozen=True)
class FoldRecord:
    """The record of folds: their coefficients, or their predictions.

    Attributes
    ----------
    coef : ndarray of shape (n_iterates, n_columns, n_outputs, n_folds) or None
        For the design's own columns.
    intercept : ndarray of shape (n_iterates, n_outputs, n_folds) or None
    values : ndarray of shape (n_iterates, n_held_out, n_outputs) or None
        Linear predictors of the held-out rows, fold after fold, if these are kept.
    """

    coef: np.ndarray | None = None
    intercept: np.ndarray | None = None
    values: np.ndarray | None = None

    def paths(self, design, held_out):
        """Linear predictors of every fold for its held-out rows.

        Shapes: returned (n_iterates, n_held_out, n_outputs).

        Parameters
        ----------
        design : Design
            That of the run, or one of other rows with the same columns.
        held_out : list of ndarray of int
            Rows of the design.
        """
        if self.values is not None:
            ends = np.cumsum([len(rows) for rows in held_out])
            parts = np.split(self.values, ends[:-1], axis=1)
            return [StoredPredictors(part) for part in parts]
        return [
            Predictors(design, self.coef[..., k], rows, self.intercept[..., k])
            for k, rows in enumerate(held_out)
        ]

    def predictors(self, design, held_out):
        """The same as one array, (n_iterates, n_held_out, n_outputs)."""
        if self.values is not None:
            return self.values
        paths = self.paths(design, held_out)
        return np.concatenate([path.of_rows(slice(None)) for path in paths], axis=1)

    @classmethod
    def joined(cls, records, design, held_out):
        """One record of the folds of several.

        Parameters
        ----------
        records : list of FoldRecord
        held_out : list of list of ndarray of int
            The held-out rows of the folds of every record.
        """
        if any(record.values is not None for record in records):
            values = [
                record.predictors(design, rows)
                for record, rows in zip(records, held_out)
            ]
            return cls(values=np.concatenate(values, axis=1))
        parts = [(record.coef, record.intercept) for record in records]
        return cls(*(np.concatenate(each, axis=-1) for each in zip(*parts)))


class RecordedFolds:
    """A record of folds that grows, iterate by iterate.

    It keeps coefficients if columns are few. Otherwise, and if predictors are carried
    along, it keeps the predictions for the held-out rows.

    Parameters
    ----------
    fits : Fits
        The last of them are the folds.
    held_out : list of ndarray of int
        The held-out rows of every fold.
    """

    def __init__(self, problem, fits, held_out):
        self._design, self._fits, self._held_out = problem.design, fits, held_out
        n_outputs = problem.target.shape[1]
        n_kept = problem.design.shape[1] * len(held_out)
        # A row may stand for many samples, whose predictions a user may ask for.
        sizes = [len(rows) for rows in held_out]
        n_held_out = sum(sizes) * problem.n_samples / len(problem.target)
        self._keeps_coef = n_kept <= n_held_out and not problem.design.is_dual
        self._rows = np.concatenate([np.empty(0, int), *held_out])
        self._fold = np.repeat(np.arange(len(sizes)), sizes)
        n_waiting = MOST_WAITING // max(1, n_kept * n_outputs)
        self._n_waiting = max(1, min(N_WAITING, n_waiting))
        self._waiting, self._kept, self._n = [], {}, 0

    def add(self, iterate):
        """Write an iterate of all fits down; of the folds if it has a predictor."""
        if iterate.predictor is not None and not self._keeps_coef:
            self._keep(values=iterate.predictor[self._rows, :, self._fold][None])
            return
        self._waiting.append(iterate.coef)
        if len(self._waiting) >= self._n_waiting:
            self._write_down()

    def _write_down(self):
        """Keep the waiting iterates, or their predictions."""
        if not self._waiting:
            return
        coef = self._fits.of_design(np.stack(self._waiting))
        intercept = self._fits.intercepts(coef)
        first, self._waiting = coef.shape[3] - len(self._held_out), []
        coef, intercept = coef[..., first:], intercept[..., first:]
        if self._keeps_coef:
            self._keep(coef=coef, intercept=intercept)
            return
        record = FoldRecord(coef, intercept)
        self._keep(values=record.predictors(self._design, self._held_out))

    def _keep(self, **arrays):
        for name, found in arrays.items():
            last = self._n + len(found)
            kept = with_room(self._kept.get(name, found[:0]), self._n, last)
            kept[self._n : last] = found
            self._kept[name] = kept
        self._n = last

    def first(self, n_iterates):
        """The record of the first iterates: part of a longer one.

        Returns
        -------
        FoldRecord
        """
        self._write_down()
        found = {name: kept[:n_iterates] for name, kept in self._kept.items()}
        return FoldRecord(**found)
