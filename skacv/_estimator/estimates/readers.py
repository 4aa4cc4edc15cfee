"""The registered estimates, and how they are computed from a finished run.

An estimate is one entry of ``ESTIMATES``. It is then a fitted attribute of every
estimator that switches it on, a criterion of :class:`TrajectoryEarlyStoppingCV`, and a
line of :class:`RiskPathDisplay`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from ..._names import did_you_mean
from ...optim.array_path import ArrayPath, PathCache
from ...optim.trajectory import Trajectory
from ..data.training_data import TrainingData
from ..delegation import class_of
from ..parameters import is_auto, to_python_scalar
from .folds import ShuffledFolds, read_folds
from .left_out import (
    FEWEST_ROWS,
    held_out_residuals,
    read_leave_one_out,
    rows_to_choose_by,
)
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
    computed : dict of dict
        Fitted attributes by the name of the estimate, as computed from this record of
        the run or a longer one.
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
    computed: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        return self.data.problem.reported_losses(self.values)

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
        Name as a criterion, and prefix of its fitted attributes.
    label : str
        Label in figures.
    read : callable
        ``read(run)`` takes a :class:`FinishedRun` and returns a dict of fitted
        attributes: ``{name}_path_`` and ``{name}_se_path_``, each of shape (n_iter +
        1,), smaller is better; ``{name}_prediction_path_`` (n_iter + 1, n_held_out) and
        ``{name}_indices_`` if rows are held out; any others. It is empty if the run has
        no such estimate.
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
    residuals : callable, default=None
        ``residuals(estimator, t)``, the held-out residuals of iterate t of a fitted
        regressor, (n_held_out,) or (n_held_out, n_targets), if prediction intervals may
        use them.
    residuals_from : str, default=None
        The fitted attribute from which residuals are computed, if a fit may have the
        path without it. None: the path is enough.
    switched_on : object, default=True
        A value of the parameter that switches it on, for error messages.
    applies : callable, default=None
        ``applies(estimator)`` returns whether runs of the estimator have this estimate.
        If not, "auto" is off. None: all have it.
    stage : float, default=2.0
        Smallest factor by which a run in stages grows before the estimate is computed
        again: two if it is computed from the whole record again, less if it is updated
        along with the run.
    after : tuple of str, default=()
        Names of estimates that are computed before it because it reuses their results.
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
    read: Callable[[FinishedRun], dict[str, Any]]
    parameter: str | None = None
    default: Callable[[Any, Any], Any] | None = None
    sample: Callable[[Any, Any, Any, int], Any] | None = None
    limits: str = ""
    residuals: Callable[[Any, int], np.ndarray] | None = None
    residuals_from: str | None = None
    switched_on: Any = True
    applies: Callable[[Any], bool] | None = None
    stage: float = 2.0
    after: tuple[str, ...] = ()
    needs: str = "rows"
    is_rotation_invariant: bool = False

    # Names of fitted attributes: the estimate of every iterate, its standard errors,
    # held-out predictions of every iterate, the rows and the targets of these.
    path: str = field(init=False)
    se_path: str = field(init=False)
    predictions: str = field(init=False)
    indices: str = field(init=False)
    targets: str = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(
            path=f"{self.name}_path_",
            se_path=f"{self.name}_se_path_",
            predictions=f"{self.name}_prediction_path_",
            indices=f"{self.name}_indices_",
            targets=f"{self.name}_target_",
        )

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
            raise ValueError(
                f"{purpose} needs {self.path}, which {class_of(estimator)} does "
                f"not have. {self.limits}".rstrip()
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
            residuals=partial(held_out_residuals, "risk"),
            applies=has_memory_matrix,
            # Linear updates: it takes the eigenvalues that leave-one-out has computed.
            after=("loo",),
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
            "weight) and a skacv model; folds work with any model.",
            residuals=partial(held_out_residuals, "loo"),
            needs="sample",
            is_rotation_invariant=True,
        ),
        Estimate(
            name="cv",
            label="cross-validation",
            read=read_folds,
            parameter="cv",
            default=ShuffledFolds.of,
            residuals=partial(held_out_residuals, "cv"),
            residuals_from="cv_target_",
            switched_on=5,
            stage=1.25,
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
        If the name already is a criterion, or if ``after`` or ``needs`` is invalid.
    """
    if estimate.name in {"auto", *ESTIMATES, *get_scorer_names()}:
        raise ValueError(f"{estimate.name!r} is already the name of a criterion.")
    unknown = [name for name in estimate.after if name not in ESTIMATES]
    if unknown:
        raise ValueError(f"after={unknown}: there are no such estimates.")
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


def read(run):
    """All fitted attributes from a run: the recorded paths, and the estimates."""
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    coef_path, intercept_path = run.so_far.first(
        "coef",
        len(trajectory.coef),
        lambda part: data.coefficients(trajectory.coef[part]),
    )
    strengths, values = run.spec.strengths, []
    for phase in trajectory.phases:
        value = strengths.value_of(phase.penalty.strength, data)
        # The start counts with the first strength.
        values += [value] * (phase.n_updates + (not values))
    attributes = {
        **data.names,
        "objective_path_": run.objective_path,
        "train_path_": run.train_path,
        f"{strengths.name}_path_": np.array(values),
        "n_iter_": trajectory.n_updates,
        "iteration_": trajectory.n_updates,
        **estimator._recorded(coef_path, intercept_path, run),
    }
    if not (run.estimates or run.computed):
        return attributes
    order = TopologicalSorter()
    for estimate in ESTIMATES.values():
        order.add(estimate.name, *estimate.after)
    for name in order.static_order():
        if name in run.computed:
            computed = _first_rows(run.computed[name], trajectory.n_updates + 1)
            attributes.update(computed)
        elif ESTIMATES[name].is_on(estimator):
            attributes.update(ESTIMATES[name].read(run))
    return attributes


def _first_rows(attributes, n_rows):
    """Attributes with the paths of a longer record cut to their first rows."""

    def first(name, value):
        if name.endswith("_path_") and isinstance(value, np.ndarray):
            return value[:n_rows].copy()
        return value.first(n_rows) if isinstance(value, ArrayPath) else value

    return {name: first(name, value) for name, value in attributes.items()}
