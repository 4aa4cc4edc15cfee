"""The terms of runs in stages: their price, loss, and what ends them."""

import warnings
from math import ceil

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from .._compat import _num_samples
from .._estimator.data.checks import sum_duplicates
from .._estimator.delegation import samplers_of
from .._estimator.estimates.terms import Limit, Price, RunTerms
from ..optim.cox import Cox
from ..optim.losses import Logistic, Multinomial
from .data import FitParams, check_data, check_enough
from .fits import StagedFit
from .losses import LogLoss


class StagedTerms(RunTerms):
    """The terms of runs in stages."""

    # A stage is a fit of a model and its folds.
    growth = 1.1

    def __init__(self, model):
        super().__init__(model)
        self.adapter = model._adapter()

    @property
    def has_steady_gains(self):
        return self.adapter.has_steady_gains

    def price(self, n_rows, n_columns, n_outputs):
        adapter = self.adapter
        n_stages, n_first = adapter.n_planned(), adapter.n_next(1)
        if adapter.patience is not None:
            # Patience ends most runs after some times as many stages.
            n_stages = min(n_stages, 6 * adapter.patience)
        start, stage = adapter.expected_seconds(n_rows, n_columns)
        stage *= n_outputs if adapter.grows_by_class else 1
        # The first update has all stages if a fit cannot be continued.
        return Price(start, n_first * stage, ceil(n_stages / n_first))

    def patience(self, record=None):
        return self.adapter.patience

    def loss(self, X, y):
        info, _ = check_data(self.model, self.adapter, X, y)
        if info.loss.couples_rows:  # whatever is predicted
            return Cox(info.loss.ties)
        if info.loss != LogLoss():
            return info.loss
        # As other classifiers name it.
        return Logistic() if len(info.classes) == 2 else Multinomial()

    def query_loss(self, measure):
        """The loss of a ranker by a measure such as "ndcg@5"."""
        return self.adapter.query_loss(measure)

    def check_loss_chooses(self):
        adapter = self.adapter
        if self.model.judge is not None:
            return
        if (unnamed := adapter.unnamed_loss()) is not None:
            name, value = unnamed
            raise ValueError(
                f"{type(adapter.estimator).__name__} has {name}={value!r}, a loss "
                "whose values are unknown, so it cannot choose a number of "
                f"{adapter.unit}: set criterion to a scorer, such as "
                "criterion='neg_mean_absolute_error', or make_scorer of a function."
            )

    def check_data(self, X, y, sample_weight=None):
        adapter = self.adapter
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        _, y = check_data(self.model, adapter, X, y)
        if adapter.ranks:  # it cannot be fitted without its queries
            return
        params, X = FitParams({}, weights).check(_num_samples(y)), sum_duplicates(X)
        one = StagedFit.begin(self.model.estimator, adapter, X, y, params, held_out=X)
        with warnings.catch_warnings(action="ignore"):
            one.grow(adapter.n_next(1))
        check_enough(y)

    def parameters_at(self, record, t):
        if self.adapter.count is None:
            return {}
        return {self.model._count_name(self.adapter): t}

    def limit(self, record):
        adapter, n_planned = self.adapter, self.adapter.n_planned()
        if record.n_iter < n_planned or not adapter.is_open_ended:
            return None
        name = self.model._count_name(adapter)
        return Limit(name, f"{name}={n_planned} may be too small", adapter.unit)

    def why_worse(self, X, y):
        """Why no stage may be better than a constant, and what to do."""
        estimator = self.model.estimator
        if not isinstance(estimator, Pipeline):
            return self.adapter.why_worse(X, y)
        if samplers_of(estimator) and is_classifier(self.model):
            return (
                "Samplers change the class shares and thus the probabilities: set "
                "criterion to a scorer, such as criterion='balanced_accuracy'."
            )
        return self.adapter.why_worse(None, y)
