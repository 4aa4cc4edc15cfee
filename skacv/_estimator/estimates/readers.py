"""The registered estimates, and how they are computed from a finished run.

An estimate is one entry of ``ESTIMATES``. It is then a fitted attribute of every
estimator that switches it on, a criterion of :class:`TrajectoryEarlyStoppingCV`, and a
line of :class:`RiskPathDisplay`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from ..._names import did_you_mean
from ...optim.array_path import PathCache
from ...optim.trajectory import Trajectory
from ...records.held_out import HeldOut
from ..data.survival import takes_survival
from ..data.training_data import TrainingData
from ..delegation import class_of
from ..parameters import is_auto, to_python_scalar
from .folds import ShuffledFolds, read_folds
from .left_out import FEWEST_ROWS, read_leave_one_out, rows_to_choose_by
from .memory_matrix import also_if_costly, has_memory_matrix, read_memory_matrix


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, from which estimates are computed.

    Attributes
    ----------
    estimator : estimator
        Its parameters; it is not fitted yet.
    trajectory : Trajectory
        The record: ``coef`` (n_iter + 1, n_columns, n_outputs), ``predictor``
        (n_iter + 1, n_rows, n_outputs) and the steps that were taken.
    data : TrainingData
        ``data.problem`` has the design, the target, the weights of the rows and the
        loss.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows of every fold; none without ``cv``.
    side_runs : SideFolds or None
        Random labels and folds that have run along, for leave-one-out and folds.
    best : int or None
        The best iterate, if the run was evaluated along the way.
    computed : dict of str to HeldOut or None
        Estimates by name, as computed from this run or a longer one; None if the run
        has no such estimate.
    so_far : PathCache
        What is known of the iterates.
    groups : ndarray of int, shape (n_samples,), or None
        The group of every sample that was passed, where there are groups.
    spec : ModelSpec
        Its penalty, strengths and solver.
    estimates : list of Estimate
        Those that are on.
    """

    estimator: Any
    trajectory: Trajectory
    data: TrainingData
    folds: list[tuple[np.ndarray, np.ndarray]]
    side_runs: Any = None
    best: int | None = None
    computed: dict[str, HeldOut | None] = field(default_factory=dict)
    so_far: PathCache = field(default_factory=PathCache)
    groups: np.ndarray | None = None
    spec: Any = None
    estimates: list[Any] = field(default_factory=list)

    @cached_property
    def values(self) -> np.ndarray:
        """Loss of every iterate on the training rows, (n_iter + 1,)."""
        predictor = self.trajectory.predictor
        losses = self.data.problem.path_values
        return self.so_far.first(
            "train", len(predictor), lambda part: [losses(predictor, part)]
        )[0]

    @property
    def train_path(self) -> np.ndarray:
        """Mean loss of every iterate on the training rows, as paths report it."""
        problem, predictor = self.data.problem, self.trajectory.predictor
        values, judge = self.values, problem.loss.judge
        if judge is not problem.loss:
            (values,) = self.so_far.first(
                "judged",
                len(predictor),
                lambda part: [problem.path_values(predictor, part, judge)],
            )
        return problem.reported_losses(values)

    @cached_property
    def objective_path(self) -> np.ndarray:
        """Loss plus penalty of every iterate, (n_iter + 1,)."""
        return self.data.problem.objectives(self.trajectory, self.values)


# What an estimate may need of the training rows, the most first.
NEEDS = ("rows", "sample", "moments")


@dataclass(frozen=True)
class Estimate:
    """An estimate of the loss of every iterate on unseen rows.

    Parameters
    ----------
    name : str
        Name as a criterion, and in ``record_``.
    label : str
        Label in figures.
    read : callable
        ``read(run)`` takes a :class:`FinishedRun` and returns a
        :class:`~skacv.records.held_out.HeldOut`, smaller is better; None if the run
        has no such estimate.
    parameter : str, default=None
        The estimator's parameter that switches it on. The values False and None switch
        it off, and so does "auto" if another criterion is used. None: it is computed
        for every run, which suits estimates that take no time.
    default : callable, default=None
        ``default(estimator, sample_weight)`` returns the value that replaces None if
        this estimate is the criterion.
    sample : callable, default=None
        ``sample(estimator, X, y, n_rows)`` returns the value that replaces "auto" if
        this estimate is the criterion: the number of rows, of n_rows with positive
        weight, that suffice for a choice.
    limits : str, default=""
        A sentence about its limitations, for error messages.
    has_residuals : bool, default=False
        Whether its held-out residuals are those of unseen rows, so that prediction
        intervals may use them.
    needs_target : bool, default=False
        Whether residuals need the targets of held-out rows, which a fit may lack.
    switched_on : object, default=True
        A value of the parameter that switches it on, for error messages.
    applies : callable, default=None
        ``applies(estimator)`` returns whether runs of the estimator have this estimate.
        If not, "auto" is off. None: all have it.
    growth : float, default=2.0
        Smallest factor by which a run in stages grows before the estimate is computed
        again: two if it is computed from the whole record again, less if it is updated
        along with the run.
    needs : {"rows", "sample", "moments"}, default="rows"
        Which training rows it needs, besides the run. "moments": none; it is the same,
        up to rounding, if the rows of every fold are replaced by others with the same
        weight, means and second moments of [X y]. "sample": besides moments, only a
        random sample of single rows, the first ``run.data.problem.n_single`` of the
        problem. "rows": all of them.
    is_rotation_invariant : bool, default=False
        Whether it is the same in any orthonormal basis of the coefficients. If not, and
        it is switched on, the run uses the columns of X.
    """

    name: str
    label: str
    read: Callable[[FinishedRun], HeldOut | None]
    parameter: str | None = None
    default: Callable[[Any, Any], Any] | None = None
    sample: Callable[[Any, Any, Any, int], Any] | None = None
    limits: str = ""
    has_residuals: bool = False
    needs_target: bool = False
    switched_on: Any = True
    applies: Callable[[Any], bool] | None = None
    growth: float = 2.0
    needs: str = "rows"
    is_rotation_invariant: bool = False

    @property
    def path(self) -> str:
        """The name of the fitted attribute that has the estimate of every iterate."""
        return f"{self.name}_path_"

    def of(self, fitted: Any) -> HeldOut | None:
        """The estimate of a fitted estimator; None if it has none."""
        return fitted.record_.estimates.get(self.name)

    def is_offered_by(self, estimator: Any) -> bool:
        """Whether the estimator has a parameter to switch it on."""
        return self.parameter is None or self.parameter in estimator.get_params(False)

    def is_computed_by(self, estimator: Any) -> bool:
        """Whether the estimator can compute it, with its parameters."""
        if not self.is_offered_by(estimator):
            return False
        return self.applies is None or self.applies(estimator)

    def check_offered(self, estimator: Any, purpose: str) -> None:
        """Raise an error if the estimator has no parameter to switch it on.

        Parameters
        ----------
        estimator : estimator
        purpose : str
            The criterion or method that needs the estimate, for the message.

        Raises
        ------
        ValueError
        """
        if not self.is_offered_by(estimator):
            limits = self.limits
            if takes_survival(estimator):
                limits = (
                    "The partial likelihood compares rows with each other, and a row "
                    "that is left out alone has none: criterion='cox' compares all "
                    "rows that folds hold out."
                )
            raise ValueError(
                f"{purpose} needs {self.path}, which {class_of(estimator)} does "
                f"not have. {limits}".rstrip()
            )

    def setting(self, estimator: Any) -> Any:
        """Value of the estimator's parameter; False if it has none."""
        if self.parameter is None:
            return True
        return to_python_scalar(getattr(estimator, self.parameter, False))

    def is_on(self, estimator: Any) -> bool:
        """Whether it is switched on in the estimator."""
        setting = self.setting(estimator)
        if is_auto(setting) and self.applies is not None:
            return self.applies(estimator)
        return setting is not None and setting is not False


# In the order in which results and figures list them.
ESTIMATES = {
    estimate.name: estimate
    for estimate in (
        Estimate(
            name="risk",
            label="memory matrix",
            read=read_memory_matrix,
            parameter="risk",
            limits="The memory matrix is available for linear models whose updates "
            "have derivatives.",
            sample=also_if_costly,
            has_residuals=True,
            applies=has_memory_matrix,
            needs="sample",
            is_rotation_invariant=True,
        ),
        Estimate(
            name="loo",
            label="leave-one-out",
            read=read_leave_one_out,
            parameter="loo",
            sample=rows_to_choose_by,
            limits=f"Leave-one-out needs at least {FEWEST_ROWS} rows (with positive "
            "weight) and a skacv model, or in a list one that approximate_loo "
            "supports; folds (criterion='cv') work with any model.",
            has_residuals=True,
            needs="sample",
            is_rotation_invariant=True,
        ),
        Estimate(
            name="cv",
            label="cross-validation",
            read=read_folds,
            parameter="cv",
            default=ShuffledFolds.of,
            has_residuals=True,
            needs_target=True,
            switched_on=5,
            growth=1.25,
            needs="moments",
            is_rotation_invariant=True,
        ),
    )
}


def register_estimate(estimate: Estimate) -> None:
    """Add an estimate to the table.

    Linear models then compute it, :class:`~skacv.TrajectoryEarlyStoppingCV` accepts its
    name as ``criterion``, and :class:`~skacv.RiskPathDisplay` draws it. Call this when
    a module is imported, so that worker processes have it too.

    Parameters
    ----------
    estimate : Estimate

    Raises
    ------
    ValueError
        If the name already is a criterion, or if ``needs`` is invalid.
    """
    if estimate.name in {"auto", *ESTIMATES, *get_scorer_names()}:
        raise ValueError(f"{estimate.name!r} is already the name of a criterion.")
    if estimate.needs not in NEEDS:
        raise ValueError(
            f"needs must be one of {NEEDS}, got {estimate.needs!r}."
            f"{did_you_mean(estimate.needs, NEEDS)}"
        )
    ESTIMATES[estimate.name] = estimate


def unregister_estimate(name: str) -> None:
    """Remove a registered estimate.

    Parameters
    ----------
    name : str

    Raises
    ------
    ValueError
        If there is no estimate of this name.
    """
    if name not in ESTIMATES:
        raise ValueError(f"There is no estimate {name!r}, only {list(ESTIMATES)}.")
    del ESTIMATES[name]


def read_estimates(run):
    """The estimates of a run that are switched on, by name."""
    estimates, n_iterates = {}, run.trajectory.n_updates + 1
    # The memory matrix is the last: it takes the eigenvalues that leave-one-out has
    # computed.
    for name, estimate in reversed(ESTIMATES.items()):
        held_out = None
        if name in run.computed:
            held_out = run.computed[name] and run.computed[name].first(n_iterates)
        elif estimate.is_on(run.estimator):
            held_out = estimate.read(run)
            if not isinstance(held_out, HeldOut | None):
                raise TypeError(
                    f"The estimate {name!r} must be a HeldOut, or None where a run has "
                    f"none, but its reader has returned {type(held_out).__name__}."
                )
        if held_out is not None:
            estimates[name] = held_out
    return estimates
