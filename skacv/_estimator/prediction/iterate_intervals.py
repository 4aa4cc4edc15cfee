"""Intervals for the coefficients of the iterates of a run, valid for all at once."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..._typing import RandomState
from ...risk.inference.jackknife import JackknifedPath, paths_without
from ..data.checks import validate_groups
from ..data.training_data import check_usable
from ..devices import of_record
from ..estimates.left_out import kept_run
from ..parameters import takes_coverage
from .debiasing import places_of_columns
from .inference import check_coverage

# The fewest groups of rows whose spread says something of the errors.
FEWEST_GROUPS = 5


class IterateIntervals:
    """Intervals for iterates of a linear model with a smooth loss and penalty."""

    @takes_coverage
    @of_record
    def coef_path_interval(
        self,
        columns: ArrayLike | None = None,
        coverage: float = 0.95,
        *,
        groups: ArrayLike | None = None,
        n_groups: int = 200,
        simultaneous: bool = True,
        random_state: RandomState = 0,
    ) -> np.ndarray:
        """Confidence intervals for the coefficients of every iterate of the run.

        An interval is for the coefficient of the same iterate of the run on infinitely
        many such rows, with the penalty and the steps of this run. Together they hold
        for all iterates, and so for one that the data have chosen, such as
        ``best_iter_`` of a stopping estimator. What penalty and early stopping have
        taken from the true coefficients, they do not give back:
        :meth:`coef_interval` does.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all. A name may be "intercept".
        coverage : float, default=0.95
            Nominal probability that the intervals of a coefficient contain those of all
            iterates.
        groups : array-like of shape (n_samples,), default=None
            Rows that depend on each other, by the label of their group: whole groups
            are left out. None means independent rows.
        n_groups : int, default=200
            Without ``groups``, rows are left out in so many random groups of about
            equal size, or one by one if there are fewer.
        simultaneous : bool, default=True
            False gives shorter intervals, of which each holds for an iterate that is
            fixed beforehand.
        random_state : int, RandomState instance or None, default=0
            Controls random groups, and the draws of largest deviations.

        Returns
        -------
        ndarray of shape (n_iter_ + 1, n_columns, 2) or \
(n_iter_ + 1, n_columns, n_targets, 2)
            Lower and upper ends. They are valid if there are many more rows (or groups)
            than columns. The model need not be true, and variances may be unequal.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), the fit had no ``keep_data=True``, the loss or
            the penalty has kinks (as that of a lasso), there are fewer than five
            groups, or the run cannot be repeated without some rows.

        Notes
        -----
        With b_t^(g) the iterates of the run without group g, one of G, the covariance
        matrix of b_t is estimated by the jackknife, (G - 1) / G times the sum of the
        products of deviations of b_t^(g) from their mean. It needs no inverse. All
        iterates deviate from those of the population like one Gaussian process [1]_,
        whose largest deviation over the iterates, in standard errors, is drawn with
        that covariance; its quantile takes the place of that of Student's distribution
        with G - 1 degrees of freedom.

        References
        ----------
        .. [1] Li and Giessing (2026), "Statistical inference on gradient flows",
               arXiv:2606.01257.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> ridge = IterativeRidge(0.0, max_iter=200, keep_data=True)
        >>> model = TrajectoryEarlyStoppingCV(ridge).fit(X, y)
        >>> intervals = model.estimator_.coef_path_interval(["bmi", "s5"])
        >>> intervals[model.best_iter_].shape
        (2, 2)
        """
        check_coverage(coverage)
        _check_is_smooth(self)
        record, rng = self.record_, check_random_state(random_state)
        data = record.data
        chosen = places_of_columns(self, columns)
        groups = _groups_of_rows(data, groups, n_groups, rng)
        trajectory = kept_run(record, self.n_iter_)
        rule = self._spec().refit(data)
        blocks = paths_without(data.problem, trajectory, rule, groups)
        without = np.concatenate(
            [_passed(data, *block)[:, chosen] for block in blocks], axis=-1
        )
        coef, intercept = data.coefficients(trajectory.coef)
        coef = coef[:, None] if coef.ndim == 2 else coef
        intercept = intercept.reshape(len(coef), -1, 1)
        coef = np.moveaxis(np.concatenate([coef, intercept], axis=2), 2, 1)
        path = JackknifedPath(coef[:, chosen].astype(np.float64), without)
        ends = path.interval(coverage, simultaneous, rng)
        return ends[:, :, 0] if data.has_flat_predictions else ends


def _check_is_smooth(fitted):
    """Raise if it is not fitted, has no data, or is no smooth function of weights."""
    check_usable(fitted)
    if fitted.record_.data is None:
        fitted._check_has_record()
        raise ValueError(
            "Intervals for iterates need keep_data=True: fit "
            f"{type(fitted).__name__}(keep_data=True), alone or as estimator of "
            "TrajectoryEarlyStoppingCV."
        )
    problem = fitted.record_.data.problem
    if problem.n_single < len(problem.target):
        raise ValueError(
            "Intervals for iterates need the rows, of which a summary has sums alone."
        )
    if not all(phase.penalty.is_linear for phase in fitted.record_.phases):
        raise ValueError(
            "Intervals for iterates need a penalty without kinks: none, or l2. For a "
            "lasso there is coef_interval, at an iterate that is fixed beforehand."
        )


def _groups_of_rows(data, groups, n_groups, rng):
    """The number of the group of every row of the problem, without gaps."""
    n_rows = len(data.problem.target)
    if groups is not None:
        labels = np.asarray(validate_groups(groups, data.n_samples))[data.rows]
        numbers = np.unique(labels, return_inverse=True)[1]
    else:
        if not isinstance(n_groups, Integral) or n_groups < FEWEST_GROUPS:
            raise ValueError(
                f"n_groups must be an integer of at least {FEWEST_GROUPS}, got "
                f"{n_groups!r}."
            )
        numbers = rng.permutation(np.arange(n_rows) % min(n_groups, n_rows))
    if numbers.max() + 1 < FEWEST_GROUPS:
        raise ValueError(
            f"Intervals for iterates need at least {FEWEST_GROUPS} groups of rows, got "
            f"{numbers.max() + 1}."
        )
    return numbers


def _passed(data: Any, coef: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Coefficients of replicas as of the columns that were passed, intercepts last.

    Shapes: coef (n_iterates, n_columns, n_outputs, n_replicas), shift (n_iterates,
    n_outputs, n_replicas); returned (n_iterates, n_features + 1, n_outputs,
    n_replicas).
    """
    n_iterates, _, n_outputs, n_replicas = coef.shape
    outputs = []
    for k in range(n_outputs):
        flat = np.moveaxis(coef[:, :, k], 2, 1).reshape(n_iterates * n_replicas, -1)
        passed = data.without_rows(flat, shift[:, k].reshape(-1), k)
        together = np.column_stack(passed)
        outputs.append(together.reshape(n_iterates, n_replicas, -1))
    return np.moveaxis(np.stack(outputs, axis=-1), 1, -1)
