"""Adapters of scikit-learn's gradient boosting, which use its private attributes.

scikit-learn has no public way to continue a sum of trees, so a new version may break:

* ``_bin_data`` and ``_raw_predict`` of histograms: a fit that continues bins the rows
  and sums all earlier trees again. Without them growing is slow, not wrong.
* ``_predictors``, ``_staged_raw_predict``, ``_baseline_prediction``,
  ``_raw_predict_init`` and ``_loss``: predictions of stages.

``tests/staged/test_gradient_boosting.py`` checks each of them.
"""

from functools import partial
from itertools import islice

import numpy as np
from sklearn import ensemble
from sklearn.base import is_classifier

from .._estimator.data.checks import check_columns, shape_of
from ..optim.blocks import tree_threads_for
from ..optim.losses import Pinball
from .adapter import WarmStart, check_all_but_categories
from .losses import AbsoluteError, Exponential, judged_by


class Boosting(WarmStart):
    """Boosted trees, whose predictions continue the sums of earlier trees."""

    grows_by_class, has_steady_gains = True, True

    def predictions(self, X, first, last, former_sums=None):
        begin = 0 if former_sums is None else first
        part = self.slice_stages(begin, last)
        if former_sums is not None:  # the initial values of the sums
            part._baseline_prediction = former_sums  # of histograms
            part._raw_predict_init = lambda X: former_sums.copy()  # of plain trees
        sums = list(islice(part._staged_raw_predict(X), first - begin, None))
        loss = self.estimator._loss
        if is_classifier(self.estimator):
            predictions = np.stack([loss.predict_proba(values) for values in sums])
        else:
            predictions = loss.link.inverse(np.stack(sums)[:, :, 0])
        return predictions, sums[-1]


class HistBoosting(Boosting):
    """Boosted trees on binned columns."""

    classes = (
        ensemble.HistGradientBoostingRegressor,
        ensemble.HistGradientBoostingClassifier,
    )
    count = "max_iter"
    members = "_predictors"
    early_stopping = {"early_stopping": False}
    balances_weights = False
    seconds_to_start, seconds_of_stage = 1e-6, 4e-8  # columns are binned first

    def check_rows(self, X):
        categories = self.estimator.categorical_features
        if categories is None:
            check_columns(X)
        elif isinstance(categories, str):  # "from_dtype"
            check_all_but_categories(X)

    def grow(self, n_stages, X, y, params):
        # Every fit would bin the rows, and sum over all earlier trees. The first one
        # does both; later ones read its results, and add to the sums in place.
        boosted = self.estimator.set_params(max_iter=n_stages)
        read_again = "_bin_data", "_raw_predict"
        for name in read_again:
            setattr(boosted, name, partial(self._first_result, name))
        try:
            with tree_threads_for(shape_of(X)):
                boosted.fit(X, y, **params)
        finally:
            for name in read_again:
                delattr(boosted, name)

    def predictions(self, X, first, last, former_sums=None):
        with tree_threads_for(shape_of(X)):
            return super().predictions(X, first, last, former_sums)

    def _first_result(self, name, *args, **settings):
        """The result of the first call of a method of the class."""
        results, boosted = vars(self).setdefault("_results", {}), self.estimator
        if name not in results:
            result = getattr(type(boosted), name)(boosted, *args, **settings)
            results[name] = result, boosted._bin_mapper
        result, boosted._bin_mapper = results[name]
        return result

    @property
    def n_stages(self):
        return self.estimator.n_iter_

    def drop_rows(self):
        return HistBoosting(self.estimator)


class PlainBoosting(Boosting):
    """Boosted trees on the columns as they are."""

    classes = ensemble.GradientBoostingRegressor, ensemble.GradientBoostingClassifier
    least_range = 1e-7
    early_stopping = {"n_iter_no_change": None}
    regression = {
        "absolute_error": judged_by(AbsoluteError),
        # Its threshold is another at every stage.
        "huber": judged_by(AbsoluteError),
        "quantile": judged_by(Pinball, level=("alpha", 0.9)),
    }
    classification = {"exponential": judged_by(Exponential)}

    def at(self, t):
        stopped, boosted = super().at(t), self.estimator
        stopped.n_estimators_ = t
        stopped.train_score_ = boosted.train_score_[:t]
        if hasattr(boosted, "oob_scores_"):
            stopped.oob_improvement_ = boosted.oob_improvement_[:t]
            stopped.oob_scores_ = boosted.oob_scores_[:t]
            stopped.oob_score_ = stopped.oob_scores_[-1]
        return stopped
