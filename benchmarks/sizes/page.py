"""How do error, time and memory compare, size by size? The page of all sizes."""

from statistics import median

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
"default", compared with LightGBM and CatBoost with at most 5000 trees, stopped by a
fifth of the rows after 50 trees without improvement, and
`HistGradientBoosting(early_stopping=True, n_iter_no_change=50, max_iter=5000,
validation_fraction=0.2)`. All are fitted in turn in one process with the same number of
threads; seconds are medians, processor seconds those of the last fit. The excess is the
distance from the truth: the squared distance to the true mean, or the divergence from
the true probabilities. Memory is measured in a separate process: the peak megabytes of
the fit, above X, y and imports. Each case has the day on which it was measured.
"""


def number(value, digits=3):
    return NONE if value is None else f"{value:.{digits}g}"


def bars_of(results):
    """Numbers that have limits, by section.

    Parameters
    ----------
    results : dict of str to dict
        By section, what its cases have given.
    """
    return {name: [*section.bars(results[name])] for name, section in SECTIONS.items()}


def bar_lines(bars):
    yield from header("section", "case", "what", "measured")
    for section, of_section in bars.items():
        for bar in of_section:
            yield line(section, bar.case, bar.what, number(bar.value, 4))


def summary_lines(results):
    """Our error and seconds over those of each opponent, by section and size."""
    yield from header(
        *(
            "section",
            "rows",
            "opponent",
            "cases",
            "our error over its, median",
            "worst",
        ),
        *("with the smaller error", "our seconds over its, median", "slowest"),
    )
    kinds = {
        ("rows", "500 to 5000"): [
            case for case in results["rows"] if not is_large(case)
        ],
        ("rows", "20,000 to a million"): [*filter(is_large, results["rows"])],
        ("tables", "more than 20,000"): [*results["tables"]],
    }
    for (section, size), cases in kinds.items():
        found = [results[section][case]["methods"] for case in cases]
        for opponent in dict.fromkeys(name for methods in found for name in methods):
            pairs = [
                (next(iter(methods.values())), methods[opponent])
                for methods in found
                if "error" in methods.get(opponent, {})
            ]
            pairs = [(ours, theirs) for ours, theirs in pairs if ours is not theirs]
            if not pairs:
                continue
            errors = [ours["error"] / theirs["error"] for ours, theirs in pairs]
            times = [ours["seconds"] / theirs["seconds"] for ours, theirs in pairs]
            yield line(
                *(section, size, opponent, len(pairs)),
                *(f"{median(errors):.3f}", f"{max(errors):.3f}"),
                sum(ratio < 1 for ratio in errors),
                *(number(median(times)), number(max(times))),
            )


def is_large(case):
    """Whether a case of simulated rows has limits against LightGBM."""
    return int(case.rpartition("-")[2]) >= rows.MANY_ROWS


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
    """A line for every fit of ours whose own estimates are compared with the truth."""
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
    text.append("\n".join(["## Summary\n", *summary_lines(results), ""]))
    text.append("\n".join(["## Ratios and means\n", *bar_lines(bars_of(results)), ""]))
    for name, section in SECTIONS.items():
        lines = score_lines if name == "scores" else fit_lines
        found = [*lines(results[name])] if results[name] else ["Not measured."]
        command = f"`python -m benchmarks.sizes {name}`"
        about = [f"## {section.TITLE}\n", f"{command}\n{section.ABOUT}", *found, ""]
        text.append("\n".join(about))
    return "\n".join(text)
