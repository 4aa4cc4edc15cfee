"""Updates with a prox, taken on the columns that they can move.

A coefficient that is zero in the last two iterates of every fit stays zero while its
gradient x_j's is under the threshold of the prox. Only this has to be known about the
gradient of other columns, and a bound gives it without a product with X,

    |x_j's| <= |(X'Q c)_j| + ||x_j|| ||s - Q c||,        c = Q's,

where Q are orthonormal slopes whose products with X are there already: slopes change
little from one update to the next. So an update is taken on working columns: those
that are not zero, and those that the bound lets move. A few more that it lets move join
them; many more ask for the product of the present slopes, by which Q grows. Iterates
are those of all columns, to rounding.
"""

import numpy as np

from .families import OnColumns
from .fits import Iterate
from .updates import State

# Products with so few entries, or with columns of so few, take no longer than looking
# after the columns does.
LEAST_ENTRIES, LEAST_COLUMN = 1 << 17, 64
# Directions that are known at a time.
MOST_DIRECTIONS = 16
# What a bound is multiplied by where columns are chosen: they serve a while.
SLACK = 1.1
# Columns that join at a time without another product, as a share of all.
FEW = 1 / 64
# So many times more working columns than are wanted are given up for these.
SPARE = 2
# All columns are taken where more than a share WIDE of them would be working ones, or
# where PAUSE updates have gone through more than a share WORTH of all columns: for
# PAUSE updates, and twice as many the next time.
WIDE, WORTH = 0.5, 0.8
PAUSE = 8
# Rounding errors of a product, in units of the machine precision.
ROUNDING = 64


def may_move(penalty, bound, step_size, scale=1.0):
    """Whether zero coefficients may become nonzero, given bounds of their gradients.

    Parameters
    ----------
    bound : ndarray of shape (n_columns, ...)
    scale : float
        What multiplies the penalty, at least.
    """
    size, step = step_size * bound, step_size * scale
    return (penalty.prox(size, step) != 0) | (penalty.prox(-size, step) != 0)


class WorkingColumns:
    """Some columns of a design, which more can join: a design as far as updates ask.

    Columns are copied when a product needs them, in few parts side by side: each is
    copied few times, however often some join.

    Attributes
    ----------
    index : ndarray of int, shape (n_working,)
        The working columns, in the order in which they have joined.
    """

    def __init__(self, design, index=()):
        self._design, self.dtype = design, design.dtype
        self.index = np.asarray(index, int)
        # Designs of columns, and those that have joined since.
        self._parts, self._joined = [], [self.index]

    def __len__(self):
        return len(self.index)

    def join(self, index):
        """Take in some more columns, increasing ones."""
        self.index = np.concatenate([self.index, index])
        self._joined.append(index)

    def keep(self, places):
        """Keep the columns at some places of ``index``, increasing ones."""
        index, parts = self.index[places], []
        if self._parts and len(places):
            parts = [self.as_design().selection(places, self.dtype)]
        self.index, self._parts = index, parts
        self._joined = [] if parts else [index]

    def dot(self, coef):
        """Linear predictors, (n_working, k) -> (n_rows, k)."""
        first, found = 0, 0
        for part in self._selected():
            last = first + part.shape[1]
            found, first = found + part.dot(coef[first:last]), last
        return found

    def t_dot(self, slopes):
        """The gradient, (n_rows, k) -> (n_working, k)."""
        return np.concatenate([part.t_dot(slopes) for part in self._selected()])

    def as_design(self):
        """One design of them all."""
        parts = self._selected()
        while len(parts) > 1:
            _join_last(parts)
        return parts[0]

    def _selected(self):
        """Designs of all working columns, side by side."""
        for index in filter(len, self._joined):
            # All columns of a design are the design itself.
            self._parts.append(self._design.columns(index, self.dtype))
            while len(self._parts) > 1 and _is_narrower(*self._parts[-2:]):
                _join_last(self._parts)
        self._joined = []
        return self._parts or [self._design.selection(self.index, self.dtype)]


def _is_narrower(part, following):
    return part.shape[1] <= following.shape[1]


def _join_last(parts):
    last = parts.pop()
    parts[-1] = parts[-1].beside(last)


class KnownDirections:
    """Bounds of gradients, from products of X with orthonormal slopes.

    Parameters
    ----------
    n_vectors : int
        Slopes side by side, output after output those of all fits, each with
        directions of its own.
    """

    def __init__(self, fits, n_vectors):
        design, norms = fits.problem.design, fits.column_norms()
        n_rows, n_columns = design.shape
        # No more than a quarter of X in memory, where there are many fits.
        share = n_rows * n_columns // (4 * (n_rows + n_columns) * n_vectors)
        self._n_most = int(np.clip(share, 4, MOST_DIRECTIONS))
        self._design = design
        self._norms = np.tile(norms, (n_vectors // len(norms), 1))
        shape = n_vectors, self._n_most
        self._directions = np.empty((*shape, n_rows), design.dtype)
        self._products = np.empty((*shape, n_columns), design.dtype)
        # How far off the products may be by rounding, in units of a column's norm.
        self._errors = np.empty(shape, design.dtype)
        self._n_known = 0
        # Columns that are selected are rounded to the precision of X.
        eps = np.finfo(design.storage_dtype).eps
        self._rounding, self._most_error = ROUNDING * eps, np.sqrt(eps)

    def bounds(self, slopes):
        """Bounds of the sizes of all gradients of a column together, (n_columns,).

        Shapes: slopes (n_vectors, n_rows).
        """
        share, rest = self._split(slopes)
        missing = np.linalg.norm(rest, axis=1) + self._error(slopes, share)
        found = _dot(share, self._products[:, : self._n_known])
        np.abs(found, out=found)
        found += missing[:, None] * self._norms
        return found.max(axis=0)

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
        error = self._error(slopes, share) / size
        if error.max() > self._most_error:
            self._n_known = 0
            return self.learn(slopes, gradients)
        new, known = self._n_known, slice(self._n_known)
        product = gradients - _dot(share, self._products[:, known])
        self._directions[:, new] = rest / size[:, None]
        self._products[:, new] = product / size[:, None]
        self._errors[:, new] = error
        self._n_known += 1

    def _split(self, slopes):
        """Shares of the known directions in slopes, and what is left of these."""
        known = self._directions[:, : self._n_known]
        share = np.matmul(known, slopes[:, :, None])[:, :, 0]
        return share, slopes - _dot(share, known)

    def _error(self, slopes, share):
        """Bound of the rounding error in a combination of products."""
        error = self._rounding * np.linalg.norm(slopes, axis=1)
        return error + (np.abs(share) * self._errors[:, : self._n_known]).sum(axis=1)


def _dot(share, vectors):
    """Combinations of vectors, (k, m) and (k, m, n) -> (k, n)."""
    return np.matmul(share[:, None, :], vectors)[:, 0]


class Screen:
    """Takes updates of all fits, on as few columns as they can move."""

    def __init__(self, fits):
        self.fits, design = fits, fits.problem.design
        self._is_worth = design.is_matrix and _is_worth(design)
        self._n_columns = design.shape[1]
        self._known = self._working = None
        # Updates for which all columns are still taken, and will be the next time.
        self._n_left, self._pause = 0, PAUSE
        # Columns that products have gone through since so many updates.
        self._n_products = self._n_taken = 0

    def advance(self, update, penalty, state):
        """The state after an update, as ``update.advance`` gives it."""
        if self._n_left or not (self._is_worth and _is_screened(update, penalty)):
            self._n_left = max(self._n_left - 1, 0)
            return update.advance(self.fits, penalty, state)
        point = update.point_between(state.current, state.earlier)
        known = point.predictor
        known = self._predictor(point.coef) if known is None else known
        slopes = self.fits.slopes(known)
        gradient = self._choose(update, penalty, state, slopes)
        if self._working is None:
            return update.advance(self.fits, penalty, state)
        index, scale = self._working.index, self.fits.penalty_scale
        if gradient is None:
            gradient = self._fits.gradient_of(slopes)
        else:  # to the last digit what it would be without a screen
            gradient = gradient[index]
        current, earlier = state.current.coef[index], state.earlier.coef[index]
        penalty = self._penalty_on(penalty)
        part = update.apply(current, earlier, gradient, penalty, scale)
        coef = np.zeros_like(state.current.coef)
        coef[index] = part
        self._n_products += 2 * len(index)
        predictor = self._predictor(coef) if self.fits.keeps_predictors else None
        return State(Iterate(coef, predictor), state.current)

    def _predictor(self, coef):
        """Linear predictors of coefficients, zero outside the working columns."""
        if self._working is None:
            return self.fits.predictor(coef)
        return self._fits.predictor(coef[self._working.index])

    def _choose(self, update, penalty, state, slopes):
        """Let the columns that an update can move be the working ones, or none.

        Returns
        -------
        ndarray of shape (n_columns, n_outputs, n_fits) or None
            The gradient of all columns, if it was needed.
        """
        if self._working is not None and self._n_taken == PAUSE:
            if self._n_products > WORTH * 2 * self._n_columns * PAUSE:
                return self._pause_now()
            self._n_products = self._n_taken = 0
            self._pause = PAUSE
        self._n_taken += 1
        slopes_of = np.ascontiguousarray(slopes.reshape(len(slopes), -1).T)
        if self._known is None:
            self._known = KnownDirections(self.fits, len(slopes_of))
        moves = self._moved(update, penalty, slopes_of)
        if self._working is not None:
            moves[self._working.index] = False
            if np.count_nonzero(moves) <= FEW * self._n_columns:
                return self._join(moves)
        gradient = self.fits.gradient_of(slopes)
        self._known.learn(slopes_of, gradient.reshape(len(gradient), -1).T)
        self._n_products += self._n_columns
        wanted = (state.current.coef != 0) | (state.earlier.coef != 0)
        wanted = penalty.expand_to_groups(wanted.any(axis=(1, 2)))
        self._take(wanted | self._moved(update, penalty, slopes_of, SLACK))
        return gradient

    def _moved(self, update, penalty, slopes, slack=1.0):
        """The columns that the bounds let move, as a mask."""
        bounds = slack * self._known.bounds(slopes)[:, None]
        # What is zero under a penalty is zero under a stronger one.
        scale = np.min(self.fits.penalty_scale)
        moves = may_move(penalty, bounds, update.step_size, scale)
        return penalty.expand_to_groups(moves[:, 0])

    def _take(self, wanted):
        """Let the columns in a mask be the working ones, if they are few."""
        n_wanted = np.count_nonzero(wanted)
        if n_wanted > WIDE * self._n_columns:
            return self._pause_now()
        if self._working is not None and len(self._working.index) <= SPARE * n_wanted:
            wanted[self._working.index] = False
            return self._join(wanted)
        self._work_on(WorkingColumns(self.fits.problem.design, np.flatnonzero(wanted)))
        self._n_products += 2 * n_wanted

    def _join(self, mask):
        """Let the columns in a mask join, none of which is a working one."""
        index = np.flatnonzero(mask)
        if len(index):
            self._working.join(index)
            self._work_on(self._working)
            self._n_products += 2 * len(index)

    def _work_on(self, working):
        self._working, self._fits = working, self.fits.on(working, working.index)
        self._penalty_on = OnColumns(working.index)

    def _pause_now(self):
        """Take all columns for a while, and for longer the next time."""
        self._working = None
        self._n_left, self._pause = self._pause, 2 * self._pause
        self._n_products = self._n_taken = 0


def _is_screened(update, penalty):
    """Whether all rows are taken at a time, and coefficients are held at zero."""
    return update.is_elementwise and not (update.n_batches or penalty.is_linear)


def _is_worth(design):
    """Whether products with a design take longer than screening its columns."""
    n_entries = design.n_stored
    return n_entries >= max(LEAST_ENTRIES, LEAST_COLUMN * design.shape[1])
