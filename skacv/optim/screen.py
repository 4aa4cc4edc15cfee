"""Updates with a prox, on the few columns that they can change.

A coefficient that is zero in the last two iterates of every fit stays zero as long as
its gradient x_j's is below the threshold of the prox. For such columns a bound of the
gradient is enough, which takes no product with X:

    |x_j's| <= |(X'Q c)_j| + ||x_j|| ||s - Q c||,        c = Q's.

Q are orthonormal slopes of earlier updates, whose products with X are kept; slopes
change little from one update to the next. An update is on the working columns: those
with nonzero coefficients, and those that the bounds allow to change. If the bounds
allow a few more, these join; if many, X is multiplied with the present slopes, by which
Q grows. Iterates are those of all columns, to rounding.
"""

import numpy as np

from .design import ROUNDINGS
from .families import OnColumns
from .fits import Iterate
from .updates import State


def may_move(penalty, bound, step_size, scale=1.0):
    """Whether zeros may become nonzero, by bounds (n_columns, ...) of gradients.

    ``scale`` is the least factor of the penalty in any fit.
    """
    size, step = step_size * bound, step_size * scale
    return (penalty.prox(size, step) != 0) | (penalty.prox(-size, step) != 0)


class WorkingColumns:
    """Some columns of a design, which other columns can join.

    ``index`` lists them in the order in which they joined. A column is copied when a
    product needs it, into one of few designs, which double in size: each is copied few
    times.
    """

    is_matrix = is_on_device = is_dual = False

    def __init__(self, design, index=()):
        self._design, self.dtype = design, design.dtype
        self.index = np.asarray(index, int)
        # Designs of columns, and indices that have joined since.
        self._parts, self._joined = [], [self.index]

    def __len__(self):
        return len(self.index)

    def join(self, index):
        """Add columns, in increasing order."""
        self.index = np.concatenate([self.index, index])
        self._joined.append(index)

    def keep(self, positions):
        """Keep the columns at increasing positions of ``index``."""
        index, parts = self.index[positions], []
        if self._parts and len(positions):
            parts = [self.as_design().selection(positions, self.dtype)]
        self.index, self._parts = index, parts
        self._joined = [] if parts else [index]

    def dot(self, coef):
        """Linear predictors (n_rows, k) of coefficients (n_working, k)."""
        first, product = 0, 0
        for part in self._selected():
            last = first + part.shape[1]
            product, first = product + part.dot(coef[first:last]), last
        return product

    def t_dot(self, slopes):
        """The gradient (n_working, k) of slopes (n_rows, k)."""
        return np.concatenate([part.t_dot(slopes) for part in self._selected()])

    def as_design(self):
        """One design of all working columns."""
        parts = self._selected()
        while len(parts) > 1:
            last = parts.pop()
            parts[-1] = parts[-1].joined_with(last)
        return parts[0]

    def _selected(self):
        """Designs that together have all working columns, in order."""
        parts = self._parts
        for index in filter(len, self._joined):
            # All columns of a design are the design itself.
            parts.append(self._design.columns(index, self.dtype))
            while len(parts) > 1 and parts[-2].shape[1] <= parts[-1].shape[1]:
                last = parts.pop()
                parts[-1] = parts[-1].joined_with(last)
        self._joined = []
        return parts or [self._design.selection(self.index, self.dtype)]


class GradientBounds:
    """Bounds of gradients, from products of X with orthonormal slopes Q.

    There are ``n_vectors`` slopes, for each output and fit, and each has a Q.
    """

    def __init__(self, fits, n_vectors, n_most=16):
        design, norms = fits.problem.design, fits.column_norms()
        n_rows, n_columns = design.shape
        # No more than a quarter of X in memory, where there are many fits.
        share = n_rows * n_columns // (4 * (n_rows + n_columns) * n_vectors)
        self.n_most = int(np.clip(share, 4, n_most))
        self._norms = np.tile(norms, (n_vectors // len(norms), 1))
        shape = n_vectors, self.n_most
        self._directions = np.empty((*shape, n_rows), design.dtype)
        self._products = np.empty((*shape, n_columns), design.dtype)
        # Bounds of the rounding of the products, in units of a column's norm.
        self._errors = np.empty(shape, design.dtype)
        self._n = 0
        # Columns that are selected are rounded to the precision of X.
        eps = np.finfo(design.storage_dtype).eps
        self._rounding, self._most_error = ROUNDINGS * eps, np.sqrt(eps)

    def bounds(self, slopes):
        """Bounds (n_columns,) of all gradients, at slopes (n_vectors, n_rows)."""
        c, rest = self._project(slopes)  # s = Q c + rest
        missing = np.linalg.norm(rest, axis=1) + self._error(slopes, c)
        bounds = _combine(c, self._products[:, : self._n])  # X'Q c
        np.abs(bounds, out=bounds)
        bounds += missing[:, None] * self._norms
        return bounds.max(axis=0)

    def learn(self, slopes, gradients):
        """Extend Q by some slopes, of which the gradients are the products with X.

        Shapes: slopes (n_vectors, n_rows); gradients (n_vectors, n_columns)."""
        if self._n == self.n_most:
            self._n = 0
        first, rest = self._project(slopes)
        second, rest = self._project(rest)  # twice is enough (Kahan, Parlett)
        c, size = first + second, np.linalg.norm(rest, axis=1)
        size[size == 0] = np.inf
        error = self._error(slopes, c) / size
        if error.max() > self._most_error:
            self._n = 0
            return self.learn(slopes, gradients)
        product = gradients - _combine(c, self._products[:, : self._n])
        self._directions[:, self._n] = rest / size[:, None]
        self._products[:, self._n] = product / size[:, None]
        self._errors[:, self._n] = error
        self._n += 1

    def _project(self, slopes):
        """Coefficients c = Q's of slopes s, and the rest s - Q c."""
        Q = self._directions[:, : self._n]
        c = np.matmul(Q, slopes[:, :, None])[:, :, 0]
        return c, slopes - _combine(c, Q)

    def _error(self, slopes, c):
        """An upper bound of the rounding error in a combination of products."""
        error = self._rounding * np.linalg.norm(slopes, axis=1)
        return error + (np.abs(c) * self._errors[:, : self._n]).sum(axis=1)


def _combine(c, vectors):
    """Combinations (k, n) of vectors (k, m, n) with coefficients (k, m)."""
    return np.matmul(c[:, None, :], vectors)[:, 0]


class Screen:
    """Applies updates to all fits on the few columns that they can change.

    If a copy of the working columns would be larger than ``most_copied`` of X, or
    products went through more than ``most_used`` of all columns, updates are on all
    columns for ``pause`` updates, and for twice as many the next time. Bounds are
    multiplied by ``slack`` when columns are chosen, so that a choice holds for some
    updates.
    """

    def __init__(self, fits, pause=8, most_copied=0.5, most_used=0.8, slack=1.1):
        self.fits, self.pause, self.slack = fits, pause, slack
        self.most_copied, self.most_used = most_copied, most_used
        self._bounds = self.working = None
        # Updates on all columns that are still to come, and their number the next time.
        self._n_left, self._next_pause = 0, pause
        # Columns that products went through in the last ``_n_updates`` updates.
        self._n_products = self._n_updates = 0

    def advance(self, update, penalty, state):
        """The state after an update: that of ``update.advance``, to rounding."""
        fits, current, earlier = self.fits, state.current, state.earlier
        design = fits.problem.design
        n_columns = design.shape[1]
        if self._n_left or not update.is_elementwise:
            self._n_left = max(self._n_left - 1, 0)
            return update.advance(fits, penalty, state)
        if self.working is not None and self._n_updates == self.pause:
            if self._n_products > self.most_used * 2 * n_columns * self.pause:
                self._take_all()
                return update.advance(fits, penalty, state)
            self._n_products = self._n_updates = 0
            self._next_pause = self.pause
        self._n_updates += 1

        point = update.point_between(current, earlier)
        predictor = point.predictor
        if predictor is None:
            predictor = self._predictor(point.coef)
        slopes, gradient = fits.slopes(predictor), None
        vectors = np.ascontiguousarray(slopes.reshape(len(slopes), -1).T)
        if self._bounds is None:
            self._bounds = GradientBounds(fits, len(vectors))

        # Columns that the bounds let change: a few of them join; many are worth a
        # product with X.
        mask = self._moves(update, penalty, vectors)
        if self.working is not None:
            mask[self.working.index] = False
        if self.working is not None and np.count_nonzero(mask) <= n_columns / 64:
            self._join(mask)
        else:
            gradient = fits.gradient_of(slopes)
            self._bounds.learn(vectors, gradient.reshape(n_columns, -1).T)
            self._n_products += n_columns
            nonzero = ((current.coef != 0) | (earlier.coef != 0)).any(axis=(1, 2))
            mask = self._moves(update, penalty, vectors, self.slack)
            mask |= penalty.expand_to_groups(nonzero)
            n_working = np.count_nonzero(mask)
            if n_working > self.most_copied * n_columns:
                self._take_all()
            elif self.working is not None and len(self.working) <= 2 * n_working:
                mask[self.working.index] = False
                self._join(mask)
            else:  # the first choice, or most of the working columns are of no use
                self.working = WorkingColumns(design)
                self._join(mask)

        if self.working is None:
            index, penalty_on = slice(None), penalty
        else:
            index, penalty_on = self.working.index, self._on_columns(penalty)
        if gradient is None:
            gradient = self._working_fits.gradient_of(slopes)
        else:  # the same, to the last digit, as without a screen
            gradient = gradient[index]
        coef = np.zeros_like(current.coef)
        coef[index] = update.apply(
            current.coef[index],
            earlier.coef[index],
            gradient,
            penalty_on,
            fits.penalty_scale,
        )
        self._n_products += 2 * (n_columns if self.working is None else len(index))
        predictor = self._predictor(coef) if fits.keeps_predictors else None
        return State(Iterate(coef, predictor), current)

    def _predictor(self, coef):
        """Linear predictors of coefficients that are zero on all other columns."""
        if self.working is None:
            return self.fits.predictor(coef)
        return self._working_fits.predictor(coef[self.working.index])

    def _moves(self, update, penalty, vectors, slack=1.0):
        """Mask of the columns that the update may change, by the bounds."""
        bounds = slack * self._bounds.bounds(vectors)[:, None]
        # What is zero under a penalty is zero under a stronger one.
        scale = np.min(self.fits.penalty_scale)
        moves = may_move(penalty, bounds, update.step_size, scale)
        return penalty.expand_to_groups(moves[:, 0])

    def _join(self, mask):
        """Add the columns in a mask, of which none is a working column."""
        index = np.flatnonzero(mask)
        if len(index) or not len(self.working):
            self.working.join(index)
            index = self.working.index
            self._working_fits = self.fits.on_columns(self.working, index)
            self._on_columns = OnColumns(index)
            self._n_products += 2 * np.count_nonzero(mask)

    def _take_all(self):
        """Use all columns for some updates, and for more the next time."""
        self.working = None
        self._n_left, self._next_pause = self._next_pause, 2 * self._next_pause
        self._n_products = self._n_updates = 0
