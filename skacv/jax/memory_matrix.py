"""The memory matrix of any differentiable update: what every row would be predicted.

With f_t the predictions, psi_s = -l'(y, f_s) the slopes of the rows, D_s = l'' and S_ts
the response of f_t to shocks in the slopes at step s, let

    A_ts = tr(D_t S_ts),    K_ts = [t=s] tr D_t - tr(D_t S_ts D_s),    W = K^-1 A.

Then U_t = f_t - sum_{s<t} W_ts psi_s is what every row would be predicted by the run
that never saw it (:mod:`skacv.risk.memory.curved_run`; Bellec & Tan 2024 for the
squared error). In batches psi_s and D_s are zero for rows that are not in the batch,
but the shocks of A are of all rows (Tan & Bellec 2024). S acts through one jvp of the
update, the state of the optimiser in the tangent. W V is read for the temporal modes V
of the slopes: with z = W V, shocks r V_s + D_s r z_s of random signs r, and z_t tr D_t
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
            given = (
                jnp.asarray(array, fitted.dtype) for array in (counts, block, signs)
            )
            parts.append(_solutions(model, data, first, curvature, *given))
        solutions.append(np.concatenate([np.asarray(part) for part in parts], axis=1))

    def held_out(solution):
        shift = np.tensordot(solution, modes.spatial, axes=1)
        predictions = (fitted.reshape(shape) - shift).reshape(fitted.shape)
        return predictions.astype(fitted.dtype)

    predictions = held_out(np.mean(solutions, axis=0))
    losses = partial(path_losses, model.loss, data.y)
    row_losses, all_rows = losses(predictions), Folds.of_rows(None, data.n_rows)
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
    size = n_rows * n_outputs
    if n_probes == "exact":
        yield np.sqrt(size) * np.eye(size).reshape(size, n_rows, n_outputs)
        return
    rng = np.random.default_rng(seed)
    for _ in range(n_probes // GROUP):
        yield random_signs((GROUP, n_rows, n_outputs), rng)


def check_against_exact(losses, exact, warns_above=0.25, raises_above=0.5):
    """Warn, or raise, where mean losses by the memory matrix and by refits differ.

    Shapes: losses and exact (n_steps + 1,), of the same rows.
    """
    off = np.abs(losses - exact) / np.abs(exact)
    worst = int(off.argmax())
    if off[worst] <= warns_above:
        return
    said = (
        f"The memory matrix estimates a loss of {losses[worst]:.3g} for iterate "
        f"{worst} on rows where leaving them out gives {exact[worst]:.3g}: the "
        "estimate is not valid for this run. It needs updates that change little where "
        "gradients change little, unlike those of RMSprop, of sign updates, of Adam "
        "late in runs that fit all rows, and of networks"
    )
    if off[worst] > raises_above:
        raise ValueError(f"{said}. Take cv_path or loo_path.")
    warn(f"{said}.", UserWarning)


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
            [next(floats) if kept else leaf for kept, leaf in zip(is_float, leaves)]
        )

    return [leaf for leaf, kept in zip(leaves, is_float) if kept], joined


@partial(jax.jit, static_argnums=0)
def _solutions(model, data, params, curvature, counts, temporal, signs):
    """W times some temporal modes, (n_steps + 1, n_modes)."""
    weights, start = model.equal_weights(params, data), model.begin(params)

    def shocked(carry, t, shift):
        """Update ``t`` where slopes of all rows are shifted, in a batch or not."""
        batch = data.at_update(t, weights)

        def objective(params):
            change = model.predict(params, data.X).reshape(shift.shape) * shift
            return model.objective(params, *batch) - weights @ change.sum(axis=1)

        return model.descend(carry, objective)

    def advance(state, inputs):
        carry, tangents = state
        t, mode, bend, count = inputs
        floats, joined = _floats(carry)

        def read(tangent, sign):
            def fitted(floats):
                return model.predict(joined(floats)[0], data.X).reshape(sign.shape)

            change = jax.jvp(fitted, (floats,), (tangent,))[1]
            return jnp.einsum("ik,ikl,il->", sign, bend, change)

        def push(tangent, shock):
            def following(floats, shift):
                return _floats(shocked(joined(floats), t, shift))[0]

            at = floats, jnp.zeros_like(shock)
            return jax.jvp(following, at, (tangent, shock))[1]

        # Tangents are by mode and probe.
        each_probe = jax.vmap(read, (0, 0))
        response = jax.vmap(each_probe, (0, None))(tangents, signs).mean(axis=1)
        size = jnp.einsum("ikk->", bend)
        z = jnp.where(size > 0, response / jnp.where(size > 0, size, 1), 0)
        bent = jnp.einsum("i,ikl,ril->rik", count, bend, signs)
        shocks = mode[:, None, None, None] * signs + z[:, None, None, None] * bent
        shocks *= data.n_rows / count.sum()
        tangents = jax.vmap(jax.vmap(push))(tangents, shocks)
        return (shocked(carry, t, jnp.zeros_like(signs[0])), tangents), z

    shape = temporal.shape[1], len(signs)
    floats, _ = _floats(start)
    tangents = [jnp.zeros((*shape, *leaf.shape), leaf.dtype) for leaf in floats]
    # After the last step nothing is pushed that would be read.
    temporal = jnp.concatenate([temporal, jnp.zeros_like(temporal[:1])])
    counts = jnp.concatenate([counts, counts[-1:]])
    inputs = jnp.arange(len(temporal)), temporal, curvature, counts
    return jax.lax.scan(advance, (start, tangents), inputs)[1]
