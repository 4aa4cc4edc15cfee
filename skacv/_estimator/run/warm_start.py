"""Where a run starts: at zero, or at the last iterate of the previous fit."""

from dataclasses import replace

import numpy as np

from ..._warnings import warn

# Numbers that agree in such a share of their digits differ by rounding.
DIGITS = 2 / 3
# Relative difference of scales that is rounding, in single precision as well.
SCALES = 1e-6


def starting_point(estimator, data, resume):
    """Coefficients to go on from, and the phases that led there.

    Parameters
    ----------
    resume : bool
        Whether to go on with what the estimator has recorded, if anything.

    Returns
    -------
    path : ndarray of shape (n_iterates, n_columns, n_outputs)
    phases : list of Phase

    Raises
    ------
    ValueError
        If the record has other features or outputs.
    """
    problem = data.problem
    shape = problem.design.shape[1], problem.target.shape[1]
    if not (resume and hasattr(estimator, "coef_path_")):
        return np.zeros((1, *shape)), []
    path = data.iterates(estimator.coef_path_, estimator.intercept_path_)
    if path.shape[1:] != shape:
        raise ValueError(
            "warm_start=True needs as many features and outputs (targets, or "
            f"classes) as before: {estimator.n_features_in_} and {path.shape[2]}, got "
            f"{data.names['n_features_in_']} and {shape[1]}."
        )
    if _has_run_on(estimator, data, path):
        return path, data.phases(estimator._phases)
    warn(
        "warm_start=True with other data than before, or another loss, intercept or "
        "standardize: a new trajectory starts from coef_. Its estimates hold if "
        "coef_ was fitted on data that are independent of these.",
        UserWarning,
    )
    return path[estimator.iteration_ : estimator.iteration_ + 1], []


def as_recorded(plan, done, dtype):
    """A plan with the numbers of recorded phases, where they differ by rounding.

    A run may go on with other numbers that stand for the same data, of which steps and
    strengths come out with other last digits.
    """
    tolerance = np.finfo(dtype).eps ** DIGITS
    return [_same_as_one_of(done, phase, tolerance) for phase in plan]


def _same_as_one_of(done, phase, tolerance):
    for recorded in done:
        step, strength = recorded.schedule.step_size, recorded.penalty.strength
        same = replace(
            phase,
            penalty=phase.penalty.with_strength(strength),
            schedule=replace(phase.schedule, step_size=step),
        )
        own = phase.schedule.step_size, phase.penalty.strength
        if same.same_rule(recorded) and np.allclose(
            own, (step, strength), rtol=tolerance, atol=0
        ):
            return same
    return phase


def _has_run_on(estimator, data, path):
    """Whether the recorded training errors are those of ``path`` on these data.

    With an intercept now if there was one, and on the same columns. Only shifts of X
    and y that the intercept takes up leave the errors unchanged, and those do not
    change the trajectory either.
    """
    has_intercept = bool(estimator.fit_intercept)
    if estimator._has_intercept != has_intercept or not _has_columns(estimator, data):
        return False
    problem, train = data.problem, estimator.train_path_
    ends = [problem.mean_loss(problem.design.dot(path[t])) for t in (0, -1)]
    tolerance = np.sqrt(np.finfo(estimator.coef_path_.dtype).eps) * train[0]
    return np.allclose(ends, train[[0, -1]], rtol=0, atol=tolerance)


def _has_columns(estimator, data):
    """Whether penalties and steps of the record are of columns of the same scales.

    Means that were subtracted do not matter where the run is centred in any case.
    """
    recorded, columns = estimator._columns, data.columns
    is_alike = data.is_centered or recorded.centers == columns.centers
    return is_alike and np.allclose(recorded.scale, columns.scale, rtol=SCALES, atol=0)
