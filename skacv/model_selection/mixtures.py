"""Weights of a combination of predictions, by least loss on rows held out.

Weights are not negative and sum to one. Breiman (1996), "Stacked regressions", leaves
the sum free; but members have intercepts, and how far each is shrunk has been chosen,
so that a free sum would only fit noise. With the sum the error of a combination is the
combination of the errors, and one of constants is the constant.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from ..optim.losses import Loss
from .criteria import index_of_least

# As in scikit-learn's log loss, no probability is less.
SMALLEST_PROBABILITY = np.finfo(np.float64).eps
# Added to the eigenvalues of a matrix of members, as a share of its trace: far above
# rounding, and far below what a weight can depend on.
RIDGE = 1e-10


def least_squares_weights(errors, rows):
    """Weights of the combination of least squared error, exactly.

    On the simplex the error of a combination is the combination E w of the errors. The
    least of |E u|^2 + (1 - sum u)^2 over all u that are not negative is a multiple of
    the w that is sought, whatever the sum of u is, and nonnegative least squares finds
    it.

    Shapes: returned (n_members,).

    Parameters
    ----------
    errors : ndarray of shape (n_errors, n_members)
    rows : ndarray of shape (n_errors,)
        Weights of the errors.
    """
    n_members = errors.shape[1]
    gram = errors.T @ (errors * rows[:, None])
    size = np.trace(gram)
    if size == 0:
        return np.full(n_members, 1 / n_members)
    # Members of equal errors make the matrix singular, over which nnls can turn in a
    # circle; with the ridge they have equal weights.
    values, vectors = np.linalg.eigh(gram / size)
    root = np.sqrt(np.maximum(values, 0) + RIDGE)[:, None] * vectors.T
    u, _ = nnls(np.vstack([root, np.ones(n_members)]), np.eye(n_members + 1)[-1])
    return u / u.sum()


def likeliest_weights(shares, rows, max_iter=100, tol=1e-9):
    """Weights of the mixture of least log loss, by sequential quadratic programming.

    Each step is a quadratic program over weights that are not negative, in which one
    times their sum stands for the constraint (Kim, Carbonetto, Stephens and Anitescu
    2020, "A fast algorithm for maximum likelihood estimation of mixture proportions
    using sequential quadratic programming"). Unlike the EM algorithm it gives weights
    of zero, in a few steps. ``shares`` are the probabilities of each row's class,
    positive, and ``rows`` the weights of the rows.

    Shapes: shares (n_rows, n_members), rows (n_rows,), returned (n_members,).
    """
    n_members = shares.shape[1]
    rows = rows / rows.sum()
    weights = np.full(n_members, 1 / n_members)
    for _ in range(max_iter):
        ratio = shares / (shares @ weights)[:, None]
        gain = rows @ ratio
        # How far the log loss can be from the least.
        if gain.max() <= 1 + tol:
            break
        # The u >= 0 of least u'Hu / 2 - (2 gain - 1)'u. The ridge is for members of
        # equal predictions, which make H singular.
        hessian = ratio.T @ (ratio * rows[:, None])
        hessian += RIDGE * np.trace(hessian) / n_members * np.eye(n_members)
        lower = np.linalg.cholesky(hessian)
        u, _ = nnls(lower.T, solve_triangular(lower, 2 * gain - 1, lower=True))
        step = u - weights
        size = _size_of_step(shares, rows, weights, step, (1 - gain) @ step)
        weights = weights + size * step
        weights /= weights.sum()
    return weights


def _size_of_step(shares, rows, weights, step, slope, smallest=2.0**-30):
    """The largest of 1, 1/2, 1/4, ... with which the log loss falls enough."""

    def loss(size):
        trial = weights + size * step
        return trial.sum() - rows @ np.log(shares @ trial)

    size, first = 1.0, loss(0.0)
    while loss(size) > first + 1e-4 * size * slope and size > smallest:
        size /= 2
    return size


def greedy_weights(losses_at, n_members, deadline=None, max_iter=20):
    """Weights by greedy selection with replacement: how often members are chosen.

    Each time the member that lowers the loss most, or raises it least, joins those
    chosen so far, and the best of these selections is kept (Caruana, Niculescu-Mizil,
    Crew and Ksikes 2004, "Ensemble selection from libraries of models").

    ``losses_at(weights)`` are the losses of combinations; undefined ones (NaN) are the
    worst. After a deadline no further member is chosen.

    Shapes: weights (n_combinations, n_members), losses_at(weights) (n_combinations,),
    returned (n_members,).
    """
    chosen, least, best = np.zeros(n_members), np.inf, np.eye(n_members)[0]
    for n_chosen in range(1, max_iter + 1):
        tried = (chosen + np.eye(n_members)) / n_chosen
        losses = losses_at(tried)
        index = index_of_least(losses)
        chosen[index] += 1
        if losses[index] < least:
            least, best = losses[index], tried[index]
        if deadline is not None and deadline.is_over():
            break
    return best


@dataclass(frozen=True)
class SquaredErrors:
    """Weights of predictions, by the squared error."""

    loss: Loss

    def part(self, held_out, target):
        """The part of a member to combine: its predictions of the rows, for any X.

        Shapes: target, returned (n_rows, n_targets).
        """
        predictions = np.asarray(held_out.predict(None), dtype=np.float64)
        return predictions.reshape(target.shape)

    def weights(self, parts, target, rows):
        """The weights of least loss, with weights of the rows.

        Shapes: parts (n_rows, n_targets, n_members), target (n_rows, n_targets), rows
        (n_rows,), returned (n_members,).
        """
        errors = parts - target[:, :, None]
        rows = np.repeat(rows, errors.shape[1])
        return least_squares_weights(errors.reshape(len(rows), -1), rows)

    def losses(self, combined, target):
        """The loss of each row by a combination of the parts, (n_rows,)."""
        # The loss has the linear predictor, of which predictions are the mean.
        predictor = self.loss.predictor(combined)
        return self.loss.reported(target, predictor).mean(axis=1)


class MeanLosses(SquaredErrors):
    """Weights of predictions by any other loss that members share."""

    def weights(self, parts, target, rows):
        """The weights of a greedy selection."""
        n_members = parts.shape[2]
        parts, target = parts.reshape(-1, n_members), target.reshape(-1, 1)
        rows = np.repeat(rows, len(target) // len(rows))

        def losses_at(weights):
            predictor = self.loss.predictor(parts @ weights.T)
            return rows @ self.loss.reported(target, predictor)

        return greedy_weights(losses_at, n_members)


@dataclass(frozen=True)
class LogLosses:
    """Weights of probabilities, by the log loss of their mixture."""

    # The loss of a member, which reads decisions: probabilities have the log loss.
    loss: Loss

    def part(self, held_out, target):
        """The part of a member to mix: probabilities of observed classes, or labels.

        Shapes: target, returned (n_rows, 1) for classes, (n_rows, n_labels) for labels.
        """
        probabilities = np.asarray(held_out.predict_proba(None), dtype=np.float64)
        if target.shape[1] > 1:
            observed = np.where(target > 0, probabilities, 1 - probabilities)
        else:
            label = np.searchsorted(held_out.classes_, target)
            observed = np.take_along_axis(probabilities, label, axis=1)
        return np.maximum(observed, SMALLEST_PROBABILITY)

    def weights(self, parts, target, rows):
        """The weights of the likeliest mixture."""
        n_rows, n_labels, n_members = parts.shape
        shares = parts.reshape(n_rows * n_labels, n_members)
        return likeliest_weights(shares, np.repeat(rows, n_labels))

    def losses(self, combined, target):
        """The loss of each row by a mixture of the parts, (n_rows,)."""
        return -np.log(combined).mean(axis=1)
