"""Boosted trees whose steps grow, so that long runs end sooner."""

from sklearn import ensemble

# Up to so many trees all steps are equal: where rows are noisy the best number is less.
# Later ones are in proportion to the number of the tree, up to so many times the first.
# Long runs on 16 real tables were shorter than with 200 and 10, at the same loss; with
# 50 and 5 some losses were larger.
N_EQUAL, MOST_GROWTH = 100, 5.0


class GrowingStep:
    """Makes the learning rate of boosted trees grow with the number of trees.

    The log loss of separable classes falls for ever, as one over the sum of all steps:
    longer ones are as many trees less, and are no risk where the gradient has become
    small (Nacson, Lee, Gunasekar, Savarese, Srebro and Soudry 2019, "Convergence of
    gradient descent on separable data", AISTATS). Targets without noise are alike.
    """

    # Whether trees are being grown: otherwise the parameter is what was set.
    _is_growing = False

    @property
    def learning_rate(self):
        """The learning rate; in ``fit`` that of the tree that is grown."""
        if not self._is_growing:
            return self._learning_rate
        # The tree that is grown is counted; parameters are checked before the first.
        growth = len(getattr(self, "_predictors", ())) / N_EQUAL
        return self._learning_rate * min(max(growth, 1), MOST_GROWTH)

    @learning_rate.setter
    def learning_rate(self, value):
        self._learning_rate = value

    def fit(self, X, y, sample_weight=None, **params):
        """Fit, or go on growing with ``warm_start=True``, as the class does."""
        self._is_growing = True
        try:
            return super().fit(X, y, sample_weight, **params)
        finally:
            del self._is_growing


class GrowingStepRegressor(GrowingStep, ensemble.HistGradientBoostingRegressor):
    """``HistGradientBoostingRegressor`` with steps that grow after some trees."""


class GrowingStepClassifier(GrowingStep, ensemble.HistGradientBoostingClassifier):
    """``HistGradientBoostingClassifier`` with steps that grow after some trees."""
