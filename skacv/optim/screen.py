"""Updates with a prox, taken on the columns that they can move.

A coefficient that is zero in the last two iterates of every fit stays zero while its
gradient x_j's is under the threshold of the prox. Of the gradient of all columns only
that has to be known, and a bound says it without a product with X,

    |x_j's| <= |(X'Q c)_j| + ||x_j|| ||s - Q c||,        c = Q's,

where Q are orthonormal slopes whose products with X are there already: slopes change
little from one update to the next. So an update is taken on working columns: those
that are not zero, and those that the bound lets move. A few more that it lets move join
them; many more ask for the product of the present slopes, by which Q grows. Iterates
are those of all columns, to rounding.
"""

import numpy as np

from .families import OnColumns
from .updates import Iterate, State

# Products with so few entries, or with columns of so few, cost no more than looking
# after the columns does.
LEAST_ENTRIES, LEAST_COLUMN = 1 << 17, 64
# Directions that are known at a time.
MOST_DIRECTIONS = 16
# What a bound is multiplied by where columns are chosen: they serve a while.
SLACK = 1.1
# Columns that join at a time without another product, as a share of all.
FEW = 1 / 64
# Working columns may be so many more than they would be if chosen anew.
SPARE = 2
# All columns are taken where working ones are more than this share of them, or where
# so many updates have cost more than this share of what they cost with all columns;
# for so many updates, then twice as many.
WIDE, WORTH = 0.5, 0.8
PAUSE = 8
# Rounding errors of a product, in units of the machine precision.
ROUNDING = 64


def may_move(penalty, bound, step_size, scale=1.0):
    """Whether zero coefficients may become nonzero, given bounds of their gradients.

    Parameters
    ----------
    penalty : Penalty
    bound : ndarray of shape (n_columns, ...)
    step_size : float
    scale : float or ndarray
        What multiplies the penalty.
    """
    size, step = step_size * bound, step_size * scale
    return (penalty.prox(size, step) != 0) | (penalty.prox(-size, step) != 0)


class KnownDirections:
    """Bounds of gradients, from products of X with orthonormal slopes.

    Parameters
    ----------
    problem : Problem
    n_vectors : int
        Slopes side by side, each with directions of its own.
    """

    def __init__(self, problem, n_vectors):
        design = problem.design
        n_rows, n_columns = design.shape
        # No more than a quarter of X in memory, where there are many fits.
        share = n_rows * n_columns // (4 * (n_rows + n_columns) * n_vectors)
        self._n_most = int(np.clip(share, 4, MOST_DIRECTIONS))
        self._design, self._norms = design, problem.column_norms
        shape = n_vectors, self._n_most
        self._directions = np.empty((*shape, n_rows), design.dtype)
        self._products = np.empty((*shape, n_columns), design.dtype)
        # How far off the products may be by rounding, in units of a column's norm.
        self._errors = np.empty(shape, design.dtype)
        self._n_known = 0
        self._rounding = ROUNDING * np.finfo(design.dtype).eps

    def bounds(self, slopes):
        """Bounds of the sizes of gradients, (n_vectors, n_columns).

        Parameters
        ----------
        slopes : ndarray of shape (n_vectors, n_rows)
        """
        share, rest = self._split(slopes)
        missing = np.linalg.norm(rest, axis=1) + self._error(slopes, share)
        found = np.abs(_dot(share, self._products[:, : self._n_known]))
        found += missing[:, None] * self._norms
        return found

    def learn(self, slopes, gradients):
        """Add what is new in some slopes, (n_vectors, n_rows), to the directions.

        Parameters
        ----------
        slopes : ndarray of shape (n_vectors, n_rows)
        gradients : ndarray of shape (n_vectors, n_columns)
            The products of X with them.
        """
        if self._n_known == self._n_most:
            self._n_known = 0
        first, rest = self._split(slopes)
        second, rest = self._split(rest)  # twice is enough (Kahan, Parlett)
        share, size = first + second, np.linalg.norm(rest, axis=1)
        size[size == 0] = np.inf
        new, known = self._n_known, slice(self._n_known)
        rest /= size[:, None]
        product = gradients - _dot(share, self._products[:, known])
        product /= size[:, None]
        self._directions[:, new], self._products[:, new] = rest, product
        self._errors[:, new] = self._error(slopes, share) / size
        self._n_known += 1

    def _split(self, slopes):
        """Shares of the known directions in slopes, and what is left of these."""
        known = self._directions[:, : self._n_known]
        share = np.matmul(known, slopes[:, :, None])[:, :, 0]
        return share, slopes - _dot(share, known)

    def _error(self, slopes, share):
        """What rounding may have changed in a combination of products."""
        error = self._rounding * np.linalg.norm(slopes, axis=1)
        return error + (np.abs(share) * self._errors[:, : self._n_known]).sum(axis=1)


def _dot(share, vectors):
    """Combinations of vectors, (k, m) and (k, m, n) -> (k, n)."""
    return np.matmul(share[:, None, :], vectors)[:, 0]


class WorkingColumns:
    """Some columns of a design, which more can join: a design as far as updates ask.

    Parameters
    ----------
    design : MatrixDesign
    index : ndarray of int, increasing
    """

    def __init__(self, design, index):
        self._design, self._parts = design, []
        self.dtype, self.index = design.dtype, np.empty(0, int)
        self.join(index)

    def join(self, index):
        """Take in some more columns."""
        self.index = np.concatenate([self.index, index])
        self._parts.append(self._design.selection(index, self.dtype))
        # Few parts, each of them copied few times.
        while len(self._parts) > 1 and _is_narrower(*self._parts[-2:]):
            last = self._parts.pop()
            self._parts[-1] = self._parts[-1].beside(last)

    def dot(self, coef):
        """Linear predictors, (n_working, k) -> (n_rows, k)."""
        first, found = 0, 0
        for part in self._parts:
            last = first + part.shape[1]
            found, first = found + part.dot(coef[first:last]), last
        return found

    def t_dot(self, slopes):
        """The gradient, (n_rows, k) -> (n_working, k)."""
        return np.concatenate([part.t_dot(slopes) for part in self._parts])


def _is_narrower(part, following):
    return part.shape[1] <= following.shape[1]


class Screen:
    """Takes updates of all fits, on as few columns as they can move.

    Parameters
    ----------
    fits : Fits
    """

    def __init__(self, fits):
        self.fits = fits
        design = fits.problem.design
        self._n_columns = design.shape[1]
        self._n_vectors = int(np.prod(fits.target.shape[1:-1])) * fits.n_fits
        self._is_worth = design.is_matrix and _is_worth(design)
        self._known = self._working = None
        self._n_resting, self._pause = 0, PAUSE
        self._n_taken = self._cost = 0

    def advance(self, update, penalty, state):
        """The state after an update, as ``update.advance`` gives it."""
        is_screened = update.is_elementwise and not update.n_batches
        if not (self._is_worth and is_screened and not penalty.is_linear):
            return update.advance(self.fits, penalty, state)
        if self._n_resting:
            self._n_resting -= 1
            return update.advance(self.fits, penalty, state)
        point = update.point(state.current.predictor, state.earlier.predictor)
        slopes = self.fits.slopes(point)
        gradient = self._choose(update, penalty, state, slopes)
        if self._working is None:
            return update.advance(self.fits, penalty, state)
        index, scale = self._working.index, self.fits.penalty_scale
        if gradient is None:
            gradient = self._fits.gradient_of(slopes)
            self._cost += len(index)
        else:
            gradient = gradient[index]
        current, earlier = (each.coef[index] for each in state[:2])
        part = update.apply(
            current, earlier, gradient, self._penalty_on(penalty), scale
        )
        coef = np.zeros_like(state.current.coef)
        coef[index] = part
        self._cost += len(index)
        return State(Iterate(coef, self._fits.predictor(part)), state.current)

    def _choose(self, update, penalty, state, slopes):
        """Let the columns that an update can move be the working ones, or none.

        Returns the gradient of all columns where it was needed.
        """
        if self._known is None:
            self._known = KnownDirections(self.fits.problem, self._n_vectors)
        if self._working is not None and self._n_taken == PAUSE:
            if self._cost > WORTH * 2 * self._n_columns * PAUSE:
                return self._rest()
            self._n_taken = self._cost = 0
            self._pause = PAUSE
        self._n_taken += 1
        flat = np.ascontiguousarray(slopes.reshape(len(slopes), -1).T)

        def moved(slack):
            bounds = slack * self._known.bounds(flat)
            bounds = bounds.T.reshape(-1, *slopes.shape[1:])
            moves = may_move(penalty, bounds, update.step_size, self.fits.penalty_scale)
            return penalty.whole(moves.any(axis=(1, 2)))

        if self._working is not None:
            moves = moved(1.0)
            moves[self._working.index] = False
            joins = np.flatnonzero(moves)
            if len(joins) <= FEW * self._n_columns:
                return self._join(joins)
        gradient = self.fits.gradient_of(slopes)
        self._known.learn(flat, gradient.reshape(len(gradient), -1).T)
        self._cost += self._n_columns
        wanted = (state.current.coef != 0) | (state.earlier.coef != 0)
        wanted = penalty.whole(wanted.any(axis=(1, 2))) | moved(SLACK)
        self._take(wanted)
        return gradient

    def _take(self, wanted):
        n_wanted = np.count_nonzero(wanted)
        if n_wanted > WIDE * self._n_columns:
            return self._rest()
        if self._working is not None:
            joined = wanted.copy()
            joined[self._working.index] = True
            if np.count_nonzero(joined) <= SPARE * n_wanted:
                wanted[self._working.index] = False
                return self._join(np.flatnonzero(wanted))
        self._set(WorkingColumns(self.fits.problem.design, np.flatnonzero(wanted)))
        self._cost += 2 * n_wanted

    def _join(self, index):
        if len(index):
            self._working.join(index)
            self._set(self._working)
            self._cost += 2 * len(index)

    def _set(self, working):
        self._working = working
        self._fits = self.fits.on(working)
        self._penalty_on = OnColumns(working.index)

    def _rest(self):
        self._working = None
        self._n_resting, self._pause = self._pause, 2 * self._pause
        self._n_taken = self._cost = 0


def _is_worth(design):
    """Whether products with a design cost more than looking after its columns."""
    n_entries = design.n_stored
    return n_entries >= max(LEAST_ENTRIES, LEAST_COLUMN * design.shape[1])
