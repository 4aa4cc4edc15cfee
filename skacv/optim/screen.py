"""Updates with a prox, on the few columns that they can change.

A coefficient that is zero in the last two iterates of every fit stays zero as long as
its gradient x_j's, with s the slopes, is below the threshold of the prox. For such a
column it is enough to bound the gradient, which takes no product with X:

    |x_j's| <= |(X'Q c)_j| + ||x_j|| ||s - Q c||,        c = Q's.

The columns of Q are slopes of earlier updates, made orthonormal; X'Q is stored. The
bound is tight because slopes change little from one update to the next. Updates use the
working columns: those with nonzero coefficients, and those that the bounds allow to
change. If the bounds allow a few more columns to change, these join. If they allow
many, X is multiplied with the present slopes, which extend Q. The iterates equal those
of updates on all columns, to rounding.
"""

import numpy as np

from .design import ROUNDINGS
from .families import PenaltyOnColumns
from .fits import Iterate
from .updates import State


def may_move(penalty, bound, step_size, scale=1.0):
    """Whether zeros may become nonzero, from bounds (n_columns, ...) of gradients.

    ``scale`` is the least factor of the penalty in any fit.
    """
    displacement, step = step_size * bound, step_size * scale
    return (penalty.prox(displacement, step) != 0) | (
        penalty.prox(-displacement, step) != 0
    )


class WorkingColumns:
    """Some columns of a design, which other columns can join.

    ``index`` lists them in the order in which they joined. Columns are copied when a
    product needs them. The copies are a few designs whose sizes double, so that each
    column is copied few times.
    """

    is_matrix = is_on_device = is_dual = False

    def __init__(self, design, index=()):
        self._design, self.dtype = design, design.dtype
        self.index = np.asarray(index, int)
        # Designs of columns, and indices of columns without a design yet.
        self._parts, self._pending_index = [], [self.index]

    def __len__(self):
        return len(self.index)

    def join(self, index):
        """Add columns, in increasing order."""
        self.index = np.concatenate([self.index, index])
        self._pending_index.append(index)

    def keep(self, positions):
        """Keep the columns at increasing positions of ``index``."""
        index, parts = self.index[positions], []
        if self._parts and len(positions):
            parts = [self.as_design().selection(positions, self.dtype)]
        self.index, self._parts = index, parts
        self._pending_index = [] if parts else [index]

    def dot(self, coef):
        """Linear predictors (n_rows, k) of coefficients (n_working, k)."""
        first, product = 0, 0
        for part in self._designs():
            last = first + part.shape[1]
            product, first = product + part.dot(coef[first:last]), last
        return product

    def t_dot(self, slopes):
        """The gradient (n_working, k) of slopes (n_rows, k)."""
        return np.concatenate([part.t_dot(slopes) for part in self._designs()])

    def as_design(self):
        """One design of all working columns."""
        parts = self._designs()
        while len(parts) > 1:
            last = parts.pop()
            parts[-1] = parts[-1].joined_with(last)
        return parts[0]

    def _designs(self):
        """Designs that together have all working columns, in order."""
        parts = self._parts
        for index in filter(len, self._pending_index):
            # All columns of a design are the design itself.
            parts.append(self._design.columns(index, self.dtype))
            while len(parts) > 1 and parts[-2].shape[1] <= parts[-1].shape[1]:
                last = parts.pop()
                parts[-1] = parts[-1].joined_with(last)
        self._pending_index = []
        return parts or [self._design.selection(self.index, self.dtype)]


class GradientBounds:
    """Bounds of gradients, from products of X with orthonormal slopes Q.

    There are ``n_vectors`` vectors of slopes, one for each output of each fit, and each
    has its own Q.
    """

    def __init__(self, fits, n_vectors, n_most_slopes=16):
        design, norms = fits.problem.design, fits.column_norms()
        n_rows, n_columns = design.shape
        # At most a quarter of the memory of X, where there are many fits.
        share = n_rows * n_columns // (4 * (n_rows + n_columns) * n_vectors)
        self.n_most_slopes = int(np.clip(share, 4, n_most_slopes))
        self._norms = np.tile(norms, (n_vectors // len(norms), 1))
        shape = n_vectors, self.n_most_slopes
        self._directions = np.empty((*shape, n_rows), design.dtype)
        self._products = np.empty((*shape, n_columns), design.dtype)
        # Bounds of the rounding errors of the products, divided by the column's norm.
        self._errors = np.empty(shape, design.dtype)
        self._n_slopes = 0
        # Copies of columns are rounded to the precision of X.
        eps = np.finfo(design.storage_dtype).eps
        self._rounding, self._most_error = ROUNDINGS * eps, np.sqrt(eps)

    def bounds(self, slopes):
        """Bounds (n_columns,) of all gradients, at slopes (n_vectors, n_rows)."""
        c, rest = self._project(slopes)  # s = Q c + rest
        remainder_norms = np.linalg.norm(rest, axis=1) + self._error(slopes, c)
        bounds = _combine(c, self._products[:, : self._n_slopes])  # X'Q c
        np.abs(bounds, out=bounds)
        bounds += remainder_norms[:, None] * self._norms
        return bounds.max(axis=0)

    def learn(self, slopes, gradients):
        """Extend Q by slopes, whose products with X are the ``gradients``.

        Shapes: slopes (n_vectors, n_rows); gradients (n_vectors, n_columns)."""
        if self._n_slopes == self.n_most_slopes:
            self._n_slopes = 0
        first, rest = self._project(slopes)
        # Two projections make the rest orthogonal to rounding (Kahan, Parlett).
        second, rest = self._project(rest)
        c, size = first + second, np.linalg.norm(rest, axis=1)
        size[size == 0] = np.inf
        error = self._error(slopes, c) / size
        if error.max() > self._most_error:
            self._n_slopes = 0
            return self.learn(slopes, gradients)
        product = gradients - _combine(c, self._products[:, : self._n_slopes])
        self._directions[:, self._n_slopes] = rest / size[:, None]
        self._products[:, self._n_slopes] = product / size[:, None]
        self._errors[:, self._n_slopes] = error
        self._n_slopes += 1

    def _project(self, slopes):
        """Coefficients c = Q's of slopes s, and the rest s - Q c."""
        Q = self._directions[:, : self._n_slopes]
        c = np.matmul(Q, slopes[:, :, None])[:, :, 0]
        return c, slopes - _combine(c, Q)

    def _error(self, slopes, c):
        """An upper bound of the rounding error in a combination of products."""
        error = self._rounding * np.linalg.norm(slopes, axis=1)
        return error + (np.abs(c) * self._errors[:, : self._n_slopes]).sum(axis=1)


def _combine(c, vectors):
    """Combinations (k, n) of vectors (k, m, n) with coefficients (k, m)."""
    return np.matmul(c[:, None, :], vectors)[:, 0]


class Screen:
    """Applies updates to all fits, on the few columns that the updates can change.

    The screen pauses if a copy of the working columns would be larger than
    ``most_copied`` of X, or if products went through more than ``most_used`` of all
    columns: the next ``pause`` updates use all columns, and the next pause is twice as
    long. Bounds are multiplied by ``slack`` when columns are chosen, so that the choice
    holds for some updates.
    """

    def __init__(self, fits, pause=8, most_copied=0.5, most_used=0.8, slack=1.1):
        self.fits, self.pause, self.slack = fits, pause, slack
        self.most_copied, self.most_used = most_copied, most_used
        self._bounds: GradientBounds | None = None
        self.working: WorkingColumns | None = None
        # Updates left in this pause, and the length of the next one.
        self._pause_left, self._next_pause = 0, pause
        # Number of columns in the products of the last ``_n_updates`` updates.
        self._n_products = self._n_updates = 0

    def advance(self, update, penalty, state):
        """The state after an update, equal to ``update.advance`` to rounding."""
        fits, current, earlier = self.fits, state.current, state.earlier
        design = fits.problem.design
        n_columns = design.shape[1]
        if self._pause_left or not update.is_elementwise:
            self._pause_left = max(self._pause_left - 1, 0)
            return update.advance(fits, penalty, state)
        if self.working is not None and self._n_updates == self.pause:
            if self._n_products > self.most_used * 2 * n_columns * self.pause:
                self._begin_pause()
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

        # If the bounds allow a few more columns to change, these join. If they allow
        # many, a product with X makes the bounds tighter.
        bounds = self._bounds.bounds(vectors)
        may_change = self._may_change(update, penalty, bounds)
        if self.working is not None:
            may_change[self.working.index] = False
        if self.working is not None and np.count_nonzero(may_change) <= n_columns / 64:
            self._join(self.working, may_change)
        else:
            gradient = fits.gradient_of(slopes)
            self._bounds.learn(vectors, gradient.reshape(n_columns, -1).T)
            self._n_products += n_columns
            nonzero = ((current.coef != 0) | (earlier.coef != 0)).any(axis=(1, 2))
            bounds = self.slack * self._bounds.bounds(vectors)
            may_change = self._may_change(update, penalty, bounds)
            may_change |= penalty.expand_to_groups(nonzero)
            n_working = np.count_nonzero(may_change)
            if n_working > self.most_copied * n_columns:
                self._begin_pause()
            elif self.working is not None and len(self.working) <= 2 * n_working:
                may_change[self.working.index] = False
                self._join(self.working, may_change)
            else:  # the first choice, or most working columns no longer change
                self.working = WorkingColumns(design)
                self._join(self.working, may_change)

        index: slice | np.ndarray = slice(None)
        working_penalty, n_used = penalty, n_columns
        if self.working is not None:
            index, working_penalty = self.working.index, self._on_columns(penalty)
            n_used = len(index)
        if gradient is None:
            gradient = self._working_fits.gradient_of(slopes)
        else:  # equal, to the last digit, to the gradient without a screen
            gradient = gradient[index]
        coef = np.zeros_like(current.coef)
        coef[index] = update.apply(
            current.coef[index],
            earlier.coef[index],
            gradient,
            working_penalty,
            fits.penalty_scale,
        )
        self._n_products += 2 * n_used
        predictor = self._predictor(coef) if fits.keeps_predictors else None
        return State(Iterate(coef, predictor), current)

    def _predictor(self, coef):
        """Linear predictors of coefficients that are zero on all other columns."""
        if self.working is None:
            return self.fits.predictor(coef)
        return self._working_fits.predictor(coef[self.working.index])

    def _may_change(self, update, penalty, bounds):
        """Mask of the columns that bounds (n_columns,) allow to change."""
        # The weakest penalty of any fit: a zero under it is zero under stronger ones.
        scale = np.min(self.fits.penalty_scale)
        may_change = may_move(penalty, bounds[:, None], update.step_size, scale)
        return penalty.expand_to_groups(may_change[:, 0])

    def _join(self, working, mask):
        """Add the columns in a mask, none of which is a working column yet."""
        index = np.flatnonzero(mask)
        if len(index) or not len(working):
            working.join(index)
            self._working_fits = self.fits.on_columns(working, working.index)
            self._on_columns = PenaltyOnColumns(working.index)
            self._n_products += 2 * len(index)

    def _begin_pause(self):
        """Use all columns for some updates, and for twice as many the next time."""
        self.working = None
        self._pause_left, self._next_pause = self._next_pause, 2 * self._next_pause
        self._n_products = self._n_updates = 0
