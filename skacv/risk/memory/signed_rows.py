"""Rows of X with random signs, by which the responses of a run are read.

With r the signs of the rows, D their curvatures and c their leverages over that of the
average row, the sum over rows of c_i D_i x_i'Q x_i is the mean over signs of
(X'(c D r))'Q X'r: what tangents of shocks X'r are multiplied with.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...optim.blocks import slices
from ...optim.design import Design
from ...optim.einsum import einsum

# Predictors of tangents, rows times tangents, that are worked on together.
ENTRIES_PER_BLOCK = 1 << 21


@dataclass(frozen=True)
class SignedRows:
    """Rows of X on some columns, their signs, and their leverages.

    Attributes
    ----------
    signs : ndarray of shape (n_rows, n_outputs, n_probes)
    scales : ndarray of shape (n_rows,)
        c.
    probe : ndarray of int, shape (n_tangents,)
        Which signs every tangent belongs to.
    degrees : float
        Degrees of freedom of a row: less than one where rows are centred.
    """

    columns: Design
    signs: np.ndarray
    scales: np.ndarray
    probe: np.ndarray
    degrees: float = 1.0

    def some(self, rows):
        """Some of the rows."""
        return replace(
            self,
            columns=self.columns.rows(rows),
            signs=self.signs[rows],
            scales=self.scales[rows],
        )

    def source(self):
        """X'r of every tangent, (n_working, n_outputs, n_tangents)."""
        n_rows, *others = self.signs.shape
        found = self.columns.t_dot(self.signs.reshape(n_rows, -1))
        return found.reshape(len(found), *others)[:, :, self.probe]

    def pulled(self, bend, tangents):
        """X'(c D r) and X'(D X tangents), of every tangent: a block of rows at a time.

        Returns
        -------
        bent : ndarray of shape (n_working, n_outputs, n_tangents)
            Derivatives for the signs of every tangent, also if there are no tangents.
        curved : ndarray of shape (n_working, n_outputs, n_tangents)
        """
        columns, signs, found = self.columns, self.signs, 0.0
        (n_rows, n_outputs, n_probes), n_tangents = signs.shape, tangents.shape[2]
        flat = tangents.reshape(len(tangents), n_outputs * n_tangents)
        size = max(1, ENTRIES_PER_BLOCK // (n_outputs * (n_probes + n_tangents)))
        for rows in slices(n_rows, size):
            block = columns if size >= n_rows else columns.rows(rows)
            moved = block.dot(flat).reshape(block.shape[0], n_outputs, n_tangents)
            scaled = signs[rows] * self.scales[rows, None, None]
            slopes = _bent(bend[rows], np.concatenate([scaled, moved], axis=2))
            found = found + block.t_dot(slopes.reshape(len(slopes), -1))
        found = found.reshape(len(tangents), n_outputs, n_probes + n_tangents)
        return found[:, :, self.probe], found[:, :, n_probes:].copy()

    def reading(self, bend, bent):
        """How Z is read by these rows: by their signs alone where none bends.

        Parameters
        ----------
        bend : ndarray
            D of the rows, a matrix each where the loss couples the outputs.
        bent : ndarray of shape (n_working, n_outputs, n_tangents)
            X'(c D r).

        Returns
        -------
        Reading
        """
        scales, n_alike = self.scales, 1
        if bend.ndim == 3:
            n_alike = bend.shape[1]
            total = np.einsum("n,nkk->", scales**2, bend)[None]
            squares = np.einsum("n,nkl,nkl->", scales**3, bend, bend)[None]
        else:
            total, squares = scales**2 @ bend, scales**3 @ bend**2
        if (total > 0).all():
            return Reading(bent, self.degrees * total, squares / total)
        plain = self.degrees * scales.sum() * n_alike
        zeros = np.zeros_like(total)
        return Reading(self.source(), np.full_like(total, plain), zeros)


@dataclass(frozen=True)
class Reading:
    """The reading of Z: products of tangents with ``by``, divided by ``total``.

    Attributes
    ----------
    by : ndarray of shape (n_working, n_outputs, n_tangents)
    total, mean_curvature : ndarray of shape (n_groups,)
        The curvature that divides, and that by which Z is fed back, on average.
    """

    by: np.ndarray
    total: np.ndarray
    mean_curvature: np.ndarray

    def of(self, tangents):
        """The reading of Z from every tangent, (n_groups, n_tangents)."""
        found = einsum("jkc,jkc->kc", self.by, tangents)
        if len(self.total) < len(found):  # outputs that are coupled
            found = found.sum(axis=0, keepdims=True)
        return found / self.total[:, None]


def curvature_at(problem, predictor, rows=slice(None)):
    """Curvature of some rows at their linear predictors, times n and their weights."""
    curvature = problem.loss.curvature(problem.target[rows], predictor)
    weights = len(problem.target) * problem.row_weights[rows, :1]
    return curvature * weights.reshape(-1, *(1,) * (curvature.ndim - 1))


def _bent(bend, array):
    """Curvature times an array of shape (n_rows, n_outputs, k), row by row."""
    if bend.ndim == 3:
        return bend @ array
    return bend[:, :, None] * array
