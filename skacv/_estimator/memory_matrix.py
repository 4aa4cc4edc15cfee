"""The memory matrix: from a finished run to fitted attributes."""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._warnings import warn
from ..optim.array_path import ArrayPath
from ..risk.memory import passes
from ..risk.memory.curved import CurvedMemoryMatrix
from ..risk.memory.memory_matrix import MemoryMatrix, estimate_risk
from ..risk.memory.row_norms import uneven_rows_bias
from ..risk.reader import Unreadable, read
from .parameters import plain

# Warn if risk_path_ may be too low by more than this share because of uneven rows.
UNEVEN_ROWS_TOLERANCE = 0.1
# Warn where row scales leave more than this share of it open.
ROW_SCALES_TOLERANCE = 0.02


class LowRankPath(NamedTuple):
    """A quantity of every iterate and row, as ``temporal @ spatial``.

    Attributes
    ----------
    temporal : ndarray of shape (n_iter_ + 1, n_modes)
    spatial : ndarray of shape (n_modes, n_rows) or (n_modes, n_rows, n_targets)
    """

    temporal: np.ndarray
    spatial: np.ndarray


class LowRankPredictions(ArrayPath):
    """Held-out predictions of every iterate and row, from low-rank factors.

    Parameters
    ----------
    factors : LowRankPath
        Factors of the predictors; or of the residuals, which are subtracted from the
        targets to give predictions.
    prediction : callable
        ``prediction(found)`` of a row of the factors' product.
    dtype : dtype
    """

    def __init__(self, factors, prediction, dtype):
        self._factors, self._prediction, self.dtype = factors, prediction, dtype
        self.shape = len(factors.temporal), *factors.spatial.shape[1:]

    def _of(self, iterates):
        temporal, spatial = self._factors
        rows = np.tensordot(temporal[iterates], spatial, axes=1)
        found = np.empty(rows.shape, self.dtype)
        for place, row in enumerate(rows):
            found[place] = self._prediction(row)
        return found


def residuals_of_memory_matrix(estimator, t):
    """Targets less predictions without the row, by the memory matrix, at iterate t.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_targets)
    """
    return estimator.risk_target_ - estimator.risk_prediction_path_[t]


def has_memory_matrix(estimator):
    """Whether runs of an estimator that has such a parameter can be read.

    Where its loss and its updates are chosen, it says so itself.
    """
    return getattr(estimator, "_has_memory_matrix", True)


def whatever_it_costs(estimator, X, y, n_rows):
    """What ``risk="auto"`` becomes where the memory matrix is asked for: True."""
    return True


def read_memory_matrix(run):
    """Fitted attributes of the memory-matrix estimate of the risk.

    Left to us ("auto") there are none where it cannot be read from a run.

    Parameters
    ----------
    run : FinishedRun

    Returns
    -------
    dict
    """
    if _is_read_by_residuals(run):
        return _read_residuals(run)
    try:
        return _read_predictors(run)
    except Unreadable:
        if plain(run.estimator.risk) == "auto":
            return {}
        raise


def _is_read_by_residuals(run):
    """Whether it is a run that the estimates of the squared error alone can read."""
    if not run.data.problem.loss.is_quadratic:
        return False
    in_batches = run.trajectory.n_batches()
    reader = passes.PassRisk() if in_batches else MemoryMatrix()
    try:
        reader.requires(run.data.problem, run.trajectory)
    except Unreadable:
        return False
    return True


def _read_predictors(run):
    """Those of any loss: what every row would be predicted."""
    estimator, data = run.estimator, run.data
    risk = plain(estimator.risk)
    reader = CurvedMemoryMatrix(
        method="hutchinson" if risk is True else risk,
        row_scales=estimator.risk_row_scales,
        rng=check_random_state(estimator.random_state),
    )
    estimate = read(reader, data.problem, run.trajectory, estimator._refit(data))
    rows = np.setdiff1d(np.arange(len(data.rows)), run.trajectory.rows_seen())
    offset, y, spatial = data.offset, data.y[rows], estimate.predictors.spatial[:, rows]
    if data.has_flat_predictions:
        offset, spatial = offset[:, 0], spatial[:, :, 0]
    factors = LowRankPath(estimate.predictors.temporal, spatial)
    loss = data.problem.loss
    of_predictor = partial(type(estimator)._prediction, loss=loss)
    prediction = partial(_shifted, of_predictor, offset)
    return {
        **_paths(estimate),
        **_predictions(factors, prediction, data.rows[rows], y),
        **(_residuals(factors, y - offset) if loss.is_of_residual else {}),
    }


def _shifted(of_predictor, offset, found):
    """The prediction where the target's mean has been taken off the predictors."""
    return of_predictor(found + offset)


def _residuals(factors, target):
    """Targets less predictors, of every iterate and row, from factors of these."""
    constant = np.ones((len(factors.temporal), 1))
    temporal = np.concatenate([constant, -factors.temporal], axis=1)
    spatial = np.concatenate([target[None], factors.spatial])
    return {"risk_residual_path_": LowRankPath(temporal, spatial)}


def _read_residuals(run):
    """Those of the squared error: what residuals every row would leave."""
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    rng, risk = check_random_state(estimator.random_state), plain(estimator.risk)
    if trajectory.n_batches():
        is_number = risk not in (True, "auto", "exact", "hutchinson")
        estimate = passes.estimate_risk(
            data.problem,
            trajectory,
            estimator._refit(data),
            n_labels=risk if is_number else passes.N_LABELS,
            rng=rng,
        )
    else:
        estimate = estimate_risk(
            data.problem,
            trajectory,
            estimator._refit(data),
            method="auto" if risk is True else risk,
            row_scales=estimator.risk_row_scales,
            rng=rng,
        )
    if np.isinf(estimate.row_scale_error):
        _warn_of_uneven_rows(run, estimate.path)
    elif estimate.row_scale_error > ROW_SCALES_TOLERANCE:
        warn(
            "risk_path_ may be wrong by up to about "
            f"{100 * estimate.row_scale_error:.0f}% on some iterates: the norms of the "
            "rows of X are too uneven for risk_row_scales. loo_path_ (loo=True) does "
            "not depend on them.",
            UserWarning,
        )
    spatial = estimate.spatial[:, :, 0] if data.is_flat else estimate.spatial
    factors = LowRankPath(estimate.temporal, spatial)
    rows = np.setdiff1d(np.arange(data.problem.n_single), trajectory.rows_seen())
    target = data.y[rows]
    prediction = partial(np.subtract, target)
    return {
        **_paths(estimate),
        **_predictions(factors, prediction, data.rows[rows], target),
        "risk_residual_path_": factors,
    }


def _paths(estimate):
    """What both estimates say of the iterates."""
    return {
        "risk_path_": estimate.path,
        "risk_se_path_": estimate.se_path,
        "risk_mc_se_path_": estimate.mc_se_path,
        "n_probes_": estimate.n_probes,
        "row_scale_share_": estimate.row_scale_share,
    }


def _predictions(factors, prediction, samples, target):
    """What iterates predict that have never seen a row, for all rows that are read."""
    dtype = factors.spatial.dtype
    return {
        "risk_prediction_path_": LowRankPredictions(factors, prediction, dtype),
        "risk_indices_": samples,
        "risk_target_": target,
    }


def _warn_of_uneven_rows(run, risk_path):
    """Warn where rows without scales of their own would need them."""
    problem, seen = run.data.problem, run.trajectory.rows_seen()
    design, _ = problem.sqrt_weighted()
    rows = np.setdiff1d(np.arange(problem.n_single), seen)
    if len(rows) < len(problem.target):
        design = design.rows(rows)
    bias = uneven_rows_bias(design, risk_path, run.train_path)
    if bias <= UNEVEN_ROWS_TOLERANCE:
        return
    if run.estimator.risk_row_scales:
        remedy = (
            "risk_row_scales, which corrects that, cannot be taken for this run: see "
            "loo_path_ (loo=True)."
        )
    else:
        remedy = "risk_row_scales=True corrects that."
    warn(
        "The rows of X have very uneven norms, heavier-tailed than Gaussian "
        f"rows: risk_path_ may be too low by about {100 * bias:.0f}% at its "
        f"minimum. {remedy}",
        UserWarning,
    )
