"""What an adapter makes of a fitted estimator, and what adapters share."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..risk.converged.hinge import HingeModel, support_stays
from ..risk.converged.newton import ConvergedModel, infinitesimal_jackknife, newton_step
from ..risk.converged.randomised import randomized_leverages

# The approximations of a loss with a curvature, of one with coupled outputs, and
# of the hinge.
COUPLED = {
    "alo": newton_step,
    "newton": newton_step,
    "ij": infinitesimal_jackknife,
}
CURVED = {**COUPLED, "randomized": randomized_leverages}
HINGE = {"alo": support_stays}


class FittedModel(NamedTuple):
    """A fitted estimator as what it minimised.

    Attributes
    ----------
    outputs : list of ConvergedModel or HingeModel
        One for every output that was fitted on its own.
    approximations : dict of str to callable
        By name, what can be done without refits: a function of one of the outputs;
        of "randomized", and of its ``probes``.
    mean_function : callable
        From the linear predictor to what the estimator predicts.
    """

    outputs: list[ConvergedModel | HingeModel]
    approximations: dict[str, Callable]
    mean_function: Callable = np.asarray


def coefficients(estimator, n_outputs):
    """(n_features, n_outputs) and (n_outputs,), as far as y agrees with them."""
    intercept = np.ravel(estimator.intercept_).astype(float)
    coef = np.asarray(dense(estimator.coef_), dtype=float)
    coef = coef.reshape(-1, coef.shape[-1])
    if len(coef) != n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the model was fitted with {len(coef)}."
        )
    return coef.T, np.broadcast_to(intercept, n_outputs)


def dense(array):
    """A sparse array as a dense one."""
    return array.toarray() if sparse.issparse(array) else array
