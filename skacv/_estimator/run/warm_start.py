"""The start of a run that continues the last fit: its last iterate."""

from dataclasses import replace

import numpy as np

from ..._warnings import warn


def starting_point(recorded, data):
    """Coefficients (t, n_columns, n_outputs) of a record, and phases that led there."""
    problem = data.problem
    shape = problem.design.shape[1], problem.target.shape[1]
    path = data.iterates(recorded.iterates.coef, recorded.iterates.intercept)
    if path.shape[1:] != shape:
        raise ValueError(
            "warm_start=True needs as many features and outputs (targets, or "
            f"classes) as before: {recorded.iterates.coef.shape[-1]} and "
            f"{path.shape[2]}, got {data.names['n_features_in_']} and {shape[1]}."
        )
    if _is_path_on(recorded, data, path):
        return path, data.phases(recorded.phases)
    warn(
        "warm_start=True with other data than before, or another loss, intercept or "
        "standardize: a new trajectory starts from coef_. Its estimates hold if "
        "coef_ was fitted on data that are independent of these.",
        UserWarning,
    )
    # On other data: from the iterate in use, after no phases.
    return path[recorded.iteration : recorded.iteration + 1], []


def match_recorded(plan, done, dtype):
    """A plan with the numbers of recorded phases, where they differ by rounding."""
    # A reduced run may continue on other numbers, from which steps and strengths have
    # other last digits: two thirds of the digits have to agree.
    tolerance = np.finfo(dtype).eps ** (2 / 3)
    phases = []
    for phase in plan:
        planned = phase.schedule.step_size, phase.penalty.strength
        for recorded in done:
            step, strength = recorded.schedule.step_size, recorded.penalty.strength
            same = replace(
                phase,
                penalty=phase.penalty.with_strength(strength),
                schedule=replace(phase.schedule, step_size=step),
            )
            if same.same_rule(recorded) and np.allclose(
                planned, (step, strength), rtol=tolerance, atol=0
            ):
                phase = same
                break
        phases.append(phase)
    return phases


def _is_path_on(recorded, data, path):
    """Whether the recorded training errors are those of ``path`` on these data."""
    # Only shifts of X and y that an intercept absorbs leave the errors unchanged, and
    # those do not change the trajectory either.
    if recorded.has_intercept != (data.is_centered or data.has_constant):
        return False
    before, columns = recorded.columns, data.columns
    if not data.is_centered and before.centers != columns.centers:
        return False
    # A difference that is rounding in single precision as well.
    if not np.allclose(before.scale, columns.scale, rtol=1e-6, atol=0):
        return False
    problem, train = data.problem, recorded.train_path
    ends = [problem.mean_loss(problem.design.dot(path[t])) for t in (0, -1)]
    tolerance = np.sqrt(np.finfo(recorded.iterates.coef.dtype).eps) * train[0]
    return np.allclose(ends, train[[0, -1]], rtol=0, atol=tolerance)
