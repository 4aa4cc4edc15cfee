"""Plot the risk estimates along the iterations."""

from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import log_loss

from .._estimator.delegation import last_step
from .._estimator.estimates.readers import ESTIMATES
from ._figure import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILION,
    PathDisplay,
    iteration_scale,
    recorded_estimator,
)

# Colour and line of the estimates, in the order of the table. Leave-one-out is dashed,
# drawn over the memory matrix: they are often too close to be distinguished otherwise.
# The last two are for estimates that others have added.
STYLES = (
    {"color": BLUE, "linewidth": 2.2},
    {"color": VERMILION, "linewidth": 1.8, "dashes": (5, 2)},
    {"color": PURPLE, "linewidth": 1.8},
    {"color": ORANGE, "linewidth": 1.8},
    {"color": SKY_BLUE, "linewidth": 1.8},
)


@dataclass(kw_only=True, eq=False, repr=False)
class RiskPathDisplay(PathDisplay):
    """Plot of the risk estimates, training error and test error of every iterate.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    estimates : dict of {"risk", "loo", "cv"} to (ndarray, ndarray)
        Estimated mean loss of every iterate on unseen rows, and its standard error,
        each of shape (n_iter + 1,): from the memory matrix ("risk"), from
        leave-one-out, from cross-validation.
    train_path : ndarray of shape (n_iter + 1,) or None
        Mean loss on the training rows; None draws none.
    iteration : int
        The iterate in use, marked by a vertical line.
    criterion : {"risk", "loo", "cv"}, default=None
        The estimate whose value at the iterate in use is marked; None takes the first
        one.
    test_path : ndarray of shape (n_tested,), default=None
        Mean loss on test rows.
    tested : ndarray of int, shape (n_tested,), default=None
        The iterates of ``test_path``; None means all.
    estimator_name : str, default=None
        Name of the estimator, for the title.
    xscale : {"symlog", "linear"}, default="symlog"
        Scale of the axis of the iterations.
    loss : str, default="squared error"
        Name of the loss, for the label of the axis.
    member_paths : dict of str to ndarray, default=None
        Paths of the criterion for the other members that were compared.
    weights : dict of str to float, default=None
        Weights of the members of a blend, drawn as bars; None draws none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The line of every estimate.
    other_lines_ : dict of str to matplotlib Line2D
        The line of every other member.
    weight_bars_ : dict of str to matplotlib Rectangle
        The bar of every member of a blend.
    train_line_, test_line_ : matplotlib Line2D
        None without such a curve.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import IterativeRidge, RiskPathDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRidge(alpha=0.0, cv=5).fit(X[:300], y[:300])
    >>> display = RiskPathDisplay.from_estimator(model, X[300:], y[300:])
    >>> list(display.lines_)
    ['risk', 'loo', 'cv']
    """

    estimates: dict
    train_path: np.ndarray | None
    iteration: int
    criterion: str | None = None
    test_path: np.ndarray | None = None
    tested: np.ndarray | None = None
    estimator_name: str | None = None
    xscale: str = "symlog"
    loss: str = "squared error"
    member_paths: dict | None = None
    weights: dict | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the risk estimates of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of skacv, a :class:`TrajectoryEarlyStoppingCV`, or a pipeline
            that ends with one of them. For a blend, the paths of the member with the
            largest weight are drawn. The paths of a blend of classifiers are held-out
            log losses; a member that stops by another loss, such as the squared error
            of a kernel machine, then has no training curve.
        X_test : {array-like, sparse matrix} of shape (n_samples, n_features), \
default=None
            Test rows, in the format that ``estimator`` predicts for.
        y_test : array-like of shape (n_samples,) or (n_samples, n_targets), \
default=None
            Their targets.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a new figure.
        name : str, default=None
            What the title begins with; None is the name of the model that is
            drawn, or "blend".
        **kwargs : dict
            Keyword arguments of matplotlib for the lines of the estimates.

        Returns
        -------
        RiskPathDisplay

        Raises
        ------
        ValueError
            If only one of X_test and y_test is given, or the estimator was fitted
            without any estimate of the risk.
        """
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together: give both or neither.")
        inner, X_test = recorded_estimator(estimator, X_test)
        # A single model has chosen nothing, and has no weights.
        stopping, _ = last_step(estimator)
        weights = getattr(stopping, "weights_", {})
        error = getattr(stopping, "_path_error", None)
        is_own = error is None  # whether it is shown in the loss that it stops by
        staged_loss = inner.staged_loss if is_own else partial(_log_losses, inner)
        test_path = None if X_test is None else staged_loss(X_test, y_test)
        estimates, criterion = _estimates(inner) if is_own else {}, None
        drawn, member_paths = type(inner).__name__, {}
        if getattr(stopping, "criterion_", None) in ESTIMATES:  # no scorer
            criterion = stopping.criterion_
            # Members with another loss have another axis.
            drawn, alike = stopping.best_member_, stopping._alike
            member_paths = {member: stopping.member_paths_[member] for member in alike}
            # Members are compared on the rows that all have held out.
            if is_own:
                error = estimates[criterion][1]
            estimates[criterion] = member_paths.pop(drawn), error
        display = cls(
            estimates=estimates,
            train_path=inner.train_path_ if is_own else None,
            iteration=inner.iteration_,
            criterion=criterion,
            test_path=test_path,
            tested=inner.recorded_iterations(),
            estimator_name=drawn,
            xscale=iteration_scale(
                inner, max(map(len, member_paths.values()), default=0)
            ),
            loss=inner._loss.name if is_own else "log loss",
            member_paths=member_paths,
            weights=weights if sum(map(bool, weights.values())) > 1 else None,
        )
        if display.weights and name is None:
            name = "blend"
        return display.plot(ax=ax, name=name, **kwargs)

    def _draw_paths(self, ax, **kwargs):
        self._draw_estimates(ax, **kwargs)
        self._draw_others(ax)
        self._draw_errors(ax)
        self._draw_mark(ax)
        self._draw_weights(ax)
        ax.set_ylim(*self._limits())
        ax.set_ylabel(f"mean {self.loss}")
        drawn = [path for path, _ in self.estimates.values()]
        drawn += (self.member_paths or {}).values()
        if self.train_path is not None:
            drawn.append(self.train_path)
        of_members = " of its members" if self.weights else ""
        return max(map(len, drawn)), f"risk of every iterate{of_members}"

    def _place_of_legend(self):
        """Beside the curves if these are many, above the bars of weights."""
        if self.weights:
            return {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        return super()._place_of_legend() if self.member_paths else {}

    def _draw_estimates(self, ax, **kwargs):
        self.lines_ = {}
        styles = dict(zip(ESTIMATES, cycle(STYLES)))
        for name, (path, se_path) in self.estimates.items():
            label = f"{ESTIMATES[name].label} ± s.e."
            style = {"label": label, **styles[name], **kwargs}
            (self.lines_[name],) = ax.plot(path, **style)
            ax.fill_between(
                np.arange(len(path)),
                path - se_path,
                path + se_path,
                color=self.lines_[name].get_color(),
                alpha=0.12,
                linewidth=0,
            )

    def _draw_others(self, ax):
        """Thin lines for the members not chosen, in colours of no estimate."""
        used = {line.get_color() for line in self.lines_.values()}
        free = [style["color"] for style in STYLES if style["color"] not in used]
        self.other_lines_ = {}
        for (name, path), color in zip((self.member_paths or {}).items(), cycle(free)):
            (self.other_lines_[name],) = ax.plot(
                path, label=name, color=color, linewidth=1, zorder=1.9
            )

    def _draw_weights(self, ax):
        """A bar for every member of a blend, in the colour of its path."""
        self.weight_bars_ = {}
        if not self.weights:
            return
        colors = {name: line.get_color() for name, line in self.other_lines_.items()}
        if self.criterion is not None:
            colors[self.estimator_name] = self.lines_[self.criterion].get_color()
        n_bars = len(self.weights)
        bar_axes = ax.inset_axes([1.06, 0.06, 0.3, 0.085 * n_bars])
        for k, (name, value) in enumerate(self.weights.items()):
            color = colors.get(name, GREY)
            bars = bar_axes.barh(k, value, height=0.3, color=color)
            self.weight_bars_[name] = bars[0]
            bar_axes.text(
                0, k - 0.2, f" {name} {value:.2f}", fontsize="small", va="bottom"
            )
        bar_axes.set(xlim=(0, 1), ylim=(n_bars - 0.7, -0.9), xticks=[], yticks=[])
        bar_axes.set_title("weights of the blend", fontsize="small", loc="left")
        bar_axes.spines[["top", "right", "bottom"]].set_visible(False)

    def _draw_errors(self, ax):
        self.test_line_ = None
        if self.test_path is not None:
            tested = range(len(self.test_path)) if self.tested is None else self.tested
            (self.test_line_,) = ax.plot(
                tested, self.test_path, color=BLACK, linewidth=1.6, label="test error"
            )
        self.train_line_ = None
        if self.train_path is not None:
            (self.train_line_,) = ax.plot(
                self.train_path, color=GREEN, linestyle=":", label="train error"
            )

    def _draw_mark(self, ax):
        self._mark_iteration(ax)
        if not self.estimates:  # no path to put it on
            return
        name = self.criterion or next(iter(self.estimates))
        ax.plot(
            self.iteration,
            self.estimates[name][0][self.iteration],
            "o",
            color=self.lines_[name].get_color(),
            markeredgecolor="white",
            zorder=4,
            clip_on=False,
        )

    def _limits(self):
        """Limits of the axis of the risks."""
        shown = [path for path, _ in self.estimates.values()]
        if self.test_path is not None:
            shown.append(self.test_path)
        shown += (self.member_paths or {}).values()
        shown = shown or [self.train_path]
        low = min(path.min() for path in shown)
        begun = max(path[0] for path in shown)
        high = min(max(path.max() for path in shown), max(begun, 2 * low))
        span = (high - low) or 1.0
        return max(low - 0.35 * span, 0), high + 0.05 * span


def _log_losses(inner, X, y):
    """Mean log loss of every iterate of a classifier on some rows.

    Shapes: returned (n_iterates,).
    """
    y = np.asarray(y)
    return np.array(
        [
            log_loss(y, probabilities, labels=inner.classes_)
            for probabilities in inner.staged_predict_proba(X)
        ]
    )


def _estimates(inner):
    """Every estimate that a fitted estimator has, with its standard error."""
    paths = {
        name: (getattr(inner, estimate.path), getattr(inner, estimate.se_path))
        for name, estimate in ESTIMATES.items()
        if hasattr(inner, estimate.path)
    }
    if not paths:
        parameters = [
            estimate.parameter
            for estimate in ESTIMATES.values()
            if estimate.parameter and estimate.is_offered_by(inner)
        ]
        raise ValueError(
            f"This {type(inner).__name__} was fitted without any estimate of the risk, "
            f"so there is none to draw. Switch one on: {', '.join(parameters)}."
        )
    return paths
