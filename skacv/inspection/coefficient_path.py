"""Plot the coefficients along the iterations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ._figure import BLUE, Display, coef_path_of, iteration_scale, recorded

# As many curves as a legend can name.
MAX_NAMED = 8
MAX_DRAWN = 200


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientPathDisplay(Display):
    """Plot of the coefficients of every iterate.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    coef_path : ndarray of shape (n_iter + 1, n_features)
    iteration : int
        The iterate in use, marked by a vertical line.
    feature_names : sequence of str, default=None
        Names of the features; None numbers them.
    estimator_name : str, default=None
        Name of the estimator, for the title.
    xscale : {"symlog", "linear"}, default="symlog"
        Scale of the axis of the iterations.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per plotted coefficient, in decreasing order of size at the iterate in use.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import CoefficientPathDisplay, TrajectoryLasso
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TrajectoryLasso(alpha=0.1).fit(X, y)
    >>> display = CoefficientPathDisplay.from_estimator(model)
    """

    coef_path: np.ndarray
    iteration: int
    feature_names: Sequence[str] | None = None
    estimator_name: str | None = None
    xscale: str = "symlog"

    @classmethod
    def from_estimator(cls, estimator: Any, *, target: int = 0, ax: Any = None) -> Self:
        """Plot the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of skacv, a :class:`TrajectoryEarlyStoppingCV`, or a pipeline
            that ends with one of them.
        target : int, default=0
            Index of the target, if there are several.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.

        Returns
        -------
        CoefficientPathDisplay

        Raises
        ------
        TypeError
            If the model has no coefficients of features.
        ValueError
            If there is no such target.
        """
        inner, _ = recorded(estimator)
        if not hasattr(inner, "coef_path_"):
            raise TypeError(
                f"{type(inner).__name__} has no coefficients of features to draw."
            )
        display = cls(
            coef_path=coef_path_of(inner, target),
            iteration=inner.iteration_,
            feature_names=getattr(inner, "feature_names_in_", None),
            estimator_name=type(inner).__name__,
            xscale=iteration_scale(inner),
        )
        return display.plot(ax=ax)

    def _draw(self, ax):
        path = self.coef_path
        ever = np.flatnonzero((path != 0).any(axis=0))
        order = ever[np.argsort(-np.abs(path[self.iteration, ever]), kind="stable")]
        self.lines_ = []
        for rank, j in enumerate(order[:MAX_DRAWN]):
            named = rank < MAX_NAMED
            (line,) = ax.plot(
                path[:, j],
                color=f"C{rank}" if named else BLUE,
                alpha=1.0 if named else 0.25,
                linewidth=1.6 if named else 0.8,
                zorder=3 if named else 2,
                label=self._name(j) if named else None,
            )
            self.lines_.append(line)
        ax.axhline(0, color="black", linewidth=0.6)
        self._mark_iteration(ax)
        ax.set_ylabel("coefficient")
        n_kept = np.count_nonzero(path[self.iteration])
        return len(path), f"{n_kept} of {path.shape[1]} coefficients in use"

    def _name(self, j):
        return f"feature {j}" if self.feature_names is None else self.feature_names[j]
