"""The columns that vary most with y, for trees on tables of many columns."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._estimator.data.checks import rows_that_count
from ..._estimator.parameters import set_parameters
from ...optim.blocks import LARGE_BYTES, blocks


class StrongestColumns(SelectorMixin, BaseEstimator):
    """Keeps the columns that explain most of the variance of y, each by itself.

    That is the share of a linear regression on the column or, for classes, of the
    analysis of variance: the order is that of ``f_regression`` and ``f_classif``. Of
    several outputs the best explained one counts. A missing value counts as the mean of
    its column, and a constant column explains nothing.

    Parameters
    ----------
    n_columns : int
        How many are kept.
    of_classes : bool, default=False
        Whether y has classes.

    Attributes
    ----------
    shares_ : ndarray of shape (n_features,)
        The share of the variance that every column explains.
    """

    def __init__(self, n_columns, of_classes=False):
        set_parameters(self, locals())

    # Inside pipelines it asks for the weights of the rows.
    __metadata_request__fit = {"sample_weight": True}

    def fit(self, X, y, sample_weight=None):
        """Compute the shares of all columns, from these rows alone.

        Shapes: X (n_samples, n_features), y (n_samples,) or (n_samples, n_outputs).
        """
        settings = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
        X = validate_data(self, X, accept_sparse="csc", **settings)
        outputs = np.asarray(y).reshape(len(y), -1)
        rows, weights = rows_that_count(sample_weight, len(y))
        if len(rows) < len(y):
            X, outputs = X[rows], outputs[rows]
        weights = np.ones((len(rows), 1)) if weights is None else weights[:, None]
        roots = np.sqrt(weights)
        # Orthogonal vectors of unit length that span what an output can explain.
        factors = []
        for output in outputs.T:
            if self.of_classes:
                _, label = np.unique(output, return_inverse=True)
                factor = roots * np.eye(label.max() + 1)[label]
            else:
                mean = (output * weights[:, 0]).sum() / weights.sum()
                factor = roots * (output - mean)[:, None]
            sizes = np.linalg.norm(factor, axis=0)
            factors.append(factor / np.where(sizes > 0, sizes, 1))
        self.shares_ = np.zeros(X.shape[1])
        for part in blocks(X.shape[1], 8 * X.shape[0], LARGE_BYTES):
            columns = X[:, part].toarray() if sparse.issparse(X) else X[:, part]
            columns = columns.astype(np.float64)
            is_known = np.isfinite(columns)
            sums_of_weights = weights[:, 0] @ is_known
            sums_of_weights[sums_of_weights == 0] = 1
            largest = columns.max(axis=0, where=is_known, initial=-np.inf)
            varies = largest > columns.min(axis=0, where=is_known, initial=np.inf)
            sums = (columns * weights).sum(axis=0, where=is_known)
            columns = roots * (columns - sums / sums_of_weights)
            columns[~is_known] = 0.0
            total = np.einsum("ij,ij->j", columns, columns)
            for factor in factors:
                explained = ((factor.T @ columns) ** 2).sum(axis=0)
                share = np.divide(
                    explained, total, out=np.zeros(len(total)), where=varies
                )
                self.shares_[part] = np.maximum(self.shares_[part], share)
        return self

    def _get_support_mask(self):
        check_is_fitted(self)
        # The first of equal columns, so that the choice does not depend on sorting.
        order = np.argsort(-self.shares_, kind="stable")
        mask = np.zeros(len(order), dtype=bool)
        mask[order[: self.n_columns]] = True
        return mask

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
