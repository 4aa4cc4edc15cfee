"""The transformer of tables."""

from sklearn.base import BaseEstimator, TransformerMixin

from .._estimator.parameters import set_parameters


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers of a table."""

    def __init__(self, categories="onehot", *, min_frequency="auto", max_levels=50):
        set_parameters(self, locals())
