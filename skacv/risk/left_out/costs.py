"""What leaving rows out costs: which way is taken, and how many rows are worth it."""

from dataclasses import dataclass
from enum import Enum

from .moments import n_evaluations

# Linear updates are decomposed up to this size of the smaller side of X.
SPECTRAL_SIZE = 2000
# Left to us, at most so many rows are left out of linear updates, so many
# multiplications are spent on others, and at least so many rows are left out.
MANY_ROWS = 10_000
MULTIPLICATIONS = 1e10
FEW_ROWS = 100
# What the derivative of a loss costs, in multiplications.
DERIVATIVE = 30
# Rows are left out exactly unless linearising is so many times cheaper.
WORTH_LINEARISING = 4.0


def is_decomposed(shape):
    """Whether linear updates are read from a decomposition of X of that shape."""
    return min(shape) <= SPECTRAL_SIZE


class Way(Enum):
    """How rows are left out of a run, one at a time."""

    SPECTRAL = "all by one decomposition"
    WORKING_COLUMNS = "by what they change, on few columns"
    LINEARISED = "by what they change, with derivatives at the recorded run"
    LOCKSTEP = "by runs of their own, side by side"


@dataclass(frozen=True)
class Run:
    """A run, planned or recorded, as far as leaving rows out of it goes.

    Attributes
    ----------
    shape : tuple of int
        Of the design.
    lengths : list of int
        Updates of every phase.
    is_quadratic : bool
        Whether the loss is.
    has_one_basis : bool
        Whether updates are linear and elementwise in one basis.
    is_plain : bool
        Whether all rows are taken at a time, by their gradient as it is.
    n_batches : int
        Of every update, 0 if it takes all rows at once.
    has_newton_steps : bool
    n_outputs : int
    is_coupled : bool
        Whether the loss is of all outputs together.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    """

    shape: tuple
    lengths: list
    is_quadratic: bool
    has_one_basis: bool = False
    is_plain: bool = True
    n_batches: int = 0
    has_newton_steps: bool = False
    n_outputs: int = 1
    is_coupled: bool = False
    correction: bool = True

    @classmethod
    def recorded(cls, problem, trajectory, correction):
        """The run that a trajectory is the record of."""
        return cls(
            shape=problem.design.shape,
            lengths=trajectory.lengths(),
            is_quadratic=problem.loss.is_quadratic,
            has_one_basis=trajectory.has_one_basis(),
            is_plain=trajectory.is_plain(),
            n_batches=trajectory.n_batches(),
            has_newton_steps=trajectory.has_newton_steps(),
            n_outputs=problem.target.shape[1],
            is_coupled=problem.loss.is_coupled,
            correction=correction,
        )

    @property
    def n_updates(self):
        return sum(self.lengths)

    def way(self):
        """How rows are left out of it.

        Returns
        -------
        Way
            Of squared errors: without runs of their own where all rows are taken at
            a time, by their gradient as it is, or where there is one basis, not too
            large. Of other losses see :meth:`is_worth_linearising`.
        """
        if not self.is_quadratic:
            return Way.LINEARISED if self.is_worth_linearising() else Way.LOCKSTEP
        if self.has_one_basis and is_decomposed(self.shape):
            return Way.SPECTRAL
        return Way.WORKING_COLUMNS if self.is_plain else Way.LOCKSTEP

    def is_worth_linearising(self):
        """Whether linearising is many times cheaper than an exact run per row.

        It is not with few rows to a column, in small batches, of short phases, whose
        first updates are all corrected, and of Newton's method, which needs every
        replica's own Hessian.
        """
        n_rows, n_columns = self.shape
        if n_columns >= n_rows or self.has_newton_steps:
            return False
        if not self.correction:
            return True
        exact = self.n_updates * self._exact_cost()
        linearised = (
            self.n_updates * max(self.n_batches, 1) * self._hessian_cost(n_columns)
        )
        linearised += self._n_corrected() * self._exact_cost()
        return exact > WORTH_LINEARISING * linearised

    def n_exact_updates(self):
        """How many updates cost a row that is left out two products with X.

        All in lockstep, those that are corrected where the others are linearised.
        """
        way = self.way()
        if way is Way.LOCKSTEP:
            return self.n_updates
        return self._n_corrected() if way is Way.LINEARISED else 0

    def _n_corrected(self):
        if not self.correction:
            return 0
        return n_evaluations(self.lengths, self.n_batches > 0)

    def _exact_cost(self):
        """Multiplications of an exact update, for a row left out."""
        n_rows, n_columns = self.shape
        return n_rows * (2 * n_columns + DERIVATIVE) * self.n_outputs

    def _hessian_cost(self, n_columns):
        """Multiplications with the Hessian of so many columns."""
        together = self.n_outputs if self.is_coupled else 1
        return n_columns**2 * self.n_outputs * together

    def n_rows_worth(self, n_active):
        """How many rows it takes little to leave out.

        Parameters
        ----------
        n_active : int
            Columns that the run uses at most.

        Returns
        -------
        int
            All rows where that is cheap; at least ``FEW_ROWS``, if there are.
        """
        n_rows, n_columns = self.shape
        if self.way() is Way.SPECTRAL:
            return min(n_rows, MANY_ROWS)
        # Replicas together use more columns than the recorded run.
        width = min(2 * n_active, n_columns)
        n_exact = self.n_exact_updates()
        # A wide one is not formed, two products with the columns do as well.
        hessian = min(self._hessian_cost(width), 2 * n_rows * width * self.n_outputs)
        each = (self.n_updates - n_exact) * hessian
        each += n_exact * self._exact_cost()
        return int(min(n_rows, max(FEW_ROWS, MULTIPLICATIONS // max(each, 1))))
