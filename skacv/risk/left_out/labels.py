"""Rows left out of passes that are always the same linear map, from random labels.

A pass is one linear map, so leaving row i out is a Volterra recursion along the run.
Let c_i^m be the residual at row i, m passes after the run was started from the
residual 1 there and 0 elsewhere: c_i^m just before the batch of the row, and b_i^m at
the end of a pass. They say how strongly the row holds on to its own residual: its
self-influence. Without its gradient the row's residual would stay 1, hence

    e_i^s = v_i^s + sum_{j=1}^{s} (c_i^{j-1} - c_i^j) e_i^{s-j},      s = 0, 1, ...
    h_i^t = r_i^t + sum_{j=1}^{t} (b_i^{j-1} - b_i^j) e_i^{t-j},      t = 1, 2, ...

with v, r the recorded residuals before the batch and at the end, and e, h those
of the run that drops the gradient of row i (b_i^0 = c_i^0 = 1). Weights of the other
rows, and means, are those of the run. The c_i are shared by all outputs. They are read
from random labels z that the run carries beside its outputs: z_i times the residual of
a run on -z has the mean c_i.
"""

import numpy as np
from scipy.linalg import lstsq

from ..random_labels import jackknife, label_groups

# A row's self-influence is its own while it is so many of its standard errors.
RESOLVED = 3
# Passes that it is predicted from, and rows that the noise is read from.
N_PASSES = 8
NOISE_ROWS = 2000
# Directions of less relative variance are rounding.
SINGULAR = 1e-8


class HeldOutResiduals:
    """The recursion, pass by pass, of some rows; what it keeps is of ``dtype``."""

    def __init__(self, n_rows, dtype=np.float64):
        self._dtype = dtype
        self._before = self._end = np.ones(n_rows)
        self._responses, self._end_responses, self._held_out = [], [], []

    def after_pass(self, visited, residual, influence, end_influence):
        """Held-out residuals at the end of one more pass, (n_rows, n_outputs).

        Parameters
        ----------
        visited, residual : ndarray of shape (n_rows, n_outputs)
            Recorded residuals in this pass, number t = 1, 2, ...
        influence, end_influence : ndarray of shape (n_rows,)
            c^{t-1} and b^t.
        """
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
    """Self-influences of rows, as far as labels resolve them.

    The mean over m labels, while it is above three of its standard errors. Then its
    best linear prediction: with x_i those means of row i in the last passes, their
    covariance over the rows is S + N / m: that of the influences and that of the noise,
    which shows in how single labels spread. The influence in the last of them is
    predicted by mu + S_last (S + N / m)^-1 (x_i - mu), mu the mean over the rows. Rows
    keep their order from pass to pass, so earlier passes say much of the last;
    where labels do not resolve any row, all have the mean.

    Parameters
    ----------
    kept : list of ndarray of bool
        Labels that every replicate takes.
    """

    def __init__(self, kept):
        self._kept = kept
        self._means, self._deviations = [], []
        self._is_resolved = True

    def advance(self, signed):
        """Go on by a pass.

        Parameters
        ----------
        signed : ndarray of shape (n_rows, n_labels)
            Labels times their residuals.

        Returns
        -------
        list of ndarray of shape (n_rows,)
            For every replicate.
        """
        means = [signed[:, kept].mean(axis=1) for kept in self._kept]
        some = signed[:: -(-len(signed) // NOISE_ROWS)]
        deviations = some - some.mean(axis=1, keepdims=True)
        self._means = [*self._means, means][-N_PASSES:]
        self._deviations = [*self._deviations, deviations.ravel()][-N_PASSES:]
        noise = np.array(self._deviations) @ np.array(self._deviations).T
        noise /= deviations.size - len(deviations)
        error = signed.std(axis=1) / np.sqrt(signed.shape[1])
        self._is_resolved = self._is_resolved & (means[0] > RESOLVED * error)
        found = []
        for observed, kept in zip(zip(*self._means), self._kept):
            found_here = observed[-1].copy()
            others = ~self._is_resolved
            own_noise = noise / np.count_nonzero(kept)
            found_here[others] = _predicted(np.array(observed), own_noise)[others]
            found.append(found_here)
        return found


def _predicted(observed, noise):
    """The last of (n_passes, n_rows) without noise of that covariance."""
    center = observed.mean(axis=1)
    apart = observed - center[:, None]
    covariance = apart @ apart.T / max(apart.shape[1] - 1, 1)
    wanted = covariance[-1] - noise[-1]
    if wanted[-1] <= 0:
        return np.full(observed.shape[1], center[-1])
    weights, *_ = lstsq(covariance, wanted, cond=SINGULAR)
    return center[-1] + weights @ apart


class LabelledLeaveOneOut:
    """Held-out residuals along a run that carries random labels.

    Where the run comes close to fitting a row, noise would outweigh its self-influence
    and the recursion diverge: from then on the row has what :class:`SelfInfluences`
    predicts. The recursion is not linear in them, so the mean square of the held-out
    residuals is corrected by the jackknife over groups of labels.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_labels)
        Entries +1 or -1; the run is on minus these.
    rows : ndarray of int
        Rows that are left out.
    start : ndarray of shape (n_rows, n_outputs)
        Residuals that the run starts from.
    dtype : dtype
        What is kept of every pass.

    Attributes
    ----------
    residuals : list of ndarray of shape (n_left_out, n_outputs)
        Held-out residuals of every iterate.
    bias, mc_se : list of float
        What the labels add to the mean of their squares on average, and its standard
        error on their account.
    degrees_of_freedom : list of float
        Trace of the map from targets to predictions, for one output.
    """

    def __init__(self, labels, rows, start, dtype):
        self._labels, self._rows, self._dtype = labels, rows, dtype
        kept = label_groups(labels.shape[1])
        self._before, self._after = SelfInfluences(kept), SelfInfluences(kept)
        self._replicates = [HeldOutResiduals(len(rows), dtype) for _ in kept]
        self.residuals = [start[rows].astype(dtype)]
        self._squares = [np.mean(start[rows] ** 2)]
        self.bias, self.mc_se = [0.0], [0.0]
        self.degrees_of_freedom = [0.0]

    def advance(self, visited, ended):
        """Go on by a pass.

        Parameters
        ----------
        visited, ended : tuple of ndarray, (n_rows, n_outputs) and (n_rows, n_labels)
            Residuals of the run, and those of the run on the labels: just before each
            row's batch, and at the end.
        """
        (visited, visited_labels), (ended, ended_labels) = visited, ended
        signed = self._labels * ended_labels
        before = self._before.advance((self._labels * visited_labels)[self._rows])
        after = self._after.advance(signed[self._rows])
        own = visited[self._rows], ended[self._rows]
        held_out, *others = (
            replicate.after_pass(*own, *influences)
            for replicate, *influences in zip(self._replicates, before, after)
        )
        squares = [np.mean(residuals**2) for residuals in others]
        square = np.mean(held_out**2, dtype=np.float64)
        bias, mc_se = jackknife(square, squares)
        self.residuals.append(held_out.astype(self._dtype))
        self._squares.append(square)
        self.bias.append(float(bias))
        self.mc_se.append(float(mc_se))
        self.degrees_of_freedom.append(float(np.sum(1 - signed.mean(axis=1))))

    def risks(self):
        """The mean squared held-out residual of every iterate, and its error.

        Shapes: returned risks, mc_se (n_iterates,).
        """
        return np.array(self._squares) - self.bias, np.array(self.mc_se)
