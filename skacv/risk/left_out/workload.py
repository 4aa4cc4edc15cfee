"""Workload of leave-one-out, which decides the method and the number of rows."""

from dataclasses import dataclass

from .correction import evaluated

# Linear updates are decomposed up to this size of the smaller side of X.
SPECTRAL_SIZE = 2000
# Kernel matrices, to which there is no smaller side, up to this size.
KERNEL_SIZE = 3000
# Left to us, at most so many rows are left out of linear updates.
MANY_ROWS = 10_000
# What is spent on others, at most: as much as so many replicas of the run, which is
# three times five folds; or so many multiplications, some milliseconds.
WORTH_REPLICAS = 15
WORTH_MULTIPLICATIONS = 2e8
# Fewer rows than these say too little: they are not left out at all.
FEW_ROWS = 100
# Leave-one-out is a cheap criterion up to so many rows, where the decomposition takes
# at most so many times the multiplications of the run: they are several times faster
# in it, and folds take as long.
CHEAP_ROWS = 2000
CHEAP_DECOMPOSITION = 4
# Work for the derivative of a loss, in multiplications.
DERIVATIVE = 30
# Rows are left out exactly unless linearising is so many times cheaper.
WORTH_LINEARISING = 4.0


def is_decomposed(shape, has_columns=True):
    """Whether linear updates use a decomposition of X, or of a kernel matrix."""
    return min(shape) <= (SPECTRAL_SIZE if has_columns else KERNEL_SIZE)


@dataclass(frozen=True)
class Workload:
    """The properties of a planned or recorded run that matter for leaving rows out.

    Attributes
    ----------
    shape : tuple of int
        Shape of the design.
    lengths : list of int
        Updates of every phase.
    rules : list of (Update, Penalty)
        The first update of every phase, which stands for all, and its penalty.
    is_quadratic : bool
        Whether the loss is quadratic.
    has_columns : bool
        Whether the design has columns; a kernel has none.
    is_coupled : bool
        Whether the loss is of all outputs together.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    """

    shape: tuple
    lengths: list
    rules: list
    is_quadratic: bool
    has_columns: bool = True
    n_outputs: int = 1
    is_coupled: bool = False
    correction: bool = True

    @classmethod
    def recorded(cls, problem, trajectory, correction=True):
        """The workload of a recorded trajectory."""
        return cls(
            shape=problem.design.shape,
            lengths=[phase.n_updates for phase in trajectory.phases],
            rules=trajectory.first_updates(),
            is_quadratic=problem.loss.is_quadratic,
            has_columns=problem.design.has_columns,
            n_outputs=problem.target.shape[1],
            is_coupled=problem.loss.is_coupled,
            correction=correction,
        )

    @property
    def n_updates(self):
        return sum(self.lengths)

    @property
    def n_batches(self):
        """Largest number of batches of an update, 0 if it uses all rows."""
        return max((update.n_batches for update, _ in self.rules), default=0)

    def is_elementwise(self):
        """Whether there are columns, each updated by its own gradient."""
        return self.has_columns and all(u.is_elementwise for u, _ in self.rules)

    def has_one_basis(self):
        """Whether updates are linear, and elementwise in one and the same eigenbasis.

        That of the second moments where there is no preconditioner; else of the
        preconditioned objective, which must stay the same.
        """
        is_linear = all(
            update.is_affine and penalty.common_curvature() is not None
            for update, penalty in self.rules
        )
        if self.n_batches or not is_linear:
            return False
        bases = [(update.preconditioner, penalty) for update, penalty in self.rules]
        is_plain = all(preconditioner is None for preconditioner, _ in bases)
        return is_plain or all(basis == bases[0] for basis in bases)

    def is_decomposed_cheaply(self):
        """Whether a decomposition of the smaller side takes about as long as folds."""
        n_rows, n_columns = self.shape
        size = min(self.shape)
        run = 2 * self.n_updates * n_rows * n_columns * self.n_outputs
        decomposition = n_rows * n_columns * size + size**3
        return n_rows <= CHEAP_ROWS and decomposition <= CHEAP_DECOMPOSITION * run

    def has_ridge_under_P(self):
        """Whether a preconditioner multiplies the gradient of a ridge penalty."""
        return any(
            update.preconditioner is not None and penalty.curvature
            for update, penalty in self.rules
        )

    def is_worth_linearising(self):
        """Whether linearising is many times cheaper than an exact run per row.

        It is not with few rows to a column, in small batches, or of short phases, whose
        first updates are all corrected.
        """
        n_rows, n_columns = self.shape
        if n_columns >= n_rows:
            return False
        if not self.correction:
            return True
        exact = self.exact_work(n_columns)
        n_steps = self.n_updates * max(self.n_batches, 1)
        linearised = n_steps * self.hessian_work(n_columns)
        linearised += self.n_corrected() * exact
        return self.n_updates * exact > WORTH_LINEARISING * linearised

    def n_corrected(self):
        """Number of updates that are corrected if rows are left out by linearising."""
        if not self.correction:
            return 0
        return sum(len(evaluated(n, self.n_batches > 0)) for n in self.lengths)

    def exact_work(self, n_columns):
        """Multiplications of an exact update on ``n_columns``, per left-out row."""
        return self.shape[0] * (2 * n_columns + DERIVATIVE) * self.n_outputs

    def hessian_work(self, n_columns):
        """Multiplications with the Hessian of ``n_columns`` columns."""
        together = self.n_outputs if self.is_coupled else 1
        return n_columns**2 * self.n_outputs * together

    def n_rows_worth(self, n_active, n_exact):
        """Number of rows that can be left out in about the time of folds.

        Parameters
        ----------
        n_active : int
            Largest number of columns that the run uses.
        n_exact : int
            Updates that take two products with X per left-out row.

        Returns
        -------
        int
            All rows, at least ``FEW_ROWS``, or none.
        """
        n_rows, n_columns = self.shape
        # Replicas together use more columns than the recorded run.
        width = min(2 * n_active, n_columns)
        # A wide Hessian is not formed, two products with the columns do as well.
        hessian = min(self.hessian_work(width), 2 * n_rows * width * self.n_outputs)
        exact = n_exact * self.exact_work(n_columns)
        each = (self.n_updates - n_exact) * hessian + exact
        replica = self.n_updates * self.exact_work(width)
        spent = max(WORTH_MULTIPLICATIONS, WORTH_REPLICAS * replica)
        n_worth = int(min(n_rows, spent // max(each, 1)))
        return n_worth if n_worth >= min(FEW_ROWS, n_rows) else 0
