"""The memory matrix of any update: modes, probes, and whether it holds."""

from dataclasses import replace

import numpy as np

from .._warnings import warn
from ..risk.memory.modes import AlongRun, all_modes, modes_of
from ..risk.random_labels import random_signs
from .estimates import PathEstimate

# How well modes have the slopes of every iterate, and how small an iterate's may be.
KEPT, FLOOR = 0.02, 0.05
# Modes that are smaller, relative to the largest, are rounding.
RESOLUTION = 1e-12
# Random signs of a group: their mean is taken within it, their error between groups.
GROUP = 10
# Memory for what the tangents of a block of modes predict.
BLOCK_BYTES = 1 << 26
# Some rows are left out exactly as well. If the estimate is off their mean loss by more
# than these shares of it, that is warned of, or refused.
N_CHECKED = 20
WARNED_OF, REFUSED = 0.25, 0.5


def check_probes(n_probes):
    """Raise where a number of probes is none, nor "exact"."""
    is_number = isinstance(n_probes, int | np.integer)
    if n_probes != "exact" and not (is_number and n_probes >= 2 * GROUP):
        raise ValueError(
            f"n_probes must be 'exact' or at least {2 * GROUP}, got {n_probes!r}."
        )


def modes_of_slopes(slopes, is_exact):
    """All temporal modes of slopes (n_steps, n_rows, n_outputs), or what matters."""
    along = AlongRun(slopes.shape, lambda rows: slopes[:, rows].copy())
    if is_exact:
        return all_modes(along, RESOLUTION)
    return modes_of(along, KEPT, FLOOR)


def groups_of_probes(n_probes, n_rows, n_outputs, seed):
    """Vectors r whose mean r'Mr is the trace of M, group by group.

    Yields
    ------
    ndarray of shape (n_group, n_rows, n_outputs)
        Random signs, or once a complete basis where ``n_probes`` is "exact".
    """
    size = n_rows * n_outputs
    if n_probes == "exact":
        yield np.sqrt(size) * np.eye(size).reshape(size, n_rows, n_outputs)
        return
    rng = np.random.default_rng(seed)
    for _ in range(n_probes // GROUP):
        yield random_signs((GROUP, n_rows, n_outputs), rng)


def blocks_of_modes(temporal, n_probes, n_entries):
    """Blocks of modes, (n_steps, n_block), whose tangents keep to ``BLOCK_BYTES``.

    Every mode has ``n_probes`` tangents, each of which predicts ``n_entries`` numbers.
    """
    size = max(1, BLOCK_BYTES // (8 * n_probes * n_entries))
    return np.split(temporal, range(size, temporal.shape[1], size), axis=1)


def estimate_of(losses, predictions, by_group, folds):
    """The estimate, with the error that random signs leave in it.

    The error comes from mean losses by the probes of each group, (n_groups, n_steps +
    1). The folds are all rows, one by one.
    """
    found = PathEstimate.of(losses, predictions, folds)
    n_groups = len(by_group)
    error = by_group.std(axis=0, ddof=1) / np.sqrt(n_groups) if n_groups > 1 else 0.0
    return replace(found, se_path=np.hypot(found.se_path, error))


def check_against_exact(losses, exact):
    """Warn, or raise, where the exact losses of left-out rows differ.

    Both are mean losses on the same rows, (n_steps + 1,), from the memory matrix and
    from refits.
    """
    off = np.abs(losses - exact) / np.abs(exact)
    worst = int(off.argmax())
    if off[worst] <= WARNED_OF:
        return
    said = (
        f"The memory matrix estimates a loss of {losses[worst]:.3g} for iterate "
        f"{worst} on rows where leaving them out gives {exact[worst]:.3g}: the "
        "estimate is not valid for this run. It needs updates that change little where "
        "gradients change little, unlike those of RMSprop, of sign updates, of Adam "
        "late in runs that fit all rows, and of networks"
    )
    if off[worst] > REFUSED:
        raise ValueError(f"{said}. Take cv_path or loo_path.")
    warn(f"{said}.", UserWarning)
