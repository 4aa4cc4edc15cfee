"""A fitted model after the steps that make numbers of a table."""

from collections.abc import Iterator
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from ..._compat import available_if
from ..._estimator.delegation import weights_for
from ..._estimator.estimates.fitted_state import drop_record_of
from ..._typing import Method

MODEL = "model"


def _of_last_step(method: Method) -> Method:
    """A method of the last step, on X after the steps before it."""
    name = method.__name__

    @available_if(lambda self: hasattr(self.steps[-1][1], name))
    @wraps(method)
    def of_last_step(self, X, *args, **params):
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        return getattr(self.steps[-1][1], name)(X, *args, **params)

    return of_last_step


class TablePipeline(Pipeline):
    """A pipeline that also has the methods and attributes of its last step.

    :class:`~skacv.TrajectoryEarlyStoppingCV` with an ``encoder`` creates it: the first
    steps encode X, and the last is a model that records its trajectory. ``coef_`` and
    similar attributes have an entry for each of ``get_feature_names_out()``.

    Parameters
    ----------
    steps : list of (str, estimator)
    memory : None
        As in :class:`sklearn.pipeline.Pipeline`, like ``verbose``.
    verbose : bool, default=False

    See Also
    --------
    TableEncoder : The first step.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import SelfStoppingRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> X["sex"] = X["sex"].map({1: "f", 2: "m"})
    >>> lasso = SelfStoppingRegressor(random_state=0).fit(X, y).members_["lasso"]
    >>> lasso.get_feature_names_out()[lasso.coef_ == 0].tolist()
    ['age', 's2']
    """

    @classmethod
    def of_fitted(cls, steps: list[Any], model: Any) -> Self:
        """The pipeline of fitted steps.

        Parameters
        ----------
        steps : list of (str, transformer)
        model : estimator

        Returns
        -------
        TablePipeline
        """
        return cls([*steps, (MODEL, model)])

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all steps.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Passed to the ``fit`` of the last step; ``sample_weight`` to all steps.

        Returns
        -------
        self : object
        """
        for _, step in self.steps[:-1]:
            weights = weights_for(step, params.get("sample_weight"))
            X = step.fit_transform(X, **weights)
        self.steps[-1][1].fit(X, y, **params)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "steps" not in vars(self):
            raise AttributeError(name)
        if name == "feature_importances_":
            raise AttributeError(
                "Importances refer to the columns that the encoder creates, not to "
                "those of X: steps[-1][1] may have them, and get_feature_names_out() "
                "their names."
            )
        return getattr(self.steps[-1][1], name)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that the last step sees.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X, if X has none.

        Returns
        -------
        ndarray of str
        """
        for _, step in self.steps[:-1]:
            input_features = step.get_feature_names_out(input_features)
        return input_features

    def at_iteration(self, t: int) -> Self:
        """The pipeline with iterate ``t`` of its last step.

        Parameters
        ----------
        t : int

        Returns
        -------
        TablePipeline
        """
        return self.of_fitted(self.steps[:-1], self.steps[-1][1].at_iteration(t))

    def drop_record(self, intervals: bool = True) -> Self:
        """A copy whose last step keeps only what predictions need, if it has a record.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep what ``predict_interval`` and ``predict_set`` need.

        Returns
        -------
        TablePipeline
            The fitted copy. This object keeps its record.
        """
        *before, (_, model) = self.steps
        return self.of_fitted(before, drop_record_of(model, intervals))

    @_of_last_step
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Predict with the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            ``offset``, if fit was passed one.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """

    @_of_last_step
    def score(self, X: Any, y: ArrayLike, **params: Any) -> float:
        """Score of the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            ``sample_weight``, if rows have weights, and ``offset``.

        Returns
        -------
        float
        """

    @_of_last_step
    def staged_predict(self, X: Any, **params: Any) -> Iterator[np.ndarray]:
        """Predict with every iterate of the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            ``offset``, if fit was passed one.

        Returns
        -------
        iterator of ndarray of shape (n_samples,) or (n_samples, n_targets)
        """

    @_of_last_step
    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Class probabilities by every iterate of the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)

        Returns
        -------
        iterator of ndarray of shape (n_samples, n_classes)
        """

    @_of_last_step
    def staged_loss(self, X: Any, y: ArrayLike, **params: Any) -> np.ndarray:
        """Mean loss of every iterate of the last step on other rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            ``sample_weight``, if rows have weights.

        Returns
        -------
        ndarray of shape (n_iter_ + 1,) or (n_stages,)
        """

    @_of_last_step
    def predict_interval(self, X: Any, **params: Any) -> np.ndarray:
        """Prediction intervals of the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            ``coverage`` and ``method``, as in :meth:`TrajectoryLasso.predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
        """

    @_of_last_step
    def predict_quantiles(self, X: Any, **params: Any) -> np.ndarray:
        """Quantiles of the target by the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            ``levels`` and ``method``, as in :meth:`TrajectoryLasso.predict_quantiles`.

        Returns
        -------
        ndarray of shape (n_samples, n_levels) or (n_samples, n_targets, n_levels)
        """

    @_of_last_step
    def predict_set(self, X: Any, **params: Any) -> np.ndarray:
        """Prediction sets of the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            ``coverage`` and ``method``, as in
            :meth:`TrajectoryLogisticRegression.predict_set`.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
        """

    @_of_last_step
    def predict_mean_interval(self, X: Any, **params: Any) -> np.ndarray:
        """Confidence intervals of the mean of the target, by the last step.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        **params : dict
            As in :meth:`TrajectoryLasso.predict_mean_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
        """
