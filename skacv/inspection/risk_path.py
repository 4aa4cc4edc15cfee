"""Plot the risk estimates along the iterations."""

from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import log_loss

from .._estimator.delegation import class_of, last_step
from .._estimator.estimates.fitted_state import loss_name
from .._estimator.estimates.readers import ESTIMATES
from ._figure import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    INDIGO,
    LAVENDER,
    MAROON,
    PINE,
    PINK,
    VERMILION,
    PathDisplay,
    recorded_estimator,
    styles_of,
)

# Colour and line of the estimates, in the order of the table. Leave-one-out is dashed,
# drawn over the memory matrix: they are often too close to be distinguished otherwise.
# The last two are for estimates that others have added.
ESTIMATE_STYLES = (
    {"color": BLUE, "linewidth": 2.2},
    {"color": VERMILION, "linewidth": 1.8, "dashes": (5, 2)},
    {"color": PINK, "linewidth": 1.8},
    {"color": INDIGO, "linewidth": 1.8},
    {"color": LAVENDER, "linewidth": 1.8},
)
# The default models have the same colours in all figures, relatives similar ones.
MEMBER_COLORS = {
    "lasso": BLUE,
    "ridge": LAVENDER,
    "logistic": PINK,
    "least squares": LAVENDER,
    "kernel": VERMILION,
    "feature machine": MAROON,
    "boosted trees": GREEN,
    "extra trees": PINE,
    "tf-idf": INDIGO,
}


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
        The iterate in use, marked by a dot.
    criterion : {"risk", "loo", "cv"}, default=None
        The estimate whose value at the iterate in use is marked; None marks the first
        one.
    test_path : ndarray of shape (n_tested,), default=None
        Mean loss on test rows.
    tested : ndarray of int, shape (n_tested,), default=None
        The iterates of ``test_path``; None means all.
    estimator_name : str, default=None
        Name of the estimator, for the title and, among others, for its line.
    xscale : {"linear", "symlog", "share"}, default="linear"
        Scale of the axis of the iterations. "symlog" is logarithmic from the tenth on.
        "share" draws every iterate at its share of the run of its member.
    loss : str, default="squared error"
        Name of the loss, for the label of the axis.
    member_paths : dict of str to ndarray, default=None
        Paths of the criterion of the other members compared.
    member_iterations : dict of str to int, default=None
        The iterate kept of each of them, marked by a dot.
    member_styles : dict of str to dict, default=None
        Keyword arguments of matplotlib for the line of every member, such as its
        colour. None: those of :meth:`from_estimator`.
    weights : dict of str to float, default=None
        Weights of the members of a blend, shown next to their names.
    blend_loss : float, default=None
        Estimated mean loss of the blend on unseen rows; None draws none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The line of every estimate.
    other_lines_ : dict of str to matplotlib Line2D
        The line of every other member.
    kept_points_ : dict of str to matplotlib Line2D
        The dot at the kept iterate of every member, by its name.
    train_line_, test_line_, blend_line_ : matplotlib Line2D
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
    xscale: str = "linear"
    loss: str = "squared error"
    member_paths: dict | None = None
    member_iterations: dict | None = None
    member_styles: dict | None = None
    weights: dict | None = None
    blend_loss: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        xscale: str | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the risk estimates of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of skacv, a :class:`TrajectoryEarlyStoppingCV`, or a pipeline
            that ends with one. For a blend, training and test error are those of the
            member with the largest weight.
        X_test : {array-like, sparse matrix} of shape (n_samples, n_features), \
default=None
            Test rows, in the format that ``estimator`` predicts for.
        y_test : array-like of shape (n_samples,) or (n_samples, n_targets), \
default=None
            Targets of the test rows.
        xscale : {"linear", "symlog", "share"}, default=None
            Scale of the axis of the iterations. None: "share" for members with
            different numbers of iterations, otherwise "linear".
        ax : matplotlib Axes, default=None
            Axes to plot on; None creates a new figure.
        name : str, default=None
            Beginning of the title; None is the name of the model drawn, or "blend".
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
            raise ValueError("X_test and y_test go together: pass both or neither.")
        inner, X_test = recorded_estimator(estimator, X_test)
        stopping, _ = last_step(estimator)
        # None of a single model, and of one that is shown in the loss it stops by.
        error = getattr(stopping, "_path_error", None)
        is_own = error is None
        test_path = None
        if X_test is not None and is_own:
            test_path = _test_losses(inner, X_test, y_test)
        elif X_test is not None:
            test_path = _log_losses(inner, X_test, y_test)
        estimates, criterion = _estimates(inner) if is_own else {}, None
        model_name, compared = class_of(inner), {}
        if getattr(stopping, "criterion_", None) in ESTIMATES:  # no scorer
            criterion = stopping.criterion_
            if is_own:
                error = estimates[criterion][1]
            # Members are compared on the rows that all have held out.
            estimates[criterion] = stopping.path_, error
            if len(stopping.member_paths_) > 1:
                model_name, compared = stopping.best_member_, _comparison(stopping)
                estimates = {criterion: estimates[criterion]}
        display = cls(
            estimates=estimates,
            train_path=inner.record_.train_path if is_own else None,
            iteration=inner.iteration_,
            criterion=criterion,
            test_path=test_path,
            tested=inner.recorded_iterations(),
            estimator_name=model_name,
            loss=loss_name(inner) if is_own else "log loss",
            **compared,
        )
        n_lengths = len({len(path) for path in display._risks()})
        display.xscale = xscale or ("linear" if n_lengths < 2 else "share")
        if display.weights and name is None:
            name = "blend"
        return display.plot(ax=ax, name=name, **kwargs)

    def _risks(self):
        """The paths of the estimates, and of the members that were not chosen."""
        return [
            *(path for path, _ in self.estimates.values()),
            *(self.member_paths or {}).values(),
        ]

    def _draw_paths(self, ax, **kwargs):
        self.lines_, self.other_lines_, self.kept_points_ = {}, {}, {}
        self.blend_line_ = self.test_line_ = self.train_line_ = None
        if self.member_paths:
            named = self._draw_members(ax, **kwargs)
            n_members = 1 + len(self.member_paths)
            title = f"chosen of {n_members} members"
            if self.weights:
                title = f"{n_members} members and their weights"
            in_use = "dot: iteration in use, k of n"
            source = f", {ESTIMATES[self.criterion].label}"
        else:
            named = self._draw_estimates(ax, **kwargs)
            title, source = "estimated loss along the run", ""
            in_use = self._mark_iteration(ax)
        named += self._draw_errors(ax)
        ax.set_ylim(*self._limits())
        ax.set_ylabel(f"mean {self.loss}{source}")
        n_iterates = max(map(len, self._risks() or [self.train_path]))
        self._scale_iterations(ax, n_iterates, in_use)
        return title, named

    def _draw_estimates(self, ax, **kwargs):
        """Draw the estimates of one model, with the dot on one of them."""
        styles, named = dict(zip(ESTIMATES, cycle(ESTIMATE_STYLES))), []
        for name in self.estimates:
            label = f"{ESTIMATES[name].label} ± s.e."
            style = {"label": label, **styles[name], **kwargs}
            named.append((self._draw_estimate(ax, name, style), label))
        if self.estimates:
            marked = self.criterion or next(iter(self.estimates))
            line, (path, _) = self.lines_[marked], self.estimates[marked]
            self._draw_kept(ax, self.estimator_name, line, path, self.iteration)
        return named

    def _draw_members(self, ax, **kwargs):
        """Draw the estimate of every member, each with its dot."""
        chosen, paths = self.estimator_name, dict(self.member_paths)
        paths = {chosen: self.estimates[self.criterion][0], **paths}
        kept = {**(self.member_iterations or {}), chosen: self.iteration}
        styles = self.member_styles or styles_of(paths, MEMBER_COLORS)
        named = []
        for name, path in paths.items():
            label, n_iter = name, len(path) - 1
            if self.weights:
                label += f" {self.weights[name]:.2f}"
            if name in kept:
                label += f" ({kept[name]} of {n_iter})"
            style = {"label": label, "linewidth": 1.2, "zorder": 2, **styles[name]}
            if name == chosen:
                style |= {"linewidth": 2.2, "zorder": 3, **kwargs}
                line = self._draw_estimate(ax, self.criterion, style)
            else:
                line = self._plot(ax, path, **style)
                self.other_lines_[name] = line
            if name in kept:
                self._draw_kept(ax, name, line, path, kept[name])
            named.append((line, label))
        if self.blend_loss is not None:
            constant = np.full(max(map(len, paths.values())), self.blend_loss)
            style = {"color": BLACK, "linestyle": "--", "linewidth": 1, "zorder": 1}
            self.blend_line_ = self._plot(ax, constant, label="blend", **style)
            named.append((self.blend_line_, "blend"))
        return named

    def _draw_errors(self, ax):
        """Draw the test and training errors of the model in use."""
        of_model = f" of {self.estimator_name}" if self.member_paths else ""
        named = []
        if self.test_path is not None:
            label = f"test error{of_model}"
            style = {"color": BLACK, "linewidth": 1.6, "label": label}
            run = next(iter(self._risks()), self.test_path)
            self.test_line_ = self._plot(
                ax, self.test_path, self.tested, len(run) - 1, **style
            )
            named.append((self.test_line_, label))
        if self.train_path is not None:
            label = f"training error{of_model}"
            style = {"color": GREY, "linestyle": ":", "label": label}
            self.train_line_ = self._plot(ax, self.train_path, **style)
            named.append((self.train_line_, label))
        return named

    def _draw_estimate(self, ax, name, style):
        """Draw an estimate with a band of its standard error."""
        path, se_path = self.estimates[name]
        line = self.lines_[name] = self._plot(ax, path, **style)
        ends, color = (path - se_path, path + se_path), line.get_color()
        ax.fill_between(line.get_xdata(), *ends, color=color, alpha=0.12, linewidth=0)
        return line

    def _draw_kept(self, ax, name, line, path, iteration):
        """Draw the dot at the iterate that a member keeps."""
        (self.kept_points_[name],) = ax.plot(
            line.get_xdata()[iteration],
            path[iteration],
            "o",
            color=line.get_color(),
            markeredgecolor="white",
            zorder=4,
            clip_on=False,
        )

    def _plot(self, ax, path, iterations=None, n_iter=None, **style):
        iterations = np.arange(len(path)) if iterations is None else iterations
        if self.xscale == "share":
            iterations = iterations / max(n_iter or len(path) - 1, 1)
        return ax.plot(iterations, path, **style)[0]

    def _limits(self):
        """Limits of the axis of the losses."""
        shown = self._risks()
        if self.test_path is not None:
            shown.append(self.test_path)
        shown = shown or [self.train_path]
        lowest = min(np.nanmin(path) for path in shown)
        floor = 0.0 if lowest >= 0 else -np.inf
        ends = [lowest, *(np.nanmin(path - se) for path, se in self.estimates.values())]
        low = max(min(ends), floor)
        begun = max(path[0] for path in shown)
        high = min(max(np.nanmax(path) for path in shown), max(begun, 2 * low))
        # The losses on unseen rows have half of the height or more.
        if self.train_path is not None:
            low = max(min(low, np.nanmin(self.train_path)), 2 * low - high)
        if self.member_paths:
            # So have those that the members stop at: all begin with the same loss.
            kept = [point.get_ydata()[0] for point in self.kept_points_.values()]
            path, se_path = self.estimates[self.criterion]
            kept.append((path + se_path)[self.iteration])
            high = min(high, 2 * max(kept) - low)
        margin = 0.05 * (high - low) or 0.5
        return max(low - margin, floor), high + margin


def _comparison(stopping):
    """What a display shows of the members that were compared, as its parameters."""
    table = stopping.leaderboard()
    kept = dict(zip(table["member"], table["best_iter"]))
    # Members with another loss have another axis.
    others = [name for name in stopping._alike if name != stopping.best_member_]
    is_blend = np.count_nonzero(list(stopping.weights_.values())) > 1
    return {
        "member_paths": {name: stopping.member_paths_[name] for name in others},
        "member_iterations": {name: int(kept[name]) for name in others},
        # Those that were left out have theirs too.
        "member_styles": styles_of(
            dict.fromkeys(stopping.results_["member"]), MEMBER_COLORS
        ),
        "weights": stopping.weights_ if is_blend else None,
        "blend_loss": stopping.best_score_ if is_blend else None,
    }


def _test_losses(inner, X, y):
    """Losses of all iterates on other rows, by the estimator itself."""
    if not hasattr(inner, "staged_loss"):
        raise TypeError(
            f"X_test needs losses of test rows, but {class_of(inner)} has no method "
            "staged_loss(X, y)."
        )
    return inner.staged_loss(X, y)


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
    paths = {}
    for name, estimate in ESTIMATES.items():
        held_out = estimate.of(inner)
        if held_out is not None:
            paths[name] = held_out.path, held_out.se_path
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
