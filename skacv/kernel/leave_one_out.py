"""What every epoch would predict for rows whose gradient it never took.

An epoch is one linear map, so leaving row i out is a Volterra recursion along the
run. Let c_i^m be the residual at row i, m epochs after the run was started from
the residual 1 there and 0 elsewhere: c_i^m just before the batch of the row, and
b_i^m at the end of an epoch. Without its gradient the row's residual would stay
1, hence

    e_i^s = v_i^s + sum_{j=1}^{s} (c_i^{j-1} - c_i^j) e_i^{s-j},      s = 0, 1, ...
    h_i^t = r_i^t + sum_{j=1}^{t} (b_i^{j-1} - b_i^j) e_i^{t-j},      t = 1, 2, ...

with v, r the recorded residuals before the batch and at the end, and e, h those
of the run that drops the gradient of row i (b_i^0 = c_i^0 = 1). All rows at a
time, c_i^m = b_i^m = sum_k U_ik^2 (1 - step_size theta_k)^m with
K_P / n = U diag(theta) U'. The c_i are shared by all outputs. The function itself is
then, in coefficients of k_P, that of the run and

    (step_size / n) sum_{s < t} U (1 - step_size theta)^{t-1-s} U_i h_i^s,

U_i the row of U as a column: what the residuals of the row would have taken away.
"""

import numpy as np
from scipy.linalg import eigh, lstsq

from ..risk.random_labels import jackknife, label_groups

# A row's memory is its own while it is so many of its standard errors.
RESOLVED = 3
# Epochs that a memory is predicted from, and rows that the noise is read from.
N_EPOCHS = 8
NOISE_ROWS = 2000
# Directions of less relative variance are rounding.
SINGULAR = 1e-8


class HeldOutResiduals:
    """The recursion, epoch by epoch, of some rows; what it keeps is of ``dtype``."""

    def __init__(self, n_rows, dtype=np.float64):
        self._dtype = dtype
        self._before = self._end = np.ones(n_rows)
        self._responses, self._end_responses, self._held_out = [], [], []

    def advance(self, visited, residual, memory, end_memory):
        """Held-out residuals at the end of one more epoch.

        Parameters
        ----------
        visited, residual : ndarray of shape (n_rows, n_outputs)
            Recorded residuals in this epoch, number t = 1, 2, ...
        memory, end_memory : ndarray of shape (n_rows,)
            c^{t-1} and b^t.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        if self._held_out:
            self._responses.append((self._before - memory).astype(self._dtype))
            self._before = memory
        self._end_responses.append((self._end - end_memory).astype(self._dtype))
        self._end = end_memory
        held_out = visited + _convolved(self._responses, self._held_out)
        self._held_out.append(held_out.astype(self._dtype))
        return residual + _convolved(self._end_responses, self._held_out)


def _convolved(responses, held_out):
    """sum_j responses[j] held_out[-1 - j], (n_rows, n_outputs) or zero."""
    pairs = zip(responses, reversed(held_out))
    return sum(response[:, None] * earlier for response, earlier in pairs)


def factors_of_epoch(matrix, step_size):
    """What an epoch multiplies residuals by, all rows at a time, and along what.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_rows)
        The preconditioned kernel matrix; it is overwritten.
    step_size : float

    Returns
    -------
    factors : ndarray of shape (n_rows,)
        1 - step_size theta.
    vectors : ndarray of shape (n_rows, n_rows)
        U.
    """
    # Of the transpose, which is as good: LAPACK works in place on it.
    eigenvalues, vectors = eigh(matrix.T, overwrite_a=True, check_finite=False)
    return 1 - step_size * np.maximum(eigenvalues, 0) / len(matrix), vectors


class ExactMemory:
    """c_i^m with all rows at a time, from the eigendecomposition.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_rows)
        The preconditioned kernel matrix; it is overwritten.
    step_size : float
    rows : ndarray of int
        Those that are left out.
    """

    n_replicates = 1

    def __init__(self, matrix, step_size, rows):
        self._factors, vectors = factors_of_epoch(matrix, step_size)
        self._powers = np.ones(len(matrix))
        self._parts = vectors[rows] ** 2
        self._memory = np.ones(len(rows))
        self.degrees_of_freedom = 0.0

    def advance(self, epoch):
        """Go on by an epoch.

        Returns
        -------
        list of (ndarray of shape (n_left_out,), ndarray of shape (n_left_out,))
            c^{t-1} and b^t of every replicate.
        """
        before = self._memory
        self._powers = self._powers * self._factors
        self._memory = self._parts @ self._powers
        self.degrees_of_freedom = float(np.sum(1 - self._powers))
        return [(before, self._memory)]


class ProbedMemory:
    """c_i^m from random labels z, carried as columns that start from -z.

    c_i^m is the mean of z_i times the residual there, since the others cancel;
    what is left of them is noise. Where the run comes close to fitting a row, that
    would outweigh c_i^m and the recursion diverge: from then on the row has what
    :class:`ToldMemories` predicts from earlier epochs and other rows. The recursion
    is not linear in c_i, so the mean square of the held-out residuals is corrected
    by the jackknife over groups of labels.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_probes)
        Entries +1 or -1.
    columns : slice
        Where the run carries them.
    rows : ndarray of int
        Those that are left out.
    """

    def __init__(self, labels, columns, rows):
        self._labels, self._columns, self._rows = labels, columns, rows
        self._kept = label_groups(labels.shape[1])
        self._before, self._after = ToldMemories(self._kept), ToldMemories(self._kept)
        self.degrees_of_freedom = 0.0

    @property
    def n_replicates(self):
        """One, and as many as there are groups of labels to leave out."""
        return len(self._kept)

    def advance(self, epoch):
        """Go on by an epoch, as :meth:`ExactMemory.advance` does."""
        visited, ended = (
            self._labels * residual[:, self._columns]
            for residual in (epoch.visited, epoch.residual)
        )
        self.degrees_of_freedom = float(np.sum(1 - ended.mean(axis=1)))
        before = self._before.advance(visited[self._rows])
        return list(zip(before, self._after.advance(ended[self._rows])))


class ToldMemories:
    """Memories of rows, as far as labels tell them.

    The mean over m labels, while it is above three of its standard errors. Then its
    best linear prediction: with x_i those means of row i in the last epochs, their
    covariance over the rows is S + N / m, that of the memories, and that of the noise,
    which shows in how single labels spread. The memory in the last of them is
    predicted by mu + S_last (S + N / m)^-1 (x_i - mu), mu the mean over the rows. Rows
    keep their order from epoch to epoch, so earlier epochs say much of the last;
    where labels tell rows apart no more, all have the mean.

    Parameters
    ----------
    kept : list of ndarray of bool
        Labels that every replicate takes.
    """

    def __init__(self, kept):
        self._kept = kept
        self._means, self._deviations = [], []
        self._is_told = True

    def advance(self, signed):
        """Go on by an epoch.

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
        self._means = [*self._means, means][-N_EPOCHS:]
        self._deviations = [*self._deviations, deviations.ravel()][-N_EPOCHS:]
        noise = np.array(self._deviations) @ np.array(self._deviations).T
        noise /= deviations.size - len(deviations)
        error = signed.std(axis=1) / np.sqrt(signed.shape[1])
        self._is_told = self._is_told & (means[0] > RESOLVED * error)
        found = []
        for observed, kept in zip(zip(*self._means), self._kept):
            told = observed[-1].copy()
            others = ~self._is_told
            own_noise = noise / np.count_nonzero(kept)
            told[others] = _predicted(np.array(observed), own_noise)[others]
            found.append(told)
        return found


def _predicted(observed, noise):
    """The last of (n_epochs, n_rows) without noise of that covariance."""
    center = observed.mean(axis=1)
    apart = observed - center[:, None]
    covariance = apart @ apart.T / max(apart.shape[1] - 1, 1)
    wanted = covariance[-1] - noise[-1]
    if wanted[-1] <= 0:
        return np.full(observed.shape[1], center[-1])
    weights, *_ = lstsq(covariance, wanted, cond=SINGULAR)
    return center[-1] + weights @ apart


def random_labels(n_rows, n_probes, rng):
    """Entries +1 or -1, (n_rows, n_probes)."""
    return 2.0 * rng.randint(2, size=(n_rows, n_probes)) - 1


class LeaveOneOut:
    """Held-out residuals along the run, and how far the labels leave them open.

    Parameters
    ----------
    memory : ExactMemory or ProbedMemory
    rows : ndarray of int
        Those that are left out.
    n_outputs : int
        The outputs are the first columns of the run.
    dtype : dtype
        What is kept of every epoch.
    """

    def __init__(self, memory, rows, n_outputs, dtype):
        self.memory, self._rows, self._n_outputs = memory, rows, n_outputs
        self._replicates = [
            HeldOutResiduals(len(rows), dtype) for _ in range(memory.n_replicates)
        ]

    def advance(self, epoch):
        """Go on by an epoch.

        Returns
        -------
        held_out : ndarray of shape (n_left_out, n_outputs)
            Residuals of the rows.
        bias, mc_se : float
            Of the mean of their squares: what the labels add to it on average,
            and its standard error on their account. Zero where it is exact.
        """
        visited = epoch.visited[self._rows, : self._n_outputs]
        residual = epoch.residual[self._rows, : self._n_outputs]
        held_out, *others = (
            replicate.advance(visited, residual, *memories)
            for replicate, memories in zip(self._replicates, self.memory.advance(epoch))
        )
        if not others:
            return held_out, 0.0, 0.0
        squares = [np.mean(residuals**2) for residuals in others]
        bias, mc_se = jackknife(np.mean(held_out**2), squares)
        return held_out, float(bias), float(mc_se)
