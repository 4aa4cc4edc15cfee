"""Axes, colours, names at lines, and the estimator to draw, which displays share."""

from itertools import cycle, product
from typing import Any, Self

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from .._compat import on_host
from .._estimator.data.training_data import check_usable
from .._estimator.delegation import last_step
from .._estimator.devices import convert_to_numpy
from .._estimator.estimates.fitted_state import HoldsRecord

# Four of Okabe and Ito's colours, and four that remain distinct from these and from
# black and grey under each kind of colour blindness, and visible on white.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INDIGO, PINE, MAROON, LAVENDER = "#441166", "#005544", "#771100", "#9977FF"
PALETTE = BLUE, VERMILION, GREEN, PINK, INDIGO, PINE, MAROON, LAVENDER
BLACK, GREY = "#000000", "#666666"
# Once all colours are in use, lines with dashes follow.
DASHES = "solid", (0, (5, 1.5)), (0, (2, 1))
# Iterates up to the threshold have equal distances, later ones shrink.
SCALES = {"symlog": {"linthresh": 10, "subs": range(2, 10)}}


def recorded_estimator(estimator, X=None):
    # The fitted estimator with the paths, and X as it sees it.
    last, X = last_step(estimator, X)
    check_is_fitted(last)
    if hasattr(last, "target_names_"):
        raise TypeError(
            "Rows lack some of the targets, so each target has runs of its own: pass "
            "one of estimators_, such as "
            f"estimators_[0] of the target {last.target_names_[0]}."
        )
    inner = getattr(last, "estimator_", last)
    if hasattr(last, "best_member_"):
        # A blend of several has no record of its own. A mean of iterates has that of
        # their run.
        inner, X = last_step(last.members_[last.best_member_], X)
        inner = inner.at_iteration(last.best_iter_)
    inner, X = last_step(inner, X)  # behind the encoder, if there is one
    if isinstance(inner, HoldsRecord):
        check_usable(inner)
    if not isinstance(inner, HoldsRecord) or inner.record_.dropped is not None:
        raise TypeError(
            f"{type(inner).__name__} has recorded no trajectory; use an estimator of "
            "skacv, before drop_record()."
        )
    return convert_to_numpy(inner), on_host(X)


def coef_path_of(estimator, target):
    # The coefficients of every iterate for one target, (n_iter + 1, n_features).
    path = estimator.coef_path_
    path = path[:, None] if path.ndim == 2 else path
    if target not in range(path.shape[1]):
        raise ValueError(f"target must be below {path.shape[1]}, got {target}.")
    return path[:, target]


def styles_of(names, own_colors):
    """Colour and dashes of every name: those it owns, else the next that are free.

    Dashes distinguish the lines once all colours have been used.
    """
    own = {name: own_colors[name] for name in names if name in own_colors}
    free = cycle(
        {"color": color, "linestyle": dashes}
        for dashes, color in product(DASHES, PALETTE)
        if (color, dashes) not in {(taken, "solid") for taken in own.values()}
    )
    return {
        name: {"color": own[name], "linestyle": "solid"} if name in own else next(free)
        for name in names
    }


def name_lines(ax, named):
    """Write the name of every line beside its end, right of the axes.

    ``named`` are pairs of a line and its name. A name is as high as the end of its
    line, or as near to that as the other names allow, and a thin line leads to it.
    """
    from matplotlib.colors import to_rgb

    texts = []
    for line, name in named:
        color = np.array(to_rgb(line.get_color()))
        leader = {
            "arrowstyle": "-",
            "color": color,
            "linewidth": 0.6,
            "alpha": 0.45,
            "shrinkA": 1,
            "shrinkB": 1,
            "relpos": (0, 0.5),
        }
        texts.append(
            ax.annotate(
                name,
                xy=(0, 0),
                xytext=(0, 0),
                textcoords="axes fraction",
                va="center",
                color=0.8 * color,  # thin strokes look lighter than lines
                annotation_clip=False,
                arrowprops=leader,
            )
        )

    def place(ax):
        place_names(ax, [line for line, _ in named], texts)

    if texts:
        place(ax)
        for change in ("xlim_changed", "ylim_changed"):
            ax.callbacks.connect(change, place)


def place_names(ax, lines, texts):
    """Move the name of every line to where its line ends in the frame."""
    from matplotlib import rcParams

    ends = np.array([end_in_frame(line, *ax.get_ylim()) for line in lines])
    heights = ax.transLimits.transform(ax.transScale.transform(ends))[:, 1]
    order = np.argsort(heights, kind="stable")
    size, points = 0.9 * rcParams["font.size"], ax.bbox.height * 72 / ax.figure.dpi
    # A line of text and the space to the next, as a share of the height of the axes.
    spacing = 1.4 / points
    step = min(spacing * size, 1 / max(len(texts) - 1, 1))
    # The heights nearest to those of the ends that are a step or more apart.
    offsets = step * np.arange(len(texts))
    placed = offsets + isotonic_regression(
        heights[order] - offsets, y_min=0, y_max=1 - offsets[-1]
    )
    for k, height in zip(order, placed):
        texts[k].xy = ends[k]
        texts[k].set(position=(1.04, height), fontsize=step / spacing)


def end_in_frame(line, low, high):
    """The last point of a line between two heights: where it leaves, if it does."""
    points = np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float)
    points = points[np.isfinite(points).all(axis=1)]
    inside = np.flatnonzero((points[:, 1] >= low) & (points[:, 1] <= high))
    if len(inside) == 0 or inside[-1] == len(points) - 1:
        x, y = points[-1]
        return x, np.clip(y, low, high)
    (x, y), (next_x, next_y) = points[inside[-1] : inside[-1] + 2]
    border = high if next_y > high else low
    return x + (next_x - x) * (border - y) / (next_y - y), border


class Display:
    """A figure of one pair of axes."""

    # A subclass has ``estimator_name`` and defines ``_draw(ax, **kwargs)``, which draws
    # all but the title and returns the text of the title.

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Plot on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The names of the lines are on its right, where a figure with
            ``layout="constrained"`` makes room for them.
        name : str, default=None
            What the title begins with; None is the name of the estimator.
        **kwargs : dict
            Keyword arguments of matplotlib for the lines or points in ``lines_`` or
            ``points_``.

        Returns
        -------
        display
            This object.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "Displays need matplotlib: pip install 'skacv[plot]'."
            ) from error
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), constrained_layout=True)
        title, name = self._draw(ax, **kwargs), name or self.estimator_name
        ax.spines[["top", "right"]].set_visible(False)
        if name is not None:
            ax.set_title(f"{name}: {title}", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PathDisplay(Display):
    """A plot along the iterations, with the names of the lines at their ends."""

    # A subclass defines ``_draw_paths(ax, **kwargs)``, which returns the text of the
    # title, and pairs of a line and its name.

    def _draw(self, ax, **kwargs):
        title, named = self._draw_paths(ax, **kwargs)
        name_lines(ax, named)
        return title

    def _mark_iteration(self, ax):
        ax.axvline(self.iteration, color=GREY, linestyle="--", linewidth=1, zorder=1)
        return f"{self.iteration} in use"

    def _scale_iterations(self, ax, n_iterates, in_use):
        if self.xscale == "share":
            ax.set_xlim(0, 1)
            ax.xaxis.set_major_formatter("{x:.0%}")
            ax.set_xlabel(f"share of each run ({in_use})")
            return
        scale = ""
        if self.xscale in SCALES:
            threshold = SCALES[self.xscale]["linthresh"]
            scale = f"log scale from {threshold} on; "
        ax.set_xscale(self.xscale, **SCALES.get(self.xscale, {}))
        ax.set_xlim(0, max(n_iterates - 1, 1))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel(f"iteration ({scale}{in_use})")
