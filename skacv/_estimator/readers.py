"""The table of estimates, and the walk that reads them from a finished run.

An estimate is one entry of ``ESTIMATES``. From there it is a fitted attribute of every
estimator that switches it on, a criterion of :class:`TrajectoryEarlyStoppingCV`, and
a line of :class:`RiskPathDisplay`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from ..optim.trajectory import Trajectory
from .data import TrainingData
from .folds import ShuffledFolds
from .left_out import (
    FEWEST_ROWS,
    read_folds,
    read_leave_one_out,
    residuals_of_rows_left_out,
    rows_to_choose_by,
)
from .memory_matrix import (
    has_memory_matrix,
    read_memory_matrix,
    residuals_of_memory_matrix,
    whatever_it_costs,
)
from .parameters import plain


@dataclass(frozen=True)
class FinishedRun:
    """What an estimate is read from.

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
        Rows to fit on and rows to judge by; none without ``cv``.
    carried : LabelsAndFolds or None
        What has run beside, for leave-one-out and folds.
    best : int or None
        The best iterate, where the run was judged while it went on.
    known : dict of dict
        By the name of an estimate, its attributes as they were read from a longer
        record of this run, or the same.
    """

    estimator: Any
    trajectory: Trajectory
    data: TrainingData
    folds: list[tuple[np.ndarray, np.ndarray]]
    carried: Any = None
    best: int | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def train_path(self) -> np.ndarray:
        """Mean cost of every iterate on the training rows, (n_iter + 1,)."""
        return self.data.problem.average_costs(self.trajectory.predictor)


@dataclass(frozen=True)
class Estimate:
    """A way to estimate what every iterate costs on unseen rows.

    Parameters
    ----------
    name : str
        As a criterion, and the beginning of its fitted attributes.
    label : str
        In figures.
    read : callable
        ``read(run)`` takes a :class:`FinishedRun` and gives a dict of fitted
        attributes: ``{name}_path_`` and ``{name}_se_path_``, each of shape
        (n_iter + 1,), smaller is better; ``{name}_prediction_path_`` (n_iter + 1,
        n_held_out) and ``{name}_indices_`` where rows are held out; any others. It
        is empty where the run has no such estimate.
    parameter : str, default=None
        The estimator's parameter that switches it on. False and None are off; at
        "auto" it is switched off while another criterion is asked for. None is for
        what costs nothing: it is read from every run.
    default : callable, default=None
        ``default(estimator, sample_weight)``, what the parameter becomes where it
        says None and the criterion needs it.
    sample : callable, default=None
        ``sample(estimator, X, y, n_rows)``, what the parameter becomes where it says
        "auto" and this estimate is asked for as the criterion: as many of the n_rows
        rows of positive weight as it takes to choose by.
    limits : str, default=""
        A sentence that says what it is limited to, for errors.
    residuals : callable, default=None
        ``residuals(estimator, t)``, the held-out residuals of iterate t of a fitted
        regressor, (n_held_out,) or (n_held_out, n_targets), where prediction
        intervals may be made from them.
    applies : callable, default=None
        ``applies(estimator)``, whether runs of the estimator have such an estimate.
        Where they have not, "auto" is off. None: they all have.
    stage : float, default=2.0
        By what factor a run in stages grows at least before the estimate is read again:
        by two where the whole record is read anew, by less where it is read alongside.
    after : tuple of str, default=()
        Names of estimates that are read before it because it takes over their work.
    from_moments : bool, default=False
        Whether it needs no single rows: what is read is the same, to rounding, where
        other rows stand for those that stay, or go, together in all folds, if both
        have the same weight, means and second moments of [X y].
    from_summary : bool, default=False
        Whether it needs, besides moments, a random sample of single rows only: those
        that ``run.data.problem.n_single`` counts.
    is_rotation_invariant : bool, default=False
        Whether it is the same in any orthonormal basis of the coefficients. While one
        that is on is not, a run is on the columns of X.
    """

    name: str
    label: str
    read: Callable[[FinishedRun], dict[str, Any]]
    parameter: str | None = None
    default: Callable[[Any, Any], Any] | None = None
    sample: Callable[[Any, Any, Any, int], Any] | None = None
    limits: str = ""
    residuals: Callable[[Any, int], np.ndarray] | None = None
    applies: Callable[[Any], bool] | None = None
    stage: float = 2.0
    after: tuple[str, ...] = ()
    from_moments: bool = False
    from_summary: bool = False
    is_rotation_invariant: bool = False

    @property
    def path(self) -> str:
        """The fitted attribute with the estimate of every iterate."""
        return f"{self.name}_path_"

    @property
    def se_path(self) -> str:
        """The fitted attribute with its standard errors."""
        return f"{self.name}_se_path_"

    @property
    def predictions(self) -> str:
        """The fitted attribute with held-out predictions of every iterate."""
        return f"{self.name}_prediction_path_"

    @property
    def indices(self) -> str:
        """The fitted attribute with the rows that these are for."""
        return f"{self.name}_indices_"

    def is_offered_by(self, estimator: Any) -> bool:
        """Whether the estimator can be told to compute it."""
        return self.parameter is None or self.parameter in _parameters(estimator)

    def check_offered(self, estimator: Any, asked: str) -> None:
        """Raise where the estimator cannot be told to compute it.

        Parameters
        ----------
        estimator : estimator
        asked : str
            What asks for it, for the message.

        Raises
        ------
        ValueError
        """
        if not self.is_offered_by(estimator):
            raise ValueError(
                f"{asked} needs {self.path}, which {type(estimator).__name__} does not "
                f"have. {self.limits}".rstrip()
            )

    def setting(self, estimator: Any) -> Any:
        """What the estimator's parameter says; False where it has no such one."""
        if self.parameter is None:
            return True
        return plain(_parameters(estimator).get(self.parameter, False))

    def is_on(self, estimator: Any) -> bool:
        """Whether the estimator is told to compute it."""
        setting = self.setting(estimator)
        if setting == "auto" and self.applies is not None:
            return self.applies(estimator)
        return setting is not None and setting is not False


def _parameters(estimator):
    return estimator.get_params(deep=False)


# In the order in which results and figures list them.
ESTIMATES = {
    estimate.name: estimate
    for estimate in (
        Estimate(
            name="risk",
            label="memory matrix",
            read=read_memory_matrix,
            parameter="risk",
            limits="The memory matrix is of linear models whose updates have "
            "derivatives.",
            sample=whatever_it_costs,
            residuals=residuals_of_memory_matrix,
            applies=has_memory_matrix,
            # Linear updates: it takes the eigenvalues that leave-one-out has computed.
            after=("loo",),
            from_summary=True,
            is_rotation_invariant=True,
        ),
        Estimate(
            name="loo",
            label="leave-one-out",
            read=read_leave_one_out,
            parameter="loo",
            sample=rows_to_choose_by,
            limits=f"Leave-one-out takes at least {FEWEST_ROWS} rows (of positive "
            "weight).",
            residuals=residuals_of_rows_left_out,
            from_summary=True,
            is_rotation_invariant=True,
        ),
        Estimate(
            name="cv",
            label="cross-validation",
            read=read_folds,
            parameter="cv",
            default=ShuffledFolds.of,
            stage=1.25,
            from_moments=True,
            from_summary=True,
            is_rotation_invariant=True,
        ),
    )
}


def register_estimate(estimate: Estimate) -> None:
    """Add an estimate to the table.

    Linear models then read it, :class:`~skacv.TrajectoryEarlyStoppingCV` takes its name
    as ``criterion``, and :class:`~skacv.RiskPathDisplay` draws it. Call this where
    a module is imported, so that worker processes have it too.

    Parameters
    ----------
    estimate : Estimate

    Raises
    ------
    ValueError
        If the name already is a criterion, or ``after`` names no estimate.
    """
    if estimate.name in {"auto", *ESTIMATES, *get_scorer_names()}:
        raise ValueError(f"{estimate.name!r} already is the name of a criterion.")
    unknown = [name for name in estimate.after if name not in ESTIMATES]
    if unknown:
        raise ValueError(f"after={unknown}: there are no such estimates.")
    ESTIMATES[estimate.name] = estimate


def unregister_estimate(name: str) -> None:
    """Take an estimate off the table again.

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
    """Everything that a run says, as fitted attributes.

    Parameters
    ----------
    run : FinishedRun

    Returns
    -------
    dict
    """
    attributes = read_paths(run)
    order = TopologicalSorter({e.name: e.after for e in ESTIMATES.values()})
    for name in order.static_order():
        if name in run.known:
            attributes.update(
                _first_rows(run.known[name], run.trajectory.n_updates + 1)
            )
        elif ESTIMATES[name].is_on(run.estimator):
            attributes.update(ESTIMATES[name].read(run))
    return attributes


def _first_rows(attributes, n_rows):
    """Attributes, and of paths among them so many rows."""
    return {
        name: value[:n_rows].copy() if name.endswith("_path_") else value
        for name, value in attributes.items()
    }


def read_paths(run):
    """What was recorded, in scikit-learn's shapes.

    Parameters
    ----------
    run : FinishedRun

    Returns
    -------
    dict
    """
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    coef_path, intercept_path = data.coefficients(trajectory.coef)
    strengths = [(p.n_updates, p.penalty.strength) for p in trajectory.phases]
    values = [
        estimator._value_of(strength, data)
        for n_updates, strength in [(1, strengths[0][1]), *strengths]
        for _ in range(n_updates)
    ]
    return {
        **data.names,
        **estimator._recorded(coef_path, intercept_path, run),
        "objective_path_": trajectory.objective,
        "train_path_": run.train_path,
        f"{estimator._strength_name}_path_": np.array(values),
        "n_iter_": trajectory.n_updates,
        "iteration_": estimator._iterate_in_use(run),
    }
