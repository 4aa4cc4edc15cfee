"""Estimators without stages, as members of comparisons: each is fitted once."""

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import QuantileRegressor

from .._compat import StrOptions
from .._estimator.estimates.fitted_state import LeaveOneOutAttributes
from .._estimator.parameters import set_parameters
from .._estimator.run.recording import RecordsTrajectory
from ..converged.fitted_models import is_supported
from ..optim.losses import Pinball
from .adapter import StagedAdapter, label_probabilities, response_of
from .adapters import half_deviance
from .estimator import Staged
from .fits import last_of
from .terms import StagedTerms


class OneFit(StagedAdapter):
    """Any estimator: its whole fit is the only stage."""

    count = None
    unit = "fits"
    # No number: TabICL takes a boolean only.
    grows_with = {"verbose": False}
    patience = None
    is_open_ended = False
    n_stages = 0

    def n_planned(self):
        return 1

    def regression_loss(self):
        if isinstance(self.estimator, QuantileRegressor):
            return Pinball(self.estimator.quantile)
        return half_deviance(self.estimator) or super().regression_loss()

    def params_of_loss(self, loss):
        # No parameter names its loss.
        if isinstance(self.estimator, QuantileRegressor):
            return {"quantile": loss.level} if isinstance(loss, Pinball) else None
        return super().params_of_loss(loss)

    def grow(self, n_stages, X, y, params):
        if not self.n_stages:
            self.estimator.fit(X, y, **params)
            self.n_stages = 1

    def at(self, t):
        return self.estimator

    def predictions(self, X, first, last, former_sums=None):
        values = getattr(self.estimator, response_of(self.estimator))(X)
        if isinstance(values, list):  # of several labels in a row
            values = label_probabilities(values, self.estimator.classes_)
        return np.stack([values] * (last - first)), None


class FittedOnce(Staged):
    """An estimator without stages; its copies on folds predict their held-out rows.

    Parameters
    ----------
    estimator : classifier or regressor, or Pipeline that ends in one
    cv, keep, judge, n_jobs, verbose :
        As in :class:`Staged`.
    """

    def _adapter(self):
        return OneFit(last_of(self.estimator))


class OnceTerms(StagedTerms):
    """The terms of a fit whose rows ``approximate_loo`` leaves out."""

    def leaves_one_out_cheaply(self, X, y):
        return True


class FittedToMinimum(LeaveOneOutAttributes, FittedOnce):
    """FittedOnce of a model of which ``approximate_loo`` knows what it minimises.

    Parameters
    ----------
    estimator, cv, keep, judge, n_jobs, verbose :
        As in :class:`FittedOnce`.
    loo : {"auto"} or bool, default="auto"
        Whether to leave every row out. "auto": if leave-one-out is the criterion.
    """

    _terms_type = OnceTerms
    _parameter_constraints = {
        **FittedOnce._parameter_constraints,
        "loo": [StrOptions({"auto"}), "boolean"],
    }

    def __init__(
        self,
        estimator,
        *,
        cv=None,
        keep="model",
        judge=None,
        n_jobs=None,
        verbose=False,
        loo="auto",
    ):
        set_parameters(self, locals())


def as_member(estimator):
    """An estimator without stages as FittedOnce; what is none is returned unchanged."""
    last = last_of(estimator)
    is_instance = hasattr(last, "get_params") and not isinstance(last, type)
    records = isinstance(last, RecordsTrajectory)
    if records or not is_instance or not (is_classifier(last) or is_regressor(last)):
        return estimator
    kind = FittedToMinimum if is_supported(type(last)) else FittedOnce
    return kind(estimator)
