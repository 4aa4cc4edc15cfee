"""The interface that TrajectoryEarlyStoppingCV expects of an estimator."""

from abc import abstractmethod
from types import FunctionType
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .advice import instead_of
from .held_out import HeldOutLosses


class Limit(NamedTuple):
    """A parameter that has ended a run, though updates might have gone on."""

    parameter: str
    advice: str
    unit: str = "updates"
    n_last: int = 0


class Price(NamedTuple):
    """Seconds that a run with five folds is expected to take, on one core."""

    start: float
    update: float
    n_updates: int

    @property
    def first(self):
        """Seconds until the first update has been evaluated."""
        return self.start + self.update

    @property
    def total(self):
        """Seconds of the whole run."""
        return self.start + self.n_updates * self.update


# Seconds to read, check and scale an entry of X.
SECONDS_TO_READ = 1e-7


@runtime_checkable
class RecordsTrajectory(Protocol):
    """Interface of estimators that record their iterates and estimate the risk of each.

    :class:`~skacv.TrajectoryEarlyStoppingCV` accepts any scikit-learn estimator
    (derived from ``BaseEstimator``, so that it can be cloned) with these methods. The
    estimators of skacv have them. A class that derives from this one implements
    ``fit``, ``predict`` and ``at_iteration``, and inherits simple versions of the
    others. Names with a leading underscore are hooks for the stopping estimator, not
    for users of the model; their X, y and sample_weight are those passed to ``fit``.

    Parameters switch the estimates on: the class has ``loo``, ``risk`` or ``cv`` for
    each of these estimates that it computes, and False (None for ``cv``) switches an
    estimate off. After ``fit`` there is ``n_iter_``, the index of the last iterate, and
    the fitted attributes of every estimate that is on: for ``loo``, ``loo_path_`` and
    ``loo_se_path_``, each of shape (n_iter_ + 1,), and for scorers
    ``loo_prediction_path_`` and ``loo_indices_``. Held-out predictions are those of
    ``predict``; those of a classifier may have a column for each class, and then are
    those of ``predict_proba``.

    See Also
    --------
    skacv.TrajectoryEarlyStoppingCV : Keeps the best iterate of such an estimator.

    Examples
    --------
    >>> from sklearn.linear_model import Lasso
    >>> from skacv import TrajectoryLasso
    >>> from skacv.model_selection import RecordsTrajectory
    >>> isinstance(TrajectoryLasso(), RecordsTrajectory)
    True
    >>> isinstance(Lasso(), RecordsTrajectory)
    False
    """

    # Methods that every class defines.

    @abstractmethod
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Run the algorithm, and record every iterate with its estimates.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Further arguments of the class.

        Returns
        -------
        self : object
        """

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the iterate in use, the last one after ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """

    @abstractmethod
    def at_iteration(self, t: int) -> Self:
        """A fitted copy that uses iterate ``t``.

        Parameters
        ----------
        t : int
            Row of the paths.

        Returns
        -------
        estimator of the same class
        """

    # Methods with a default.

    def recorded_iterations(self) -> np.ndarray:
        """Iterates available from :meth:`at_iteration`.

        Returns
        -------
        ndarray of int
            Rows of the paths, in order; by default all of them.
        """
        check_is_fitted(self)
        return np.arange(self.n_iter_ + 1)

    def fit_up_to(self, n_updates: int, X: Any, y: Any, **params: Any) -> bool:
        """Start a run, or continue it, up to a given total number of updates.

        With ``patience`` it is called repeatedly with larger numbers, on the same data.
        By default it makes the whole run at once.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            As for ``fit``.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        self.fit(X, y, **params)
        return True

    def _parameters_at(self, t: int) -> dict[str, Any]:
        """Values at an iterate of parameters that change along the run."""
        return {}

    def _left_to_compare(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> list[dict[str, Any]]:
        """Values of automatic parameters to compare on held-out rows."""
        return [{}]

    def _leaves_one_out_cheaply(self, X: Any, y: Any) -> bool:
        """Whether leave-one-out of every row is cheap, for any run."""
        return False

    def _default_patience(self) -> int | None:
        """Iterates without an improvement after which ``patience="auto"`` stops."""
        return None

    def _ended_by(self) -> Limit | None:
        """The parameter that has ended the run, for a warning that it is too small."""
        if not hasattr(self, "max_iter"):
            return None
        return Limit("max_iter", f"max_iter={self.max_iter} may be too small")

    def _price(self, n_rows: int, n_columns: int, n_outputs: int) -> Price:
        """The expected Price of a run to data of a shape."""
        seconds = SECONDS_TO_READ * n_rows * n_columns
        return Price(seconds, seconds * n_outputs, getattr(self, "max_iter", 100))

    def _check_data(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Raise the error that ``fit`` would raise on invalid data."""
        return  # not abstract

    def _loss_on(self, X: Any, y: Any) -> Any:
        """The loss of rows, to be compared with that of other estimators."""
        return None

    def _held_out_losses(self, name: str, y: Any) -> HeldOutLosses | None:
        """Losses of the held-out predictions of every iterate, row by row."""
        return None

    @staticmethod
    def _share_work(
        candidates: list[Any], X: Any, y: Any, sample_weight: Any = None
    ) -> None:
        """Share computations between fits to the same data; by default nothing."""
        return  # not abstract

    def _release(self) -> None:
        """Free memory that only further updates, or fits to the same data, need."""
        return  # not abstract


METHODS = [
    name
    for name, value in vars(RecordsTrajectory).items()
    if isinstance(value, FunctionType | staticmethod) and not name.startswith("__")
]


def evaluated_iterations(estimator):
    """Iterates that are chosen from, though a model may have grown to the best only."""
    recorded = estimator.recorded_iterations
    return getattr(estimator, "_evaluated_iterations", recorded)()


def check_records_trajectory(estimator, owner, member=None):
    """Raise if an estimator lacks the methods that early stopping needs."""
    missing = [name for name in METHODS if not callable(getattr(estimator, name, 0))]
    if missing:
        required = [m for m in missing if m in RecordsTrajectory.__abstractmethods__]
        which = f"The member {member!r}" if member is not None else "The 'estimator'"
        advice = instead_of(estimator, owner, required or missing)
        raise ValueError(f"{which} of {owner} {advice}")
