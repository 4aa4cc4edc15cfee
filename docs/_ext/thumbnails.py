"""Thumbnails of the gallery: one panel of each figure, drawn anew at a small size."""

from pathlib import Path
from textwrap import fill, indent

import matplotlib.pyplot as plt
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from sphinx_gallery.scrapers import matplotlib_scraper

# The panel of an example, where it is not the first.
PANELS = {
    "plot_computational_reach": 1,
    "plot_quickstart": 1,
    "plot_stopping_matters": 1,
    "plot_svm": 1,
    "plot_which_estimate": 1,
}
INCHES = 3.2, 2.24
SMALL = 7.5  # points, of legends and other text inside of the panel
LARGEST_LEGEND = 0.35  # of the panel's area


def one_panel(block, block_vars, gallery_conf):
    """Scrape figures as sphinx-gallery does, and save a panel before the first.

    The first image of an example is its thumbnail; its page shows the others.
    """
    numbers = plt.get_fignums()
    if not numbers:
        return ""
    figure = plt.figure(numbers[0])
    path = next(block_vars["image_path_iterator"])
    shown = matplotlib_scraper(block, block_vars, gallery_conf)
    # Where a page is narrow, figures scroll in this box.
    shown = ".. container:: glr-figure\n\n" + indent(shown, "    ")
    leave_alone(figure.axes[PANELS.get(Path(block_vars["src_file"]).stem, 0)])
    figure.savefig(path, dpi=240)
    return shown


def leave_alone(panel):
    """Make the panel all there is of its figure, to be read at a small size."""
    figure = panel.figure
    if not panel.get_xlabel():
        labels = [axes.get_xlabel() for axes in figure.axes]
        panel.set_xlabel(next(filter(None, labels), ""))
    figure.draw_without_rendering()
    for text in list(panel.texts):
        # Names of lines would take half of the width; extents without their arrows.
        if Text.get_window_extent(text).x0 > panel.bbox.x1:
            text.remove()
    hidden = [ax for ax in figure.axes if ax is not panel]
    for axes in {*hidden, *panel.child_axes}:
        axes.remove()
    for legend in list(figure.legends):
        legend.remove()
    figure.suptitle("")
    for loc in ("left", "center", "right"):
        panel.set_title("", loc=loc)
    panel.set_xlabel(fill(panel.get_xlabel(), 30))
    panel.set_ylabel(fill(panel.get_ylabel(), 22, break_on_hyphens=False))
    for axis in (panel.xaxis, panel.yaxis):
        axis.label.set_size(9)
    panel.tick_params(labelbottom=True, labelleft=True)
    panel.set_subplotspec(GridSpec(1, 1, figure=figure)[0])
    figure.set_size_inches(*INCHES)
    for text in panel.texts:
        text.set_fontsize(SMALL)
    if panel.get_legend() is not None:
        fit_legend(panel)


def fit_legend(panel):
    """Put a smaller legend where it covers least, or none if it covers the panel."""
    legend = panel.get_legend()
    legend = panel.legend(
        legend.legend_handles,
        [text.get_text() for text in legend.get_texts()],
        loc="best",
        fontsize=SMALL,
        framealpha=0.85,
        edgecolor="none",
        handlelength=1.2,
        handletextpad=0.5,
        labelspacing=0.25,
    )
    panel.figure.draw_without_rendering()
    box, extent = legend.get_window_extent(), panel.get_window_extent()
    if box.width * box.height > LARGEST_LEGEND * extent.width * extent.height:
        legend.remove()
