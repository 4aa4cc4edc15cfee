"""Is the default as good with a million rows as with 500? ``make bench-sizes``.

Sections are rows, scores, shapes and tables, all if none is named; ``--only`` takes
patterns of names of cases, such as ``regression-20000``, ``*-500`` or ``adult``. What a
case has given is kept in the folder that SKACV_SIZES names, so that a run that was
interrupted goes on, and the page has all that is kept; with ``--anew`` cases that are
kept are measured again. ``--methods`` names those of the tables: on many classes or
categories CatBoost takes long. ``--share 0.01`` takes so many of the rows of each case,
to see that it runs; it keeps them apart. Tables are in the folder that SKACV_TABLES
names.
"""

import json
import os
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

import joblib

from ..framework import arguments, record
from .measure import Settings
from .page import LIBRARIES, SECTIONS, TITLE, bars_of, page

FOLDER = Path(os.environ.get("SKACV_SIZES", "output/sizes"))


def kept_in(folder):
    """What cases have given, by section and name."""
    results = {section: {} for section in SECTIONS}
    for section, module in SECTIONS.items():
        for case in module.cases():
            path = folder / section / f"{case}.json"
            if path.exists():
                results[section][case] = json.loads(path.read_text())
    return results


def measure(sections, patterns, settings, folder, anew=False):
    """Measure cases that are not kept yet, and keep each as soon as it is done.

    Parameters
    ----------
    sections, patterns : list of str
        Names of sections, and of cases; all without any.
    settings : Settings
    folder : Path
    anew : bool
        Also those that are kept.

    Yields
    ------
    str, str, dict
        Section, name of the case, and what it has given.
    """
    for section in sections or SECTIONS:
        for case, measured in SECTIONS[section].cases().items():
            path = folder / section / f"{case}.json"
            is_wanted = any(fnmatchcase(case, pattern) for pattern in patterns or ["*"])
            if not is_wanted or (path.exists() and not anew):
                continue
            outcome = record(LIBRARIES) | asdict(settings) | measured(settings)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            part.write_text(json.dumps(outcome, indent=1) + "\n")
            part.replace(path)
            yield section, case, outcome


def write(results, output):
    """The page, and the same as JSON beside it."""
    bars = [
        {"section": section, **asdict(bar), "is_met": bar.is_met}
        for section, of_section in bars_of(results).items()
        for bar in of_section
    ]
    for bar in bars:
        bar["most"] = None if bar["most"] == float("inf") else bar["most"]
    outcome = {"title": TITLE, **record(LIBRARIES), "bars": bars, "cases": results}
    output.write_text(page(results))
    output.with_suffix(".json").write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    args = arguments(
        __doc__,
        SECTIONS,
        only=(),
        methods=(),
        repeats=3,
        threads=joblib.cpu_count(),
        share=1.0,
        anew=False,
    )
    settings = Settings(args.threads, args.repeats, args.share, args.methods)
    folder = FOLDER if args.share == 1 else FOLDER / f"share-{args.share:g}"
    for section, case, outcome in measure(
        args.names, args.only, settings, folder, args.anew
    ):
        print(f"{section} {case}", flush=True)
        for name, numbers in outcome["methods"].items():
            print(f"  {name}: {numbers}", flush=True)
        if args.output is not None:
            write(kept_in(folder), args.output)
    if args.output is not None:
        write(kept_in(folder), args.output)
        for section, bars in bars_of(kept_in(folder)).items():
            for bar in bars:
                if not bar.is_met:
                    found = f"{bar.what}: {bar.value:.4g}, not {bar.limits}"
                    print(f"Outside its limits: {section} {bar.case}, {found}")
