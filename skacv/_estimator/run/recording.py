"""The base class that TrajectoryEarlyStoppingCV expects of an estimator."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from ..._warnings import warn
from ...records.run import Run
from ..data.checks import validate_target
from ..data.training_data import check_usable
from ..devices import of_record
from ..estimates.fitted_state import MOST_KEPT, HoldsRecord, check_iterate
from ..estimates.held_out import row_losses
from ..estimates.terms import RunTerms
from .advice import instead_of
from .progress import advance


class RecordsTrajectory(HoldsRecord):
    """Base class of estimators that record their iterates and the risk of each.

    :class:`~skacv.TrajectoryEarlyStoppingCV` accepts every estimator of such a class.
    A subclass, which also derives from scikit-learn's ``BaseEstimator``, defines
    :meth:`begin` and :meth:`predict`. All else is inherited.

    Parameters switch the estimates on: the class has ``loo``, ``risk`` or ``cv`` for
    each of these estimates that it computes, and False (None for ``cv``) switches an
    estimate off. Those that are on are in the ``estimates`` of the record, by name.
    Held-out predictions are those of ``predict``; those of a classifier may have a
    column for each class, and then are those of ``predict_proba``.

    Attributes
    ----------
    path_loss : Loss or None
        A class attribute: the loss of rows of which the paths are means, such as
        ``skacv.optim.losses.SquaredError()``. Estimators of the same loss are compared
        by their paths, and blended.

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

    # The loss of rows of which paths are means, as far as it is known before a run:
    # estimators of the same loss are compared by their paths, and blended.
    path_loss: Any = None
    # What a stopping estimator asks of its runs.
    _terms_type = RunTerms

    def _params_of_loss(self, loss):
        """Parameters with which it minimises a loss of a level; None if it cannot."""
        return None

    # Methods that every class defines.

    @abstractmethod
    def begin(self, X: Any, y: Any, **params: Any) -> Run:
        """Begin a run, which goes on and is read as one likes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Further arguments of the class.

        Returns
        -------
        Run
        """

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the iterate in use, ``record_.iterate``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """

    # Methods with a default.

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Run the algorithm to its end, and record every iterate with its estimates.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            As of :meth:`begin`.

        Returns
        -------
        self : object
            Fitted estimator, at the iterate that the run has left in use.
        """
        run = self.begin(X, y, **params)
        run.go_on()
        return self.take(run.end())

    def fit_up_to(
        self,
        n_updates: int,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        **params: Any,
    ) -> bool:
        """Start or continue a run, up to a given total number of updates.

        .. deprecated:: 0.2
           It will be removed in 0.3. Hold the run instead: ``run = model.begin(X, y)``,
           ``run.go_on(n_updates)``, ``model.take(run.record())``.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As of :meth:`begin`. The same objects continue the run, if the parameters of
            the estimator have not changed.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        warn(
            "fit_up_to is deprecated, and will be removed in skacv 0.3: hold the run, "
            "run = model.begin(X, y), run.go_on(n_updates), and read it by "
            "model.take(run.record()).",
            FutureWarning,
        )
        passed = {"X": X, "y": y, **params}
        if sample_weight is not None:
            passed["sample_weight"] = sample_weight
        parameters = self.get_params(deep=True)
        held = vars(self).pop("_held_run", None)  # an error may leave it half done
        if not (held and all(map(_are_identical, held[1:], (passed, parameters)))):
            held = self.begin(**passed), passed, parameters
        is_complete = advance(self, held[0], n_updates)
        self.take(held[0].record())
        self._held_run = held
        return is_complete

    def recorded_iterations(self) -> np.ndarray:
        """Iterates available from :meth:`at_iteration`.

        Returns
        -------
        ndarray of int
            Rows of the paths, in order: all, or after :meth:`drop_record` only the one
            in use.
        """
        check_usable(self)
        record = self.record_
        if record.iterates is None:
            return np.array([record.iteration])
        if record.iterates.kept is None:
            return np.arange(record.n_iter + 1)
        return record.iterates.kept

    @of_record
    def at_iteration(self, t: int) -> Self:
        """A fitted copy that predicts with iterate ``t``.

        The copy shares the recorded paths; nothing is refitted.

        Parameters
        ----------
        t : int
            Index of the iterate, from 0 to ``n_iter_``; negative numbers count from the
            end.

        Returns
        -------
        estimator of the same class

        Raises
        ------
        TypeError
            If t is not an integer.
        ValueError
            If there is no such iterate, or it was not kept (see
            :meth:`recorded_iterations`).
        """
        t, stopped = check_iterate(self, t), copy(self)
        stopped.record_ = self._record_at(self.record_, t)
        stopped._keep_predictions(MOST_KEPT)
        return stopped

    def _record_at(self, record, t):
        """A record with iterate t in use."""
        return record.at(t)

    def _validate_target(self, y):
        """Targets that are passed besides rows, checked: labels or numbers."""
        return validate_target(y, is_classifier(self))

    def _labels_to_split_by(self, y):
        """Targets as splitters read them."""
        return y

    def _target(self, y):
        """Targets as the loss takes them, (n_samples, n_outputs)."""
        return y.astype(np.float64, copy=False).reshape(len(y), -1)

    def _row_losses(self, target, predictions, weights=None):
        """Losses of rows by every iterate, from their held-out predictions.

        Shapes: target (n_rows, n_outputs), predictions (n_iterates, n_rows, ...),
        weights (n_rows,), returned (n_iterates, n_rows).
        """
        return row_losses(self.record_.loss, target, predictions, weights)


def _are_identical(former, passed):
    """Whether two dicts have the very same values by name."""
    is_same = former.keys() == passed.keys()
    return is_same and all(former[name] is passed[name] for name in former)


def evaluated_iterations(estimator):
    """Iterates that are chosen from, though a model may have grown to the best only."""
    evaluated = getattr(estimator.record_.iterates, "evaluated", None)
    return estimator.recorded_iterations() if evaluated is None else evaluated


def check_records_trajectory(estimator, owner, member=None):
    """Raise if an estimator does not record its trajectory."""
    missing = [name for name in ("begin", "predict") if not hasattr(estimator, name)]
    which = f"The member {member!r}" if member is not None else "The 'estimator'"
    raise ValueError(f"{which} of {owner} {instead_of(estimator, owner, missing)}")
