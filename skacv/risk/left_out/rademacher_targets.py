"""Rows left out of passes that are always the same linear map, from random labels.

A pass is one linear map, so leaving row i out is a Volterra recursion along the run.
Let c_i^m be the residual at row i, m passes after the run was started from the
residual 1 there and 0 elsewhere: c_i^m just before the batch of the row, and b_i^m at
the end of a pass. They measure how much a row determines its own residual: its
self-influence. Without its gradient the row's residual would stay 1, hence

    e_i^s = v_i^s + sum_{j=1}^{s} (c_i^{j-1} - c_i^j) e_i^{s-j},      s = 0, 1, ...
    h_i^t = r_i^t + sum_{j=1}^{t} (b_i^{j-1} - b_i^j) e_i^{t-j},      t = 1, 2, ...

with v, r the recorded residuals before the batch and at the end, and e, h those
of the run that drops the gradient of row i (b_i^0 = c_i^0 = 1). Weights of the other
rows, and means, are those of the run. The c_i are shared by all outputs. They are read
from random targets z that are fitted along with the run: z_i times the residual of
a run on -z has the mean c_i.
"""

import numpy as np
from scipy.linalg import lstsq

from ..random_labels import jackknife, label_groups


class ResidualRecursion:
    """The recursion of some rows, pass by pass, with a record of ``dtype``."""

    def __init__(self, n_rows, dtype=np.float64):
        self._dtype = dtype
        self._before = self._end = np.ones(n_rows)
        self._responses, self._end_responses, self._held_out = [], [], []

    def after_pass(self, visited, residual, influence, end_influence):
        """Held-out residuals (n_rows, n_outputs) at the end of one more pass."""
        # Pass t = 1, 2, ... has recorded residuals ``visited`` and ``residual``,
        # influences c^{t-1} and end_influences b^t, (n_rows,).
        if self._held_out:
            self._responses.append((self._before - influence).astype(self._dtype))
            self._before = influence
        self._end_responses.append((self._end - end_influence).astype(self._dtype))
        self._end = end_influence
        held_out = visited + _convolved(self._responses, self._held_out)
        self._held_out.append(held_out.astype(self._dtype))
        return residual + _convolved(self._end_responses, self._held_out)


def _convolved(responses, held_out):
    """sum_j responses[j] held_out[-1 - j], (n_rows, n_outputs) or zero."""
    pairs = zip(responses, reversed(held_out))
    return sum(response[:, None] * earlier for response, earlier in pairs)


class SelfInfluences:
    """Self-influences of rows, as far as random targets resolve them."""

    # The mean over m targets, while it is above ``resolved`` of its standard errors.
    # Then its best linear prediction: with x_i those means of row i in the last
    # ``n_passes``, their covariance over the rows is S + N / m: that of the influences
    # and that of the noise, which shows in the spread of single targets, in
    # ``n_noise_rows`` at most. The influence in the last of them is predicted by mu +
    # S_last (S + N / m)^-1 (x_i - mu), mu the mean over the rows. Rows keep their order
    # from pass to pass, so earlier passes predict the last well; where targets resolve
    # no row, all rows have the mean. ``subsets`` are masks of the targets of every
    # replicate.

    def __init__(self, subsets, n_passes=8, resolved=3, n_noise_rows=2000):
        self._subsets, self._n_passes = subsets, n_passes
        self._resolved, self._n_noise_rows = resolved, n_noise_rows
        self._means, self._deviations = [], []
        self._is_resolved = True

    def advance(self, signed):
        """Influences (n_rows,) of every replicate after a pass, as a list."""
        # ``signed`` are targets times their residuals, (n_rows, n_targets).
        means = [signed[:, subset].mean(axis=1) for subset in self._subsets]
        sample = signed[:: -(-len(signed) // self._n_noise_rows)]
        deviations = sample - sample.mean(axis=1, keepdims=True)
        self._means = [*self._means, means][-self._n_passes :]
        self._deviations = [*self._deviations, deviations.ravel()][-self._n_passes :]
        noise = np.array(self._deviations) @ np.array(self._deviations).T
        noise /= deviations.size - len(deviations)
        error = signed.std(axis=1) / np.sqrt(signed.shape[1])
        self._is_resolved = self._is_resolved & (means[0] > self._resolved * error)
        influences = []
        for observed, subset in zip(zip(*self._means), self._subsets):
            predicted = _denoised(np.array(observed), noise / np.count_nonzero(subset))
            influences.append(np.where(self._is_resolved, observed[-1], predicted))
        return influences


def _denoised(observed, noise):
    """The last of observations (n_passes, n_rows), without noise of that covariance."""
    mean = observed.mean(axis=1)
    deviations = observed - mean[:, None]
    covariance = deviations @ deviations.T / max(deviations.shape[1] - 1, 1)
    signal = covariance[-1] - noise[-1]
    if signal[-1] <= 0:
        return np.full(observed.shape[1], mean[-1])
    # Directions of less relative variance are rounding.
    weights, *_ = lstsq(covariance, signal, cond=np.sqrt(np.finfo(float).eps))
    return mean[-1] + weights @ deviations


class RademacherLeaveOneOut:
    """Held-out residuals along a run, from random targets that are fitted with it."""

    # Where the run comes close to fitting a row, noise would outweigh its
    # self-influence and the recursion diverge: from then on the row has the influence
    # that SelfInfluences predicts. The recursion is not linear in them, so the mean
    # square of the held-out residuals is corrected by the jackknife over groups of
    # targets.
    #
    # By iterate: ``residuals`` of the rows; ``path``, the corrected mean of their
    # squares, with its ``bias`` by the random targets and the standard error ``mc_se``;
    # ``degrees_of_freedom``, the trace of the map from targets to predictions.

    def __init__(self, signs, rows, start, dtype):
        """Start from residuals ``start``; targets are minus the signs."""
        # Shapes: signs (n_rows, n_targets); rows (n_left_out,); start (n_rows,
        # n_outputs). The record is of ``dtype``.
        self._signs, self._rows, self._dtype = signs, rows, dtype
        subsets = label_groups(signs.shape[1])
        self._before, self._after = SelfInfluences(subsets), SelfInfluences(subsets)
        self._replicates = [ResidualRecursion(len(rows), dtype) for _ in subsets]
        self.residuals = [start[rows].astype(dtype)]
        self.path = [np.mean(start[rows] ** 2)]
        self.bias, self.mc_se = [0.0], [0.0]
        self.degrees_of_freedom = [0.0]

    def after_pass(self, visited, end):
        """Record one more pass, by residuals on the target and on random targets."""
        # ``visited`` are those just before the batch of each row, ``end`` those after
        # the pass: pairs of (n_rows, n_outputs), (n_rows, n_targets).
        (visited, visited_random), (end, end_random) = visited, end
        signed = self._signs * end_random
        before = self._before.advance((self._signs * visited_random)[self._rows])
        after = self._after.advance(signed[self._rows])
        recorded = visited[self._rows], end[self._rows]
        held_out, *without_groups = (
            replicate.after_pass(*recorded, *influences)
            for replicate, *influences in zip(self._replicates, before, after)
        )
        squares = [np.mean(residuals**2) for residuals in without_groups]
        square = np.mean(held_out**2, dtype=np.float64)
        bias, mc_se = jackknife(square, squares)
        self.residuals.append(held_out.astype(self._dtype))
        self.path.append(square - float(bias))
        self.bias.append(float(bias))
        self.mc_se.append(float(mc_se))
        self.degrees_of_freedom.append(float(np.sum(1 - signed.mean(axis=1))))
