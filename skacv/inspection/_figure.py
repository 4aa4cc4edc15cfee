"""Axes, colours, and the estimator to draw, which all displays share."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._compat import on_host
from .._estimator.data.training_data import check_usable
from .._estimator.delegation import last_step
from .._estimator.devices import in_numpy
from .._estimator.estimates.fitted_state import FittedState

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY_BLUE = "#E69F00", "#56B4E9"
PALETTE = BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE
BLACK, GREY = "#000000", "#666666"
# Iterates up to the threshold have equal distances, later ones shrink.
SCALES = {"symlog": {"linthresh": 10}}


def recorded_estimator(estimator, X=None):
    # The fitted estimator with the paths, and X as it sees it.
    last, X = last_step(estimator, X)
    check_is_fitted(last)
    inner = getattr(last, "estimator_", last)
    if hasattr(last, "best_member_"):  # a blend of several has no record of its own
        inner = last.members_[last.best_member_]
    inner, X = last_step(inner, X)  # behind the encoder, if there is one
    if isinstance(inner, FittedState):
        check_usable(inner)
    if not hasattr(inner, "train_path_"):
        raise TypeError(
            f"{type(inner).__name__} has recorded no trajectory; use an estimator of "
            "skacv."
        )
    return in_numpy(inner), on_host(X)


def iteration_scale(estimator, n_shown=0):
    """Early iterates of a long run matter most; along several strengths all do."""
    # Long: a further power of the threshold is in it.
    long_run = SCALES["symlog"]["linthresh"] ** 2
    is_long = max(estimator.n_iter_, n_shown) > long_run
    phases = vars(estimator).get("_phases", ())  # of models with a penalty
    n_strengths = len({phase.penalty.strength for phase in phases})
    return "symlog" if is_long and n_strengths < 2 else "linear"


def coef_path_of(estimator, target):
    # The coefficients of every iterate for one target, (n_iter + 1, n_features).
    path = estimator.coef_path_
    path = path[:, None] if path.ndim == 2 else path
    if target not in range(path.shape[1]):
        raise ValueError(f"target must be below {path.shape[1]}, got {target}.")
    return path[:, target]


class Display:
    """A figure of one pair of axes."""

    # A subclass has ``estimator_name`` and defines ``_draw(ax, **kwargs)``, which draws
    # all but the title and returns the text of the title.

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Plot on ``ax``, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
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
    """A plot along the iterations, with a line at the one in use and a legend."""

    def _draw(self, ax, **kwargs):
        n_iterates, title = self._draw_paths(ax, **kwargs)
        ax.set_xscale(self.xscale, **SCALES.get(self.xscale, {}))
        ax.set_xlim(0, max(n_iterates - 1, 1))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        threshold = SCALES.get(self.xscale, {}).get("linthresh", np.inf)
        scale = f" (log scale from {threshold} on)" if n_iterates > threshold else ""
        ax.set_xlabel(f"iteration{scale}")
        ax.legend(frameon=False, fontsize="small", **self._place_of_legend())
        return title

    def _mark_iteration(self, ax):
        ax.axvline(
            self.iteration,
            color=GREY,
            linestyle="--",
            linewidth=1,
            label=f"iteration in use ({self.iteration})",
        )

    def _place_of_legend(self):
        """Beside the curves: there is no corner that they never cross."""
        return {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
