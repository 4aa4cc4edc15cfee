"""What leaving rows out costs: which way is taken, and how many rows are worth it."""

from .iacv_moments import n_evaluations

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


def is_spectral(smaller_side, has_one_basis):
    """Whether all rows are left out by one decomposition.

    Parameters
    ----------
    smaller_side : int
        Of the design.
    has_one_basis : bool
        Whether updates are linear and elementwise in one basis.

    Returns
    -------
    bool
    """
    return has_one_basis and smaller_side <= SPECTRAL_SIZE


def is_read(problem, trajectory):
    """Whether rows are left out of squared errors without runs of their own.

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory

    Returns
    -------
    bool
    """
    smaller_side = min(problem.design.shape)
    return trajectory.is_plain() or is_spectral(
        smaller_side, trajectory.has_one_basis()
    )


def n_exact_updates(shape, lengths, n_batches, has_newton_steps, correction=True):
    """How many updates rows are left out of exactly, where the loss is curved.

    All of them where linearising would not be many times cheaper: with few rows
    to a column, in small batches, of short phases, whose first updates are all
    corrected, and of Newton's method, which needs every replica's own Hessian.
    Else as many as are corrected.

    Parameters
    ----------
    shape : tuple of int
        Of the design.
    lengths : list of int
        Updates of every phase.
    n_batches : int
        Of every update, 0 if it takes all rows at once.
    has_newton_steps : bool
    correction : bool
        Whether what is linearised is corrected at some iterates.
    """
    n_updates, (n_rows, n_columns) = sum(lengths), shape
    if n_columns >= n_rows or has_newton_steps:
        return n_updates
    if not correction:
        return 0
    n_corrected = n_evaluations(lengths, n_batches > 0)
    exact = n_updates * _exact_cost(shape)
    linearised = n_updates * max(n_batches, 1) * n_columns**2
    linearised += n_corrected * _exact_cost(shape)
    return n_corrected if exact > WORTH_LINEARISING * linearised else n_updates


def _exact_cost(shape):
    """Multiplications of an exact update, for a row left out."""
    n_rows, n_columns = shape
    return n_rows * (2 * n_columns + DERIVATIVE)


def n_rows_worth(shape, n_updates, n_active, has_one_basis, n_exact=None):
    """How many rows it takes little to leave out, of so many that use ``n_active``.

    Parameters
    ----------
    shape : tuple of int
        Of the design.
    n_updates : int
    n_active : int
        Columns that the run uses at most.
    has_one_basis : bool
        Whether updates are linear and elementwise in one basis.
    n_exact : int, optional
        How many of the updates are exact: of a curved loss, see
        :func:`n_exact_updates`; all where rows are left out in lockstep, None where
        squared errors are without.

    Returns
    -------
    int
        All rows where that is cheap; at least ``FEW_ROWS``, if there are.
    """
    n_rows, n_columns = shape
    if n_exact is None and is_spectral(min(shape), has_one_basis):
        return min(n_rows, MANY_ROWS)
    # Replicas together use more columns than the recorded run.
    width = min(2 * n_active, n_columns)
    n_exact = n_exact or 0
    each = (n_updates - n_exact) * width * min(width, 2 * n_rows)
    each += n_exact * _exact_cost(shape)
    return int(min(n_rows, max(FEW_ROWS, MULTIPLICATIONS // max(each, 1))))
