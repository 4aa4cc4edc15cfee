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

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from .._any_optimiser.folds import Folds
from .._any_optimiser.memory_matrix import (
    blocks_of_modes,
    check_against_exact,
    check_probes,
    estimate_of,
    groups_of_probes,
    modes_of_slopes,
)
from .data import equal_weights, row_losses


def memory_matrix(run, n_probes, n_checked, seed):
    """The estimate of a run, see :meth:`skacv.jax.Run.risk_path`."""
    check_probes(n_probes)
    model, data = run._model, run._data
    fitted = run.predict_path(data.X)
    slopes, curvature = _derivatives(model.loss, data.y, fitted)
    counts = data.counts(run.n_steps)
    taken = np.asarray(slopes)[:-1] * counts[:, :, None]
    modes = modes_of_slopes(taken, n_probes == "exact")
    first, shape = run.at_iteration(0), (len(fitted), data.n_rows, -1)
    solutions = []
    for signs in groups_of_probes(n_probes, *slopes.shape[1:], seed):
        blocks = blocks_of_modes(modes.temporal, len(signs), signs[0].size)
        found = [
            _solved(model, data, first, curvature, *_like(fitted, counts, block, signs))
            for block in blocks
        ]
        solutions.append(np.concatenate([np.asarray(part) for part in found], axis=1))

    def held_out(solution):
        moved = np.tensordot(solution, modes.spatial, axes=1)
        found = (fitted.reshape(shape) - moved).reshape(fitted.shape)
        return found.astype(fitted.dtype)

    predictions = held_out(np.mean(solutions, axis=0))
    losses = partial(row_losses, model.loss, data.y)
    by_group = [losses(held_out(solution)).mean(axis=1) for solution in solutions]
    every = Folds.of_rows(None, data.n_rows)
    found = estimate_of(losses(predictions), predictions, np.array(by_group), every)
    if n_checked:
        rng = np.random.default_rng(seed)
        n_checked = min(n_checked, data.n_rows)
        rows = np.sort(rng.choice(data.n_rows, n_checked, replace=False))
        own = row_losses(model.loss, data.y[rows], predictions[:, rows])
        check_against_exact(own.mean(axis=1), run.loo_path(rows).path)
    return found


def _like(fitted, *arrays):
    """Arrays of JAX in the precision of the predictions."""
    return [jnp.asarray(array, fitted.dtype) for array in arrays]


@partial(jax.jit, static_argnums=0)
def _derivatives(loss, y, fitted):
    """Slopes -l' and curvatures l'', (n_iterates, n, k) and (n_iterates, n, k, k)."""

    def cost(prediction, y):
        return loss(y[None], prediction.reshape(1, *fitted.shape[2:]))[0]

    flat = fitted.reshape(*fitted.shape[:2], -1)

    def each(derivative):
        return jax.vmap(jax.vmap(derivative), (0, None))(flat, y)

    return -each(jax.grad(cost)), each(jax.hessian(cost))


def _floats(tree):
    """The floating-point leaves of a pytree, and how to put others in their place.

    Counts of steps have no tangents.
    """
    leaves, shape = jax.tree.flatten(tree)
    is_float = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]

    def joined(floats):
        floats = iter(floats)
        return shape.unflatten(
            [next(floats) if own else leaf for own, leaf in zip(is_float, leaves)]
        )

    return [leaf for leaf, own in zip(leaves, is_float) if own], joined


@partial(jax.jit, static_argnums=0)
def _solved(model, data, params, curvature, counts, temporal, signs):
    """W times some temporal modes, (n_steps + 1, n_modes)."""
    weights, start = equal_weights(model, params, data), model.begin(params)

    def shocked(carry, t, shift):
        """Update ``t`` where slopes of all rows are shifted, in a batch or not."""
        batch = data.at_update(t, weights)

        def objective(params):
            moved = model.predict(params, data.X).reshape(shift.shape) * shift
            return model.objective(params, *batch) - weights @ moved.sum(axis=1)

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
