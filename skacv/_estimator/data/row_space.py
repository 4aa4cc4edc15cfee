"""Data with more columns than rows, run in the space that the rows span."""

from dataclasses import dataclass, replace

import numpy as np

from ...optim.row_space import RowSpaceDesign, row_space
from .training_data import ColumnData


@dataclass(frozen=True)
class RowSpaceData(ColumnData):
    """Data whose run is on coordinates Z of the rows X = Z Q', and a column of ones."""

    @classmethod
    def of(cls, data):
        """The data in the space of their rows."""
        design = data.problem.design
        if data.has_constant:
            design = design.features
        coordinates, basis = row_space(design)
        if data.has_constant:
            ones = np.ones((len(coordinates), 1))
            coordinates = np.hstack([coordinates, ones])
        rotated = RowSpaceDesign(coordinates, basis=basis)
        problem, start = replace(data.problem, design=rotated), data.problem.start
        if start is not None:  # zeros, and an intercept
            zeros = np.zeros((len(basis.T), start.shape[1]))
            problem = replace(problem, start=np.vstack([zeros, start[-1:]]))
        return cls(**{**vars(data), "problem": problem})

    @property
    def basis(self):
        """Q, (n_features, n_rows)."""
        return self.problem.design.basis

    def coefficients(self, coef):
        return super().coefficients(self._change_basis(coef, self.basis.T))

    def iterates(self, coef_path, intercept_path):
        """Iterates from scikit-learn's shapes, projected on the space."""
        coef = super().iterates(coef_path, intercept_path)
        return self._change_basis(coef, self.basis)

    def without_rows(self, coef, shift, k):
        coef = self._change_basis(coef[:, :, None], self.basis.T)
        return super().without_rows(coef[:, :, 0], shift, k)

    def holds_record(self, record):
        """Whether recorded iterates lie in the space, up to a thousand roundings."""
        path = record.iterates
        coef = super().iterates(path.coef, path.intercept)
        back = self._change_basis(self._change_basis(coef, self.basis), self.basis.T)
        tolerance = 1e3 * np.finfo(self.dtype).eps
        return np.abs(coef - back).max() <= tolerance * np.abs(coef).max()

    def _change_basis(self, coef, matrix):
        """Iterates (t, n, n_outputs) of one basis in another, in one product."""
        n_kept = len(matrix)
        outputs = np.moveaxis(coef[:, :n_kept], 1, 2)
        rotated = np.moveaxis(outputs @ matrix, 2, 1)
        if not self.has_constant:
            return rotated
        return np.concatenate([rotated, coef[:, n_kept:]], axis=1)

    def phases(self, recorded):
        return phases_on(recorded, self.basis.shape[1], self.has_constant)


def phases_on(phases, n_features, has_constant):
    """Phases with penalties of so many features, which are all penalised alike."""
    index = np.zeros(n_features, dtype=int)
    if has_constant:
        index = np.append(index, -1)
    return [replace(p, penalty=p.penalty.on(index)) for p in phases]
