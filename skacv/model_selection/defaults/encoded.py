"""The table that each member is fitted to, and the fitted member with its encoder."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from ..._compat import is_foreign
from ..._estimator.collections import is_collection
from ..._estimator.data.checks import has_missing, has_sparse_columns
from ..._estimator.data.row_summary import RowSummary
from ..._estimator.delegation import weights_for
from ..._estimator.estimates.fitted_state import attach_record
from ..._estimator.parameters import are_same, is_auto
from ..._estimator.run.recording import RecordsTrajectory
from ..._warnings import warn
from ...tables import TableEncoder
from ...tables.cells import may_be_dense
from .pipeline import TablePipeline
from .texts import CodesAndTfIdf, OfCodes, TfIdfBesideColumns, view_of_texts
from .views import choose_view


def is_table(X):
    """Whether X is a table in memory, on the host."""
    return not (isinstance(X, RowSummary) or is_collection(X) or is_foreign(X))


def has_numbers_alone(X):
    """Whether X is a sparse matrix, or an array of numbers with nothing missing.

    Or a frame of sparse columns that is too large to be made dense.
    """
    if sparse.issparse(X) or has_sparse_columns(X):
        return sparse.issparse(X) or not may_be_dense(X)
    is_array = isinstance(X, np.ndarray) and X.dtype.kind in "fiub"
    return is_array and not np.isnan(X).any()


def warn_of_target(X, y):
    """Warn if a column of a DataFrame is the target itself."""
    y = np.asarray(y)
    for name in X.columns if hasattr(X, "columns") and y.ndim == 1 else ():
        column = np.asarray(X[name])
        # The first values tell most columns apart. As objects: of other types, texts
        # and numbers are not compared. y has nothing missing.
        for rows in (slice(20), ...):
            values, target = column[rows].astype(object), y[rows].astype(object)
            if has_missing(values) or not np.array_equal(values, target):
                break
        else:
            warn(
                f"Column {name!r} of X equals y, which is unknown for new rows: drop "
                "it from X.",
                UserWarning,
            )


def to_dense(X):
    """A sparse matrix as an array; other arrays as they are."""
    return X.toarray() if sparse.issparse(X) else X


@dataclass(eq=False)
class EncodedTable:
    """X as the members of a comparison see it."""

    # The codes of the columns, or X itself without an encoder.
    X: object
    # It is fitted.
    encoder: TableEncoder | None = None
    # Number of columns of y.
    n_outputs: int = 1
    # Whether a small sparse X becomes dense for members that take no sparse one.
    makes_dense: bool = False
    # Weights of the rows, or None.
    sample_weight: np.ndarray | None = None
    # The tf-idf of columns of texts, sparse, if some members are fitted to it.
    tf_idf: object = None
    # Fitted transformers, and what they make of X, for candidates that do not take X.
    views: list = field(default_factory=list)

    @classmethod
    def of(cls, X, y, encoder, is_default, sample_weight=None, originals=None):
        """The table of X; None if all members are fitted to X itself.

        ``is_default`` says whether members are the default ones, for which an
        ``encoder`` that is "auto" encodes. Rows with the same number in ``originals``,
        (n_samples,), are copies of one, of which the encoder sees the first. TypeError
        is raised if an encoder is given, and X is no table in memory.
        """
        if is_auto(encoder):
            encodes = is_default and is_table(X) and not has_numbers_alone(X)
            encoder = TableEncoder() if encodes else None
        if encoder is None:
            makes_dense = is_default and sparse.issparse(X) and may_be_dense(X)
            return cls(X, makes_dense=True) if makes_dense else None
        if not is_table(X):
            raise TypeError(
                "encoder needs a table in memory, such as a DataFrame, got "
                f"{type(X).__name__}: set encoder=None."
            )
        encoder = clone(encoder).set_params(categories="codes")
        encoder.set_output(transform="default")
        n_outputs = max([1, *np.shape(y)[1:]])
        weights_of_encoder = sample_weight
        if originals is not None:
            _, first = np.unique(originals, return_index=True)
            weights_of_encoder = np.zeros(len(originals))
            sums = np.bincount(originals, sample_weight)
            weights_of_encoder[first] = sums[originals[first]]
        weights = weights_for(encoder, weights_of_encoder)
        codes = encoder.fit_transform(X, **weights)
        warn_of_target(X, y)
        tf_idf = None
        if is_default and any(column.is_of_text for column in encoder.columns_):
            _, tf_idf = encoder.codes_and_tf_idf(X)
        return cls(codes, encoder, n_outputs, False, sample_weight, tf_idf)

    def choose_view(self, estimator, is_of_texts=False):
        """A model as it takes the table, the table, and the view that makes it.

        Equal views are made once; the view is None if the table is as it is.
        """
        transformer, weights = None, self.sample_weight
        if is_of_texts:
            transformer = view_of_texts(self.encoder)
            table = sparse.hstack([self.X, self.tf_idf], format="csr")
            X = transformer.fit_transform(table, sample_weight=weights)
            return estimator, X, transformer
        if self.encoder is not None:
            estimator, transformer = choose_view(
                estimator, self.encoder, self.n_outputs
            )
        elif self.makes_dense and not get_tags(estimator).input_tags.sparse:
            transformer = FunctionTransformer(to_dense, accept_sparse=True)
        if transformer is None:
            return estimator, self.X, None
        for view, X in self.views:
            if type(view) is type(transformer) and are_same(
                view.get_params(), transformer.get_params()
            ):
                return estimator, X, view
        weights = weights_for(transformer, weights)
        X = transformer.fit_transform(self.X, **weights)
        self.views.append((transformer, X))
        return estimator, X, transformer

    def attach_view(self, view, fitted):
        """A fitted member, with the view of its candidate, that takes codes."""
        view = self._view_of_rows(view)
        if view is None:
            return fitted
        return TablePipeline.of_fitted([("view", view)], fitted)

    def attach_encoder(self, view, fitted):
        """A fitted member, or without a view a blend of several, that takes X."""
        if self.encoder is None:
            return self.attach_view(view, fitted)
        steps = [("encoder", self.encoder)]
        if self.tf_idf is not None:
            steps = [("encoder", CodesAndTfIdf.of_fitted(self.encoder))]
        is_of_blend = not isinstance(fitted, RecordsTrajectory)
        if not is_of_blend:
            view = self._view_of_rows(view)
        if view is not None:
            steps.append(("view", view))
        pipeline = TablePipeline.of_fitted(steps, fitted)
        if is_of_blend:
            return pipeline
        names = pipeline.get_feature_names_out()
        named = attach_record(fitted, replace(fitted.record_, column_names=names))
        return TablePipeline.of_fitted(steps, named)

    def _view_of_rows(self, view):
        """The view of a candidate, of rows as the first step of members has them."""
        if self.tf_idf is None or isinstance(view, TfIdfBesideColumns):
            return view
        return OfCodes.of_fitted(self.X.shape[1], view)
