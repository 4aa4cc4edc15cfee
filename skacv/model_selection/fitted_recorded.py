"""The objective of any linear model of this package whose run has converged."""

import numpy as np

from .._estimator.run.fit import linear_data
from .minimised import line_of, output_by_output


def recorded(estimator, X, y, weights):
    """The loss and the penalty of the iterate in use, as the run took them.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    list of ConvergedModel
    """
    target = estimator._target(y).astype(float, copy=False)
    line = line_of(estimator, X, target.shape[1])
    data = linear_data(estimator, *estimator._coded_samples(X, y, weights))
    # Rows of weight zero are not among the prepared ones.
    own_weights = np.zeros(len(weights))
    own_weights[data.rows] = data.problem.row_weights[:, 0]
    penalty = _penalty_in_force(estimator)
    if data.is_centered:
        # The run has no coefficient for the intercept, but refits centre anew: it
        # is a coefficient that the penalty spares.
        penalty = line.spared(penalty)
    stays = 1 - own_weights
    shares = 1 - stays * estimator._spec().refit(data).penalty_scale(stays)
    model = line.converged(target, own_weights, estimator._loss, penalty, shares)
    return output_by_output(model)


def _penalty_in_force(estimator):
    """That of the phase which led to the iterate in use."""
    ends = np.cumsum([phase.n_updates for phase in estimator._phases])
    return estimator._phases[np.searchsorted(ends, estimator.iteration_)].penalty
