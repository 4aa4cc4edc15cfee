"""Plot coefficients, and their confidence intervals, along the iterations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._estimator.parameters import takes_coverage
from .._estimator.prediction.debiasing import places_of_columns
from .._estimator.prediction.inference import interval_tables
from ._figure import (
    BLUE,
    PALETTE,
    PathDisplay,
    coef_path_of,
    recorded_estimator,
    styles_of,
)

NAMED = {"linewidth": 1.6, "zorder": 3}
UNNAMED = {"color": BLUE, "alpha": 0.25, "linewidth": 0.8, "zorder": 2}


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientPathDisplay(PathDisplay):
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
    xscale : {"linear", "symlog"}, default="linear"
        Scale of the axis of the iterations; "symlog" is logarithmic from the tenth on.

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
    xscale: str = "linear"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target: int = 0,
        xscale: str = "linear",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of skacv, a :class:`TrajectoryEarlyStoppingCV`, or a pipeline
            that ends with one.
        target : int, default=0
            Index of the target, if there are several.
        xscale : {"linear", "symlog"}, default="linear"
            Scale of the axis of the iterations; "symlog" is logarithmic from the tenth
            on.
        ax : matplotlib Axes, default=None
            Axes to plot on; None creates a new figure.
        name : str, default=None
            Beginning of the title; None is the name of the estimator.
        **kwargs : dict
            Keyword arguments of matplotlib for the lines in ``lines_``.

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
        inner, _ = recorded_estimator(estimator)
        if not hasattr(inner, "coef_path_"):
            raise TypeError(
                f"{type(inner).__name__} has no coefficients of features to draw."
            )
        display = cls(
            coef_path=coef_path_of(inner, target),
            iteration=inner.iteration_,
            feature_names=inner._column_names(),
            estimator_name=type(inner).__name__,
            xscale=xscale,
        )
        return display.plot(ax=ax, name=name, **kwargs)

    def _draw_paths(self, ax, **kwargs):
        path, names = self.coef_path, self.feature_names
        ever = np.flatnonzero((path != 0).any(axis=0))
        order = ever[np.argsort(-np.abs(path[self.iteration, ever]), kind="stable")]
        self.lines_, named = [], []
        for rank, j in enumerate(order[:200]):
            style, label = UNNAMED, None
            if rank < len(PALETTE):
                label = f"feature {j}" if names is None else str(names[j])
                style = NAMED | {"color": PALETTE[rank], "label": label}
            (line,) = ax.plot(path[:, j], **(style | kwargs))
            self.lines_.append(line)
            if label is not None:
                named.append((line, label))
        ax.axhline(0, color="black", linewidth=0.6)
        self._scale_iterations(ax, len(path), self._mark_iteration(ax))
        ax.set_ylabel("coefficient")
        n_kept = np.count_nonzero(path[self.iteration])
        title = f"{n_kept} of {path.shape[1]} coefficients in use"
        return title, named


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientIntervalDisplay(PathDisplay):
    """Confidence intervals of coefficients, and the coefficients, at every iteration.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    iterations : ndarray of int, shape (n_shown,)
        The iterates whose coefficients are debiased.
    estimate, lower, upper : ndarray of shape (n_shown, n_columns)
        Debiased coefficients, and the ends of their intervals.
    coef_path : ndarray of shape (n_iter + 1, n_columns)
        Coefficients of every iterate, not debiased.
    feature_names : sequence of str
        Names of the columns.
    iteration : int
        The iterate in use, marked by a vertical line.
    coverage : float, default=0.95
        Coverage of the intervals, for the label of the axis.
    estimator_name : str, default=None
        Name of the estimator, for the title.
    xscale : {"linear", "symlog"}, default="linear"
        Scale of the axis of the iterations; "symlog" is logarithmic from the tenth on.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        The debiased coefficient of every column.
    coef_lines_ : list of matplotlib Line2D
        The coefficient of every column, dashed.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import CoefficientIntervalDisplay, TrajectoryLasso
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TrajectoryLasso(0.1, keep_data=True, random_state=0).fit(X, y)
    >>> display = CoefficientIntervalDisplay.from_estimator(model, ["bmi", "s1"])
    """

    iterations: np.ndarray
    estimate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    coef_path: np.ndarray
    feature_names: Sequence[str]
    iteration: int
    coverage: float = 0.95
    estimator_name: str | None = None
    xscale: str = "linear"

    @classmethod
    @takes_coverage
    def from_estimator(
        cls,
        estimator: Any,
        columns: ArrayLike | None = None,
        *,
        coverage: float = 0.95,
        iterations: ArrayLike | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
        target: int = 0,
        xscale: str = "linear",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the intervals of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of skacv with ``coef_interval``, a
            :class:`TrajectoryEarlyStoppingCV`, or a pipeline that ends with one.
        columns : array-like of int, str or bool, default=None
            The columns to plot, as in ``coef_interval``; None means the three with the
            largest coefficients at the iterate in use.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true coefficient.
        iterations : array-like of int, default=None
            The iterates to debias; None means a dozen.
        covariance : {"auto", "sample", "nodewise"} or array-like of shape \
(n_features, n_features), default="auto"
            As in ``coef_interval``.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            As in ``coef_interval``.
        target : int, default=0
            Index of the target, if there are several.
        xscale : {"linear", "symlog"}, default="linear"
            Scale of the axis of the iterations; "symlog" is logarithmic from the tenth
            on.
        ax : matplotlib Axes, default=None
            Axes to plot on; None creates a new figure.
        name : str, default=None
            Beginning of the title; None is the name of the estimator.
        **kwargs : dict
            Keyword arguments of matplotlib for the lines in ``lines_``.

        Returns
        -------
        CoefficientIntervalDisplay

        Raises
        ------
        TypeError
            If the model has no intervals of coefficients.
        ValueError
            If there is no such target, or if ``coef_interval`` raises it.
        """
        inner, _ = recorded_estimator(estimator)
        if not hasattr(inner, "coef_interval"):
            raise TypeError(f"{type(inner).__name__} has no coef_interval to draw.")
        path = coef_path_of(inner, target)
        if columns is None:
            columns = np.argsort(-np.abs(path[inner.iteration_]), kind="stable")
            columns = columns[:3]
        if iterations is None:
            n_iter = inner.n_iter_
            space = np.geomspace if xscale == "symlog" else np.linspace
            iterates = space(1, n_iter, 12) if n_iter else [0]
            iterations = np.unique([*np.round(iterates).astype(int), inner.iteration_])
        indices = places_of_columns(inner, columns)
        intercepts = inner.intercept_path_.reshape(len(path), -1)[:, target]
        tables = list(
            interval_tables(
                inner, columns, coverage, iterations, covariance, X_unlabelled
            )
        )
        parts = {
            name: np.stack(
                [table[name].reshape(len(indices), -1)[:, target] for table in tables]
            )
            for name in ("estimate", "lower", "upper")
        }
        display = cls(
            iterations=np.asarray(iterations),
            **parts,
            coef_path=np.column_stack([path, intercepts])[:, indices],
            feature_names=[str(name) for name in tables[0]["column"]],
            iteration=inner.iteration_,
            coverage=coverage,
            estimator_name=type(inner).__name__,
            xscale=xscale,
        )
        return display.plot(ax=ax, name=name, **kwargs)

    def _draw_paths(self, ax, **kwargs):
        self.lines_, self.coef_lines_ = [], []
        styles = styles_of(range(len(self.feature_names)), {})
        for k, name in enumerate(self.feature_names):
            style = {
                "marker": "o",
                "markersize": 3,
                "linewidth": 1.6,
                "label": f"{name}, debiased",
                "zorder": 3,
                **styles[k],
                **kwargs,
            }
            (line,) = ax.plot(self.iterations, self.estimate[:, k], **style)
            color = line.get_color()
            # An end that is nowhere is not drawn.
            ends = (
                np.where(np.isfinite(end[:, k]), end[:, k], np.nan)
                for end in (self.lower, self.upper)
            )
            band = {"color": color, "alpha": 0.15, "linewidth": 0}
            ax.fill_between(self.iterations, *ends, **band)
            self.coef_lines_ += ax.plot(
                self.coef_path[:, k],
                dashes=(4, 2),
                linewidth=1,
                label=f"{name}, as it is",
                color=color,
                zorder=3,
            )
            self.lines_.append(line)
        ax.axhline(0, color="black", linewidth=0.6)
        self._scale_iterations(ax, len(self.coef_path), self._mark_iteration(ax))
        ax.set_ylabel(f"coefficient, {100 * self.coverage:g}% interval")
        named = list(zip(self.lines_, self.feature_names))
        return "coefficients debiased (dots) and as they are", named
