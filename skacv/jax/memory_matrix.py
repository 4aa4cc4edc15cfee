"""The memory matrix of any differentiable update: predictions by runs without a row.

With f_t the predictions, psi_s = -l'(y, f_s) the slopes of the rows, D_s = l'' and S_ts
the response of f_t to shocks in the slopes at step s, let

    A_ts = tr(D_t S_ts),    K_ts = [t=s] tr D_t - tr(D_t S_ts D_s),    W = K^-1 A.

Then U_t = f_t - sum_{s<t} W_ts psi_s estimates the prediction for every row by the run
without this row (:mod:`skacv.risk.memory.curved_run`; Bellec & Tan 2024 for the squared
error). In batches psi_s and D_s are zero for rows outside the batch, but the shocks of
A are shocks of all rows (Tan & Bellec 2024). One jvp of the update, with the state of
the optimiser in the tangent, applies S. For the temporal modes V of the slopes, z = W V
is estimated with random signs r: the shocks are r V_s + D_s r z_s, and z_t tr D_t is
the mean of r'D_t df_t.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .._warnings import warn
from ..optim.blocks import MEMORY_BYTES, blocks
from ..risk.memory.modes import AlongRun, all_modes, modes_of
from ..risk.random_labels import random_signs
from .data import path_losses

# Random signs in a group: the estimate is the mean over groups, and its standard error
# comes from their spread.
GROUP = 10
# Rows that are also left out exactly, as a check.
N_CHECKED = 20


def memory_matrix(run, n_probes, n_checked, seed):
    """The estimate of a run, see :meth:`skacv.jax.Run.risk_path`."""
    is_exact, is_number = n_probes == "exact", isinstance(n_probes, int | np.integer)
    if not (is_exact or (is_number and n_probes >= 2 * GROUP)):
        raise ValueError(
            f"n_probes must be 'exact' or at least {2 * GROUP}, got {n_probes!r}."
        )
    if (run._row_weights != run._row_weights[0]).any():
        raise ValueError(
            "risk_path counts all rows alike, but the run has a sample_weight that "
            "differs from row to row: use cv_path or loo_path."
        )
    model, data = run._model, run._data
    fitted = run.predict_path(data.X)
    slopes, curvature = _row_derivatives(model.loss, data.y, fitted)
    counts = data.counts(run.n_steps)
    batch_slopes = np.asarray(slopes)[:-1] * counts[:, :, None]
    along = AlongRun(batch_slopes.shape, lambda rows: batch_slopes[:, rows].copy())
    modes = all_modes(batch_slopes, 1e-12) if is_exact else modes_of(along, 0.02, 0.05)
    first, shape = run.at_iteration(0), (len(fitted), data.n_rows, -1)
    solutions = []
    for signs in groups_of_probes(n_probes, *slopes.shape[1:], seed):
        parts = []
        # Every mode has a tangent for each sign vector, which predicts all rows.
        for some_modes in blocks(modes.temporal.shape[1], 8 * signs.size, MEMORY_BYTES):
            block = modes.temporal[:, some_modes]
            arrays = (
                jnp.asarray(array, fitted.dtype) for array in (counts, block, signs)
            )
            parts.append(_solutions(model, data, first, curvature, *arrays))
        solutions.append(np.concatenate([np.asarray(part) for part in parts], axis=1))

    def held_out(solution):
        shift = np.tensordot(solution, modes.spatial, axes=1)
        predictions = (fitted.reshape(shape) - shift).reshape(fitted.shape)
        return predictions.astype(fitted.dtype)

    predictions = held_out(np.mean(solutions, axis=0))
    losses = partial(path_losses, model.loss, data.y)
    row_losses, all_rows = losses(predictions), Folds.of_rows(None, run._row_weights)
    estimate = PathEstimate.of(row_losses, predictions, all_rows)
    if len(solutions) > 1:  # random signs leave an error
        by_group = [losses(held_out(solution)).mean(axis=1) for solution in solutions]
        error = np.std(by_group, axis=0, ddof=1) / np.sqrt(len(solutions))
        estimate = replace(estimate, se_path=np.hypot(estimate.se_path, error))
    if n_checked:
        rng = np.random.default_rng(seed)
        n_checked = min(n_checked, data.n_rows)
        rows = np.sort(rng.choice(data.n_rows, n_checked, replace=False))
        check_against_exact(row_losses[:, rows].mean(axis=1), run.loo_path(rows).path)
    return estimate


def groups_of_probes(n_probes, n_rows, n_outputs, seed):
    """Vectors r whose mean r'Mr is the trace of M: random signs, or "exact" a basis.

    Shapes: every group (n_group, n_rows, n_outputs).
    """
    trace_of_D = n_rows * n_outputs
    if n_probes == "exact":
        yield np.sqrt(trace_of_D) * np.eye(trace_of_D).reshape(
            trace_of_D, n_rows, n_outputs
        )
        return
    rng = np.random.default_rng(seed)
    for _ in range(n_probes // GROUP):
        yield random_signs((GROUP, n_rows, n_outputs), rng)


def check_against_exact(losses, exact, warns_above=0.25, raises_above=0.5):
    """Warn, or raise, where mean losses by the memory matrix and by refits differ.

    Shapes: losses and exact (n_steps + 1,), of the same rows.
    """
    relative_error = np.abs(losses - exact) / np.abs(exact)
    worst = int(relative_error.argmax())
    if relative_error[worst] <= warns_above:
        return
    message = (
        f"The memory matrix estimates a loss of {losses[worst]:.3g} for iterate "
        f"{worst} on rows where leaving them out gives {exact[worst]:.3g}: the "
        "estimate is not valid for this run. It needs updates that change little if "
        "gradients change little, unlike those of RMSprop, of sign updates, of Adam "
        "late in runs that fit all rows, and of networks"
    )
    if relative_error[worst] > raises_above:
        raise ValueError(f"{message}. Use cv_path or loo_path.")
    warn(f"{message}.", UserWarning)


@partial(jax.jit, static_argnums=0)
def _row_derivatives(loss, y, fitted):
    """Slopes -l' and curvatures l'', (n_iterates, n, k) and (n_iterates, n, k, k)."""

    def of_row(prediction, y):
        return loss(y[None], prediction.reshape(1, *fitted.shape[2:]))[0]

    flat = fitted.reshape(*fitted.shape[:2], -1)

    def map_rows(derivative):
        return jax.vmap(jax.vmap(derivative), (0, None))(flat, y)

    return -map_rows(jax.grad(of_row)), map_rows(jax.hessian(of_row))


def _floats(tree):
    """The floating-point leaves of a pytree, and a function that replaces them."""
    # Counts of steps are integers, without tangents.
    leaves, shape = jax.tree.flatten(tree)
    is_float = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]

    def joined(floats):
        floats = iter(floats)
        return shape.unflatten(
            [
                next(floats) if is_tangent else leaf
                for is_tangent, leaf in zip(is_float, leaves)
            ]
        )

    return [leaf for leaf, is_tangent in zip(leaves, is_float) if is_tangent], joined


@partial(jax.jit, static_argnums=0)
def _solutions(model, data, params, curvature, counts, temporal, signs):
    """W times some temporal modes, (n_steps + 1, n_modes)."""
    weights, start = data.weights, model.begin(params)

    def shifted_update(carry, t, shift):
        """Update ``t`` where slopes of all rows are shifted, in a batch or not."""
        batch = data.at_update(t, weights)

        def objective(params):
            change = model.predict(params, data.X).reshape(shift.shape) * shift
            return model.objective(params, *batch) - weights @ change.sum(axis=1)

        return model.descend(carry, objective)

    def advance(state, inputs):
        carry, tangents = state
        t, mode_t, D, count = inputs
        floats, joined = _floats(carry)

        def trace_of(tangent, sign):
            def fitted(floats):
                return model.predict(joined(floats)[0], data.X).reshape(sign.shape)

            change = jax.jvp(fitted, (floats,), (tangent,))[1]
            return jnp.einsum("ik,ikl,il->", sign, D, change)

        def advance_tangent(tangent, shock):
            def following(floats, shift):
                return _floats(shifted_update(joined(floats), t, shift))[0]

            point = floats, jnp.zeros_like(shock)
            return jax.jvp(following, point, (tangent, shock))[1]

        # Tangents are by mode and probe.
        traces_of_probes = jax.vmap(trace_of, (0, 0))
        response = jax.vmap(traces_of_probes, (0, None))(tangents, signs).mean(axis=1)
        trace_of_D = jnp.einsum("ikk->", D)
        z = jnp.where(
            trace_of_D > 0, response / jnp.where(trace_of_D > 0, trace_of_D, 1), 0
        )
        curved_signs = jnp.einsum("i,ikl,ril->rik", count, D, signs)
        shocks = (
            mode_t[:, None, None, None] * signs + z[:, None, None, None] * curved_signs
        )
        shocks *= data.n_rows / count.sum()
        tangents = jax.vmap(jax.vmap(advance_tangent))(tangents, shocks)
        return (shifted_update(carry, t, jnp.zeros_like(signs[0])), tangents), z

    shape = temporal.shape[1], len(signs)
    floats, _ = _floats(start)
    tangents = [jnp.zeros((*shape, *leaf.shape), leaf.dtype) for leaf in floats]
    # The last step only reads the tangents: its shocks and its batch do not matter.
    temporal = jnp.concatenate([temporal, jnp.zeros_like(temporal[:1])])
    counts = jnp.concatenate([counts, counts[-1:]])
    inputs = jnp.arange(len(temporal)), temporal, curvature, counts
    return jax.lax.scan(advance, (start, tangents), inputs)[1]
