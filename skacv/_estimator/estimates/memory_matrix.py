"""The memory matrix: from a finished run to its estimate."""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..._warnings import warn
from ...optim.array_path import ArrayPath
from ...records.held_out import HeldOut
from ...risk.memory.memory_matrix import estimate_risk
from ...risk.memory.row_scales import uneven_rows_bias
from ...risk.reader import Unreadable
from ..parameters import to_python_scalar


class LowRankPath(NamedTuple):
    """A quantity of every iterate and row, as ``temporal @ spatial``.

    Shapes: temporal (n_iter_ + 1, n_modes), spatial (n_modes, n_rows[, n_targets]).
    """

    temporal: np.ndarray
    spatial: np.ndarray


class LowRankPredictions(ArrayPath):
    """Held-out predictions of every iterate and row, from low-rank factors."""

    def __init__(self, factors, prediction):
        self._factors, self._prediction = factors, prediction
        self.dtype = factors.spatial.dtype
        self.shape = len(factors.temporal), *factors.spatial.shape[1:]

    def _compute(self, iterates):
        temporal, spatial = self._factors
        values = np.tensordot(temporal[iterates], spatial, axes=1)
        return self._prediction(values).astype(self.dtype, copy=False)


def has_memory_matrix(estimator):
    """Whether updates of an estimator have the derivatives that this estimate needs."""
    if not hasattr(estimator, "_spec"):
        return True
    return estimator._spec().solver.update(n_rows=1).has_tangent


def also_if_costly(estimator, X, y, n_rows):
    """The value that replaces ``risk="auto"`` if the memory matrix is the criterion."""
    return True


def read_memory_matrix(run):
    """The memory-matrix estimate of the risk; None if "auto" has none."""
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    method = to_python_scalar(estimator.risk)
    try:
        estimate = estimate_risk(
            data.problem,
            trajectory,
            estimator._spec().refit(data),
            method=method,
            row_scales=estimator.risk_row_scales,
            rng=check_random_state(estimator.random_state),
        )
    except Unreadable:
        if method == "auto":
            return None
        raise
    if estimate.row_scale_error > 0.02:  # a share of risk_path_
        _warn_of_row_scales(run, estimate)
    rows = np.setdiff1d(np.arange(data.problem.n_single), trajectory.rows_seen())
    more = {
        "mc_se_path": estimate.mc_se_path,
        "n_probes": estimate.n_probes,
        "row_scale_share": estimate.row_scale_share,
    }
    offset, spatial, loss = data.offset, estimate.spatial, data.problem.loss
    if data.has_flat_predictions:
        offset, spatial = offset[:, 0], spatial[:, :, 0]
    factors = LowRankPath(estimate.temporal, spatial)
    if loss.is_of_residual:
        more["residual_path"] = factors
        prediction = partial(np.subtract, data.y[rows])
    else:
        prediction = partial(
            _prediction, estimator_class=type(estimator), offset=offset, loss=loss
        )
    return HeldOut(
        path=estimate.path,
        se_path=estimate.se_path,
        indices=data.rows[rows],
        target=data.y[rows],
        prediction=LowRankPredictions(factors, prediction),
        more=more,
    )


def _prediction(predictor, estimator_class, offset, loss):
    """Predictions from predictors less the mean of the target, which they overwrite."""
    predictor += offset
    return estimator_class._prediction(predictor, loss)


def _warn_of_row_scales(run, estimate, tol=0.1):
    """Warn where rows without scales would need them, or scales say too little."""
    if np.isfinite(estimate.row_scale_error):
        warn(
            "risk_path_ may be wrong by up to about "
            f"{100 * estimate.row_scale_error:.0f}% on some iterates: the norms of the "
            "rows of X are too uneven for risk_row_scales. loo_path_ (loo=True) does "
            "not depend on them.",
            UserWarning,
        )
        return
    problem, seen = run.data.problem, run.trajectory.rows_seen()
    design, _ = problem.sqrt_weighted()
    rows = np.setdiff1d(np.arange(problem.n_single), seen)
    if len(rows) < len(problem.target):
        design = design.rows(rows)
    bias = uneven_rows_bias(design, estimate.path, run.train_path)
    if bias <= tol:
        return
    if run.estimator.risk_row_scales:
        remedy = (
            "risk_row_scales, which corrects this, is not available for this run: see "
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
