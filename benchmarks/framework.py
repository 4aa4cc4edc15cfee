"""Both sides timed in one process, rows of their ratios, and the files of results."""

import argparse
import json
import platform
import re
import tracemalloc
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np

# ----------------------------------------------------------------------- times


def seconds(work, *arguments):
    begun = perf_counter()
    result = work(*arguments)
    return perf_counter() - begun, result


def medians(*works, repeats):
    """Median seconds and last result of each work, taken in turn."""
    times = [[] for _ in works]
    results = [None] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            elapsed, results[i] = seconds(work)
            times[i].append(elapsed)
    return [(float(np.median(t)), r) for t, r in zip(times, results)]


def peak_bytes(work, *arguments):
    """The most memory that Python and NumPy take for a work, above the start."""
    tracemalloc.start()
    work(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# ------------------------------------------------------------------------ rows


def line(*cells):
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def header(*cells):
    """The first two lines of a Markdown table."""
    return [line(*cells), "|---" * len(cells) + "|"]


COLUMNS = header("name", "work", "against", "ours", "theirs", "ratio", "accuracy")
# What a number of the accuracy should not exceed: a limit, or the opponent's number.
LIMIT = re.compile(r" \(<= ([\d.e+-]+)(, its)?\)")


def without_limits(accuracy):
    """What is said of the accuracy, with the opponent's numbers alone in brackets."""
    return LIMIT.sub(lambda limit: f" (its {limit[1]})" if limit[2] else "", accuracy)


@dataclass(frozen=True)
class Row:
    """One comparison: seconds (or megabytes) of both sides, and their ratio.

    The limits of ``required`` and ``accuracy`` are for those who change the code
    (``comparison.is_within_limits``); pages have the numbers.
    """

    work: str
    against: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    required: str = ""
    accuracy: str = ""

    @classmethod
    def speed(cls, work, against, ours, theirs, required="", accuracy=""):
        """How many times faster than the opponent we are."""
        return cls(work, against, ours, theirs, theirs / ours, required, accuracy)

    @classmethod
    def cost(cls, work, against, ours, theirs, required="", accuracy=""):
        """How many times a reference our work takes."""
        return cls(work, against, ours, theirs, ours / theirs, required, accuracy)

    def markdown(self, name):
        """A line of the table, for a benchmark of that name."""
        numbers = [self.ours, self.theirs, self.ratio]
        written = ["" if number is None else f"{number:.3g}" for number in numbers]
        said = without_limits(self.accuracy)
        return line(name, self.work, self.against, *written, said)


def race(work, against, ours, theirs, required="", accuracy=None, repeats=3):
    """A row of two functions that are timed in turn.

    Parameters
    ----------
    work, against : str
    ours, theirs : callable
    required : str
        What the ratio of their seconds over ours should be.
    accuracy : callable, optional
        What is said of the two results.
    repeats : int
    """
    (mine, outcome), (their, expected) = medians(ours, theirs, repeats=repeats)
    said = accuracy(outcome, expected) if accuracy else ""
    return Row.speed(work, against, mine, their, required, said)


def race_over_seeds(work, against, ours, theirs, required="", bound=""):
    """A row of seconds and true risks, a pair for each seed of either side.

    Parameters
    ----------
    work, against : str
    ours, theirs : array-like of shape (n_seeds, 2)
    required, bound : str
        What the ratio of seconds should be, and that of risks.
    """
    (mine, risk), (their, their_risk) = np.transpose(ours), np.transpose(theirs)
    worse = risk / their_risk
    bounded = f" ({bound})" if bound else ""
    said = f"true risk {np.median(worse):.3f} of its{bounded}, at most "
    numbers = (
        np.median(mine),
        np.median(their),
        float(np.median(their / mine)),
    )
    return Row(work, against, *numbers, required, f"{said}{worse.max():.3f}")


# ----------------------------------------------------------------------- files

NAMES = {"numpy": "NumPy", "scipy": "SciPy", "scikit-learn": "scikit-learn"}
# What studies compare with, where it is installed.
PEERS = ("flaml", "lightgbm", "catboost", "xrfm")


def record(packages=()):
    """Date, versions and machine: of scikit-learn and what it stands on first."""
    versions = {}
    for package in (*NAMES, *packages):
        try:
            versions[NAMES.get(package, package)] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "date": str(date.today()),
        "python": platform.python_version(),
        "versions": versions,
        "machine": f"{platform.machine()} with {joblib.cpu_count()} CPUs",
    }


def heading(packages=()):
    """The same as a line."""
    outcome = record(packages)
    listed = [f"{name} {number}" for name, number in outcome["versions"].items()]
    return ", ".join(
        [outcome["date"], f"Python {outcome['python']}", *listed, outcome["machine"]]
    )


def report(title, rows, output, packages=()):
    """Print the rows as they come; with an output, write Markdown and JSON.

    Parameters
    ----------
    title : str
    rows : iterable of (str, Row)
        The benchmark's name, as the command takes it, and what it found.
    output : Path or None
        The Markdown file; the JSON lies beside it.
    packages : iterable of str
        Others whose versions matter.
    """
    lines = [*COLUMNS]
    print(*lines, sep="\n", flush=True)
    # Before the rows: a peer may bind the process to one processor.
    first, outcome = heading(packages), {"title": title, **record(packages), "rows": []}
    for name, row in rows:
        outcome["rows"].append({"name": name, **asdict(row)})
        lines.append(row.markdown(name))
        print(lines[-1], flush=True)
    if output is not None:
        output.write_text("\n".join([f"# {title}", "", first, "", *lines, ""]))
        output.with_suffix(".json").write_text(json.dumps(outcome, indent=1) + "\n")


@dataclass(frozen=True)
class Section:
    """What one command prints, in a file of such sections."""

    title: str
    command: str
    text: str

    def markdown(self):
        versions = heading(PEERS)
        return f"## {self.title}\n\n`{self.command}` ({versions})\n\n{self.text}\n"


def write_sections(path, title, sections):
    """Write sections in the place of former ones of their commands, else at the end.

    Parameters
    ----------
    path : Path
    title : str
    sections : list of Section
    """
    former = path.read_text().split("\n## ")[1:] if path.exists() else []
    # The command is what a section names first.
    outcome = {text.split("`")[1]: f"## {text.rstrip()}\n" for text in former}
    outcome |= {section.command: section.markdown() for section in sections}
    path.write_text("\n".join([f"# {title}\n", *outcome.values()]))


# ---------------------------------------------------------------- command lines


def arguments(doc, names=(), **options):
    """What a command line says.

    Parameters
    ----------
    doc : str
        The module's, which ``--help`` prints.
    names : collection of str
        What the command takes; without any, it takes all.
    **options
        Defaults by name, with underscores for hyphens; False makes a switch, a tuple
        takes several words.

    Returns
    -------
    Namespace
        With ``names``, ``output`` and the options.
    """
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    if names:
        parser.add_argument("names", nargs="*", metavar="name", help=", ".join(names))
    for option, default in options.items():
        how = {"default": default, "help": f"{default} if not given"}
        if default is False:
            how = {"action": "store_true"}
        elif isinstance(default, tuple):
            how["nargs"] = "+"
        elif default is not None:
            how["type"] = type(default)
        parser.add_argument(f"--{option.replace('_', '-')}", **how)
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    outcome = parser.parse_args()
    if unknown := set(getattr(outcome, "names", ())) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return outcome


def named_rows(benchmarks, names):
    """Pairs of name and row, of benchmarks by their names; of all, if none is given."""
    for name in names or benchmarks:
        for row in benchmarks[name]():
            yield name, row
