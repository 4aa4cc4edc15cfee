"""Plot how much worse a model predicts when a column is permuted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from .._compat import _safe_indexing, with_positive_class
from ._figure import BLUE, GREY, Display


@dataclass(kw_only=True, eq=False, repr=False)
class PermutationImportanceDisplay(Display):
    """Plot of the permutation importances of the columns of X, for any model.

    The importance of a column is the score of the model minus its score on the same
    rows with the values of this column permuted [1]_. The rows must be unseen: on its
    training rows, columns that a model has merely memorised look important.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    importances : ndarray of shape (n_features, n_permutations)
        Score without a permutation minus score with it.
    feature_names : sequence of str
        Names of the columns.
    score_name : str, default="score"
        Name of the score, for the label of the axis.
    estimator_name : str, default=None
        Name of the estimator, for the title.
    max_features : int, default=20
        Number of columns to draw, those with the largest mean importances.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib Line2D
        The mean importance of every column drawn, the largest first.

    See Also
    --------
    sklearn.inspection.permutation_importance : The importances alone.

    References
    ----------
    .. [1] Breiman (2001), "Random forests", Machine Learning 45(1).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> from skacv import PermutationImportanceDisplay, SelfStoppingRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = SelfStoppingRegressor(random_state=0).fit(X_train, y_train)
    >>> display = PermutationImportanceDisplay.from_estimator(
    ...     model, X_test, y_test, random_state=0
    ... )
    >>> display.importances.shape
    (10, 5)
    """

    importances: np.ndarray
    feature_names: Sequence[str]
    score_name: str = "score"
    estimator_name: str | None = None
    max_features: int = 20

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        cv: Any = None,
        n_repeats: int = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        max_features: int = 20,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Permute the columns of unseen rows, and plot how much the score decreases.

        Parameters
        ----------
        estimator : estimator
            Any regressor or classifier, or a pipeline that ends with one; fitted if
            ``cv=None``.
        X : {array-like, DataFrame} of shape (n_samples, n_features)
            Rows in any form that ``estimator`` accepts. Columns are permuted before any
            encoding inside the estimator.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        cv : int, splitter or iterable, default=None
            None: X and y are unseen rows for the fitted estimator. Otherwise they may
            be the training rows: a clone is fitted without each fold, whose rows are
            permuted. Pass the splits themselves for rows in groups.
        n_repeats : int, default=5
            Number of permutations of every column in every fold.
        scoring : str or callable, default=None
            The scorer; None is the estimator's ``score``, accuracy or R^2.
        n_jobs : int, default=None
            Number of columns permuted in parallel.
        random_state : int, RandomState instance or None, default=None
            Controls the permutations.
        max_features : int, default=20
            Number of columns to draw, those with the largest mean importances.
        ax : matplotlib Axes, default=None
            Axes to plot on; None creates a new figure.
        name : str, default=None
            Beginning of the title; None is the name of the estimator.
        **kwargs : dict
            Keyword arguments of matplotlib's ``errorbar``.

        Returns
        -------
        PermutationImportanceDisplay

        Raises
        ------
        NotFittedError
            If the estimator is not fitted and ``cv=None``.
        """
        # This imports matplotlib and pandas, where these are installed.
        from sklearn.inspection import permutation_importance

        scorer = scoring
        if isinstance(scoring, str):
            scorer = with_positive_class(get_scorer(scoring), y)
        permuting = {
            "n_repeats": n_repeats,
            "scoring": scorer,
            "n_jobs": n_jobs,
            "random_state": random_state,
        }
        if cv is None:
            evaluated = [(estimator, X, y)]
        else:
            splits = check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y)
            evaluated = (
                (
                    clone(estimator).fit(
                        _safe_indexing(X, fit), _safe_indexing(y, fit)
                    ),
                    _safe_indexing(X, held_out),
                    _safe_indexing(y, held_out),
                )
                for fit, held_out in splits
            )
        importances = [
            permutation_importance(fitted, *rows, **permuting).importances
            for fitted, *rows in evaluated
        ]
        importances = np.hstack(importances)
        numbered = [f"feature {j}" for j in range(len(importances))]
        display = cls(
            importances=importances,
            feature_names=[str(name) for name in getattr(X, "columns", numbered)],
            score_name=scoring if isinstance(scoring, str) else "score",
            estimator_name=type(estimator).__name__,
            max_features=max_features,
        )
        return display.plot(ax=ax, name=name, **kwargs)

    def _draw(self, ax, **kwargs):
        mean, spread = self.importances.mean(axis=1), self.importances.std(axis=1)
        order = np.argsort(-mean, kind="stable")[: self.max_features]
        heights = np.arange(len(order))
        ax.axvline(0, color=GREY, linewidth=0.6)
        style = {"fmt": "o", "color": BLUE, "capsize": 3, **kwargs}
        drawn = ax.errorbar(mean[order], heights, xerr=spread[order], **style)
        self.points_ = drawn.lines[0]
        ax.set_yticks(heights, [self.feature_names[j] for j in order])
        ax.invert_yaxis()
        ax.set_xlabel(f"decrease of the {self.score_name}, mean ± s.d.")
        return "permutation importances"
