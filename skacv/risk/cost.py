"""The cost of a run, which decides how rows are left out of it, and how many.

Costs are in units of :mod:`skacv.optim.costs`.
"""

from dataclasses import dataclass, field

import numpy as np

from ..optim.costs import DERIVATIVE, SECONDS

# X is decomposed up to the first size of its smaller side, a kernel matrix, which has
# no smaller side, up to the second.
DECOMPOSED_SIZE = 2000
DECOMPOSED_KERNEL_SIZE = 3000
# Automatic estimates leave out at most so many rows of linear updates.
MANY_ROWS = 10_000
# Automatic estimates may cost as much as so many replicas of the run, which is three
# times five folds; or as much as eight milliseconds.
WORTH_REPLICAS = 15
WORTH_MULTIPLICATIONS = 0.008 / SECONDS
# Rows are left out exactly unless linearising is so many times cheaper.
WORTH_LINEARISING = 4.0
# Gradients are corrected at the updates floor(CORRECTION_GROWTH^k) of a phase.
CORRECTION_GROWTH = 1.1


def is_decomposed(shape, has_columns=True):
    """Whether linear updates use a decomposition of X, or of a kernel matrix."""
    return min(shape) <= (DECOMPOSED_SIZE if has_columns else DECOMPOSED_KERNEL_SIZE)


def corrected_updates(n_updates, has_batches=False):
    """The updates of a phase, counted from one, that evaluate the correction."""
    growth = 2 if has_batches else CORRECTION_GROWTH
    n_powers = int(np.log(max(n_updates, 1)) / np.log(growth)) + 2
    numbers = np.floor(float(growth) ** np.arange(n_powers)).astype(int)
    return set(numbers[numbers <= n_updates].tolist())


@dataclass
class RunCost:
    """The properties of a planned or recorded run that decide how rows are left out."""

    shape: tuple
    # The number of updates, and the first update and the penalty, of every phase.
    lengths: list
    rules: list
    is_quadratic: bool
    has_columns: bool = True
    n_outputs: int = 1
    is_coupled: bool = False
    correction: bool = True

    n_updates: int = field(init=False)
    # Largest number of batches of an update, 0 if it uses all rows.
    n_batches: int = field(init=False, default=0)
    # Whether there are columns, each updated by its own gradient.
    is_elementwise: bool = field(init=False)
    # Whether every update is an affine map of coefficients and gradients.
    is_linear: bool = field(init=False, default=True)
    # Whether updates are linear, and elementwise in one and the same eigenbasis.
    has_one_basis: bool = field(init=False, default=True)

    def __post_init__(self):
        self.n_updates, self.is_elementwise = sum(self.lengths), self.has_columns
        bases = []
        for update, penalty in self.rules:
            self.n_batches = max(self.n_batches, update.n_batches)
            self.is_elementwise = self.is_elementwise and update.is_elementwise
            if not (update.is_affine and penalty.is_linear):
                self.is_linear = False
            # Without a preconditioner the basis is that of the second moments; with one
            # it is that of the preconditioned objective, which has to stay the same.
            preconditioner = update.preconditioner
            bases.append(None if preconditioner is None else (preconditioner, penalty))
            if update.n_batches or not update.is_affine:
                self.has_one_basis = False
            elif penalty.common_curvature() is None or bases[-1] != bases[0]:
                self.has_one_basis = False

    @classmethod
    def recorded(cls, problem, trajectory, correction=True):
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

    def has_ridge_under_P(self):
        """Whether a preconditioner multiplies the gradient of a ridge penalty."""
        return any(
            update.preconditioner is not None and penalty.curvature
            for update, penalty in self.rules
        )

    def is_decomposed_cheaply(self):
        """Whether a decomposition of X takes about as long as the folds."""
        n_rows, n_columns = self.shape
        size = min(self.shape)
        run = 2 * self.n_updates * n_rows * n_columns * self.n_outputs
        decomposition = n_rows * n_columns * size + size**3
        return n_rows <= DECOMPOSED_SIZE and decomposition <= 4 * run

    def is_worth_linearising(self):
        """Whether linearising is many times cheaper than an exact run for each row."""
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
        """Number of updates at which the error of linearising is evaluated."""
        if not self.correction:
            return 0
        has_batches = self.n_batches > 0
        return sum(len(corrected_updates(n, has_batches)) for n in self.lengths)

    def exact_work(self, n_columns):
        """Cost of an exact update on ``n_columns``, for each row left out."""
        return self.shape[0] * (2 * n_columns + DERIVATIVE) * self.n_outputs

    def hessian_work(self, n_columns):
        """Cost of a product with the Hessian of ``n_columns`` columns."""
        n_coupled = self.n_outputs if self.is_coupled else 1
        return n_columns**2 * self.n_outputs * n_coupled


def method_for(run, has_coefficients=False):
    """The name of the fastest method for a RunCost, or of those with coefficients."""
    if run.is_quadratic and run.has_one_basis and not has_coefficients:
        if is_decomposed(run.shape, run.has_columns):
            return "spectral"
    if run.is_quadratic and run.is_elementwise and not run.n_batches:
        return "screened"
    if not run.is_quadratic and run.is_elementwise and run.is_worth_linearising():
        return "linearised"
    return "replicas"


def n_rows_worth(run, n_active, least=100):
    """Number of rows that can be left out in about the time of folds, or none."""
    # ``n_active`` is the number of columns that the run uses at most.
    method, (n_rows, n_columns) = method_for(run), run.shape
    if method == "spectral":
        return min(n_rows, MANY_ROWS)
    # Updates that take two products with X for each row left out.
    n_exact = run.n_updates if method == "replicas" else 0
    if method == "linearised":
        n_exact = run.n_corrected()
    # Replicas together use more columns than the recorded run.
    width = min(2 * n_active, n_columns)
    # A wide Hessian is not formed, two products with the columns do as well.
    hessian = min(run.hessian_work(width), 2 * n_rows * width * run.n_outputs)
    cost = (run.n_updates - n_exact) * hessian
    cost += n_exact * run.exact_work(n_columns)
    replica = run.n_updates * run.exact_work(width)
    budget = max(WORTH_MULTIPLICATIONS, WORTH_REPLICAS * replica)
    n_worth = int(min(n_rows, budget // max(cost, 1)))
    return n_worth if n_worth >= min(least, n_rows) else 0


def is_cheap(run):
    """Whether leaving out every row takes about as long as a few folds."""
    return method_for(run) == "spectral" and run.is_decomposed_cheaply()
