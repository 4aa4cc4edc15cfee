"""Which bars are met, and what has every method taken? The page of all sizes."""

from ..framework import header, heading, line
from . import rows, scores, shapes, tables

LIBRARIES = ("pandas", "catboost", "lightgbm")
SECTIONS = {"rows": rows, "scores": scores, "shapes": shapes, "tables": tables}
TITLE = "From 500 rows to a million"
NONE = "–"
NUMBERS = "excess", "seconds", "processor_seconds", "megabytes"
ABOUT = """
`make bench-sizes`, `python -m benchmarks.sizes` ({heading})

`SelfStoppingRegressor(random_state=0)` and `SelfStoppingClassifier(random_state=0)`,
"default", beside LightGBM and CatBoost of at most 5000 trees, stopped by a fifth of the
rows after 50 trees without gain, and
`HistGradientBoosting(early_stopping=True, n_iter_no_change=50, max_iter=5000,
validation_fraction=0.2)`. All are fitted by turns in one process with the same number
of threads; seconds are medians, those of processors of the last fit. The excess is what
is lost to the truth: the squared distance to the true mean, or the divergence of the
true probabilities. Memory is that of a process of its own: megabytes that the fit takes
at most, above X, y and imports. A case that stands here was measured on the day beside
it.
"""


def number(value, digits=3):
    return NONE if value is None else f"{value:.{digits}g}"


def bars_of(results):
    """All bars by section.

    Parameters
    ----------
    results : dict of str to dict
        By section, what its cases have given.
    """
    return {name: [*section.bars(results[name])] for name, section in SECTIONS.items()}


def bar_lines(bars):
    yield from header("section", "case", "what", "measured", "asked", "outcome")
    for section, of_section in bars.items():
        for bar in of_section:
            outcome = "met" if bar.is_met else "**missed**"
            yield line(
                *(section, bar.case, bar.what, number(bar.value, 4), bar.asked, outcome)
            )


def ratio(found, ours, name):
    """Ours over theirs."""
    if name in found and name in ours and found is not ours:
        return number(ours[name] / found[name])
    return NONE


def fit_lines(results):
    """A line for every case and method: its numbers, and ours over them."""
    yield from header(
        *("case", "method", "error", "excess", "seconds", "of processors"),
        *("MB above X", "MB of X", "our error over it", "our seconds over it"),
        "threads, day, weights",
    )
    for case, outcome in results.items():
        ours = next(iter(outcome["methods"].values()))
        for name, found in outcome["methods"].items():
            said = ""
            if found is ours:
                weights = found.get("weights", {})
                said = ", ".join(
                    [
                        str(outcome["threads"]),
                        outcome["date"],
                        *(f"{member} {w:.2f}" for member, w in weights.items() if w),
                    ]
                )
            yield line(
                *(case, name, found.get("failed") or number(found.get("error"), 4)),
                *(number(found.get(key)) for key in NUMBERS),
                number(outcome["x_megabytes"] if found is ours else None),
                *(ratio(found, ours, key) for key in ("error", "seconds")),
                said,
            )


def score_lines(results):
    """A line for every fit of ours that is asked what it says of itself."""
    yield from header(
        *("case", "said", "true", "said over true", "coverage", "seconds", "day")
    )
    for case, outcome in results.items():
        (found,) = outcome["methods"].values()
        yield line(
            *(case, number(found["said"], 4), number(found["true"], 4)),
            number(found["said"] / found["true"], 4),
            *(number(found.get(key)) for key in ("coverage", "seconds")),
            outcome["date"],
        )


def page(results):
    """The page as Markdown."""
    text = [f"# {TITLE}\n{ABOUT.format(heading=heading(LIBRARIES))}"]
    text.append("\n".join(["## Bars\n", *bar_lines(bars_of(results)), ""]))
    for name, section in SECTIONS.items():
        lines = score_lines if name == "scores" else fit_lines
        found = [*lines(results[name])] if results[name] else ["Not measured."]
        command = f"`python -m benchmarks.sizes {name}`"
        about = [f"## {section.TITLE}\n", f"{command}\n{section.ABOUT}", *found, ""]
        text.append("\n".join(about))
    return "\n".join(text)
