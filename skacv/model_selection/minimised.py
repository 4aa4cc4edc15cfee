"""From fitted coefficients to the model that they minimise: what adapters share."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..optim.arrays import design_of
from ..optim.constant import WithConstant
from ..optim.families import except_last
from ..optim.problem import Problem
from ..risk.converged.model import ConvergedModel


class Line(NamedTuple):
    """The linear predictors X coef + intercept of a fitted estimator.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_columns)
    coef : ndarray of shape (n_columns, n_outputs)
    intercept : ndarray of shape (n_outputs,) or None
        None if it was not fitted, or is the coefficient of a column of X.
    """

    X: np.ndarray | sparse.csr_matrix
    coef: np.ndarray
    intercept: np.ndarray | None

    def spared(self, penalty):
        """A penalty of the coefficients that leaves the intercept alone."""
        if self.intercept is None:
            return penalty
        return except_last(penalty, len(self.coef) + 1)

    def converged(self, target, weights, loss, penalty, penalty_shares=None):
        """A minimised objective.

        Parameters
        ----------
        target : ndarray of shape (n_rows, n_outputs)
        weights : ndarray of shape (n_rows,)
        penalty : Penalty
            Penalty on all coefficients, an intercept last, which is added to the
            weighted mean of the losses.
        penalty_shares : ndarray of shape (n_rows,), optional
            Those of the ConvergedModel; zeros by default.

        Returns
        -------
        ConvergedModel
        """
        design, coef = design_of(self.X), self.coef
        if self.intercept is not None:
            # The sum of the intercepts of several classes stays what the solver
            # left it at. Centring columns that not all classes use would make
            # another sum of it.
            free = penalty.is_free(np.vstack([coef, self.intercept]))
            is_centred = not loss.is_coupled or bool(free.all())
            design, coef = self._with_ones(is_centred)
        weights = (weights / weights.sum())[:, None]
        problem = Problem(design, target, weights, loss)
        if penalty_shares is None:
            penalty_shares = np.zeros(len(target))
        return ConvergedModel(problem, penalty, coef, penalty_shares)

    def _with_ones(self, is_centred):
        """The design with a column of ones, dense columns centred; coefficients."""
        X, intercept = self.X.astype(np.float64, copy=False), self.intercept
        if is_centred and not sparse.issparse(X):
            center = X.mean(axis=0)
            X, intercept = X - center, intercept + center @ self.coef
        return WithConstant(design_of(X)), np.vstack([self.coef, intercept])


def output_by_output(model):
    """The models of all outputs that were fitted on their own."""
    if model.problem.loss.is_coupled:
        return [model]
    return [model.output(k) for k in range(model.coef.shape[1])]


def chosen(estimator, name, default=None):
    """The value of a parameter that cross-validation has chosen, else the user's."""
    return getattr(estimator, f"{name}_", getattr(estimator, name, default))


def line_of(estimator, X, n_outputs):
    """The linear predictors of an estimator, as far as y agrees with them."""
    intercept = np.ravel(estimator.intercept_).astype(float)
    coef = np.asarray(dense(estimator.coef_), dtype=float)
    coef = coef.reshape(-1, coef.shape[-1])
    if len(coef) != n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the model was fitted with {len(coef)}."
        )
    # Estimators without that parameter have an intercept.
    has_intercept = getattr(estimator, "fit_intercept", True)
    intercept = np.broadcast_to(intercept, n_outputs) if has_intercept else None
    return Line(X, coef.T, intercept)


def dense(array):
    """A sparse array as a dense one."""
    return array.toarray() if sparse.issparse(array) else array
