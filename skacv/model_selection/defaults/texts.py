"""Codes of a table beside the tf-idf of its texts, and what members take of both."""

from copy import copy

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone

from ..._estimator.delegation import weights_for
from ..._estimator.parameters import set_parameters
from ...tables import TableEncoder


class CodesAndTfIdf(TransformerMixin, BaseEstimator):
    """The codes of a table and, as further columns, the tf-idf of its texts.

    So the members of a blend, which take codes or tf-idf, share one encoder.

    Parameters
    ----------
    encoder : TableEncoder
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(self, encoder):
        set_parameters(self, locals())

    @classmethod
    def of_fitted(cls, encoder):
        """The transformer with a fitted encoder."""
        step = cls(encoder)
        step.encoder_ = encoder
        return step

    @property
    def n_features_in_(self):
        """Number of columns of X."""
        return self.encoder_.n_features_in_

    @property
    def feature_names_in_(self):
        """Names of the columns of X, if they are strings."""
        return self.encoder_.feature_names_in_

    def fit(self, X, y=None, sample_weight=None):
        """Fit the encoder."""
        self.encoder_ = clone(self.encoder)
        self.encoder_.fit(X, **weights_for(self.encoder_, sample_weight))
        return self

    def transform(self, X):
        """The columns of some rows, sparse: (n_samples, n_codes + n_terms)."""
        return sparse.hstack(self.encoder_.codes_and_tf_idf(X), format="csr")

    def get_feature_names_out(self, input_features=None):
        """Names of the codes, then the terms of the texts."""
        encoder = copy(self.encoder_)
        if input_features is not None:  # any names will do
            vars(encoder).pop("feature_names_in_", None)
        names = encoder.get_feature_names_out(input_features)
        return np.array([*names, *encoder.term_names(input_features)], dtype=object)


class OfCodes(TransformerMixin, BaseEstimator):
    """A transformer of the first columns, which are codes; the others are left out.

    Parameters
    ----------
    n_codes : int
    transformer : transformer or None
        None: the codes themselves.
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(self, n_codes, transformer):
        set_parameters(self, locals())

    @classmethod
    def of_fitted(cls, n_codes, transformer):
        """The transformer with a fitted one, or None."""
        step = cls(n_codes, transformer)
        step.transformer_ = transformer
        return step

    def fit(self, X, y=None, sample_weight=None):
        """Fit the transformer to the codes."""
        self.transformer_ = None
        if self.transformer is not None:
            self.transformer_ = clone(self.transformer)
            weights = weights_for(self.transformer_, sample_weight)
            self.transformer_.fit(X[:, : self.n_codes].toarray(), y, **weights)
        return self

    def transform(self, X):
        """What the transformer makes of the codes of some rows."""
        codes = X[:, : self.n_codes].toarray()
        return (
            codes if self.transformer_ is None else self.transformer_.transform(codes)
        )

    def get_feature_names_out(self, input_features):
        """Names of what the transformer makes of the codes."""
        names = np.asarray(input_features, dtype=object)[: self.n_codes]
        if self.transformer_ is None:
            return names
        return self.transformer_.get_feature_names_out(names)


class TfIdfBesideColumns(TransformerMixin, BaseEstimator):
    """The tf-idf beside numbers of unit size and one-hot columns, all sparse.

    Parameters
    ----------
    n_codes : int
        How many of the first columns are codes.
    indices : list of int
        The codes that are not components of texts.
    one_hot : OneHotCodes
        What makes columns of these.
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(self, n_codes, indices, one_hot):
        set_parameters(self, locals())

    def fit(self, X, y=None, sample_weight=None):
        """Fit the transformer of the codes."""
        self.one_hot_ = clone(self.one_hot).set_output(transform="default")
        self.one_hot_.fit(X[:, self.indices].toarray(), sample_weight=sample_weight)
        return self

    def transform(self, X):
        """The columns of some rows, (n_samples, n_columns + n_terms)."""
        parts = [X[:, self.n_codes :]]
        if self.indices:
            parts.insert(0, self.one_hot_.transform(X[:, self.indices].toarray()))
        return sparse.hstack(parts, format="csr")

    def get_feature_names_out(self, input_features):
        """Names of the columns, then the terms."""
        names = np.asarray(input_features, dtype=object)
        of_codes = self.one_hot_.get_feature_names_out(names[self.indices])
        return np.array([*of_codes, *names[self.n_codes :]], dtype=object)


def view_of_texts(encoder: TableEncoder):
    """The transformer of codes and tf-idf for members that are fitted to tf-idf."""
    columns = encoder.columns_
    indices = [k for k, column in enumerate(columns) if not column.is_of_text]
    one_hot = encoder.one_hot(indices).set_params(scaled=True)
    return TfIdfBesideColumns(len(columns), indices, one_hot)
