"""The result of the memory matrix: the risk of every iterate, low-rank factors."""

from dataclasses import dataclass

import numpy as np

from ...optim.blocks import slices

# Rows whose squares are in memory at a time.
ROW_BLOCK = 512


@dataclass(frozen=True)
class RiskEstimate:
    """The risk of every iterate by the memory matrix.

    Attributes
    ----------
    path : ndarray of shape (n_iterates,)
        Mean loss of every iterate on rows that it has not seen, mean over targets.
    se_path : ndarray of shape (n_iterates,)
        Standard error of ``path``: over rows, and of the probes, together.
    mc_se_path : ndarray of shape (n_iterates,)
        Standard error due to random probes; zero where traces are exact.
    temporal : ndarray of shape (n_iterates, n_modes)
    spatial : ndarray of shape (n_modes, n_rows, n_outputs)
        Factors of the held-out residuals of the rows that are read; of their held-out
        predictors where the loss is not one of residuals. With the squared error they
        are those of E, scaled so that the (weighted) mean square of its row t is
        ``path[t]``, but for the little that the modes dropped from the factors add to
        that; in units of the target.
    n_probes : int
        Number of random probes; 0 where traces are exact.
    row_scale_share : float
        Share of the spread of the rows' squared norms that scales them; 0 is
        the published estimate.
    row_scale_error : float
        By which share of itself ``path`` may err somewhere because scales are
        taken on the modes alone; infinite where rows of the squared error have none,
        asked for or not.
    """

    path: np.ndarray
    se_path: np.ndarray
    mc_se_path: np.ndarray
    temporal: np.ndarray
    spatial: np.ndarray
    n_probes: int
    row_scale_share: float = 0.0
    row_scale_error: float = np.inf

    @classmethod
    def of(cls, path, mc_se_path, factors, weights, n_samples, **others):
        """From factors of E whose rows are multiplied by the root of n ``weights``.

        Parameters
        ----------
        path, mc_se_path, **others
            Attributes.
        factors : tuple
            ``temporal`` and ``spatial``.
        weights : ndarray of shape (n_rows, 1)
            Their sum is one.
        n_samples : int
            The rows are these, or a sample of so many, over which the mean is.
        """
        temporal, spatial = factors
        row_se = standard_error_over_rows(temporal, spatial)
        row_se *= np.sqrt(len(weights) / n_samples)
        se_path = np.sqrt(row_se**2 + mc_se_path**2)
        spatial = spatial / np.sqrt(len(weights) * weights)
        return cls(path, se_path, mc_se_path, temporal, spatial, **others)


def standard_error_over_rows(temporal, spatial):
    """Standard error of the mean over rows of E^2, a block of rows at a time."""
    n_rows = spatial.shape[1]
    total, total_squares = np.zeros((2, len(temporal)))
    for some in slices(n_rows, ROW_BLOCK):
        rows = np.tensordot(temporal, spatial[:, some], axes=1)
        losses = np.einsum("tir,tir->ti", rows, rows) / rows.shape[2]
        total += losses.sum(axis=1)
        total_squares += (losses**2).sum(axis=1)
    variance = total_squares / n_rows - (total / n_rows) ** 2
    return np.sqrt(np.clip(variance, 0, None) / max(n_rows - 1, 1))
