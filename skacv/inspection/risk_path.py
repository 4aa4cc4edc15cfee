"""The estimated risk along the iterations, drawn."""

import numpy as np

from ._figure import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    draw_iterations,
    iteration_scale,
    mark_iteration,
    new_axes,
    recorded,
)


class RiskPathDisplay:
    """Estimated risk, training error and test error of every iterate.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    risk_path : ndarray of shape (n_iter + 1,)
        Estimated mean squared prediction error.
    risk_se_path : ndarray of shape (n_iter + 1,)
        Its standard error.
    train_path : ndarray of shape (n_iter + 1,)
        Mean squared training error.
    iteration : int
        The iterate in use, marked.
    test_path : ndarray of shape (n_iter + 1,), default=None
        Mean squared error on test rows.
    estimator_name : str, default=None
        For the title.
    scale : {"symlog", "linear"}, default="symlog"
        Of the iterations.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    risk_line_, train_line_, test_line_ : matplotlib Line2D
        ``test_line_`` is None without a test curve.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import IterativeRidge, RiskPathDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRidge(alpha=0.0).fit(X[:300], y[:300])
    >>> display = RiskPathDisplay.from_estimator(model, X[300:], y[300:])
    """

    def __init__(
        self,
        *,
        risk_path,
        risk_se_path,
        train_path,
        iteration,
        test_path=None,
        estimator_name=None,
        scale="symlog",
    ):
        self.risk_path = risk_path
        self.risk_se_path = risk_se_path
        self.train_path = train_path
        self.iteration = iteration
        self.test_path = test_path
        self.estimator_name = estimator_name
        self.scale = scale

    @classmethod
    def from_estimator(cls, estimator, X_test=None, y_test=None, *, ax=None):
        """Draw the paths of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Of skacv, a :class:`TrajectoryEarlyStoppingCV`, or a pipeline that
            ends with one of them.
        X_test : {array-like, sparse matrix} of shape (n_samples, n_features), \
default=None
            Test rows, as ``estimator`` takes them.
        y_test : array-like of shape (n_samples,) or (n_samples, n_targets), \
default=None
            Their targets.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        RiskPathDisplay

        Raises
        ------
        ValueError
            If only one of X_test and y_test is given, or the estimator was fitted
            without ``risk_path_``.
        """
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together: give both or neither.")
        inner, X_test = recorded(estimator, X_test)
        if not hasattr(inner, "risk_path_"):
            raise ValueError(
                f"This {type(inner).__name__} was fitted with risk=False and has no "
                "risk_path_ to draw."
            )
        test_path = None
        if X_test is not None:
            y_test = np.asarray(y_test)
            test_path = np.array(
                [np.mean((y_test - p) ** 2) for p in inner.staged_predict(X_test)]
            )
        display = cls(
            risk_path=inner.risk_path_,
            risk_se_path=inner.risk_se_path_,
            train_path=inner.train_path_,
            iteration=inner.iteration_,
            test_path=test_path,
            estimator_name=type(inner).__name__,
            scale=iteration_scale(inner),
        )
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Draw on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        RiskPathDisplay
        """
        ax = new_axes(ax)
        iterations = np.arange(len(self.risk_path))
        ax.fill_between(
            iterations,
            self.risk_path - self.risk_se_path,
            self.risk_path + self.risk_se_path,
            color=BLUE,
            alpha=0.18,
            linewidth=0,
            label="± one standard error",
        )
        (self.risk_line_,) = ax.plot(
            iterations, self.risk_path, color=BLUE, linewidth=2, label="estimated risk"
        )
        self.test_line_ = None
        if self.test_path is not None:
            (self.test_line_,) = ax.plot(
                iterations, self.test_path, color=ORANGE, label="test error"
            )
        (self.train_line_,) = ax.plot(
            iterations, self.train_path, color=GREEN, linestyle=":", label="train error"
        )
        mark_iteration(ax, self.iteration)
        ax.plot(self.iteration, self.risk_path[self.iteration], "o", color=GREY)
        draw_iterations(ax, len(iterations) - 1, self.scale)
        ax.set_ylim(*self._limits())
        ax.set_ylabel("mean squared error")
        if self.estimator_name is not None:
            ax.set_title(f"{self.estimator_name}: risk of every iterate", loc="left")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _limits(self):
        """Risks from where they lie.

        The training error of an interpolating model falls by orders of
        magnitude that nobody needs to see.
        """
        shown = [self.risk_path]
        if self.test_path is not None:
            shown.append(self.test_path)
        low = min(path.min() for path in shown)
        high = max(path.max() for path in shown)
        span = (high - low) or 1.0
        return max(low - 0.35 * span, 0), high + 0.05 * span
