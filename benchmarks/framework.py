"""Both sides timed in one process, rows of their ratios, and the files of results."""

import argparse
import csv
import json
import platform
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from zlib import crc32

import joblib
import numpy as np
from threadpoolctl import threadpool_limits


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


def alone(work, *arguments):
    """Run a work in a process of its own, which has nothing but what it imports."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


class Worker:
    """A process that does works, and is replaced where one takes too long."""

    def __init__(self, most_seconds):
        self.most_seconds = most_seconds
        self.pool = None

    def run(self, work):
        if self.pool is None:
            self.pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            return self.pool.submit(work).result(self.most_seconds)
        except (TimeoutError, BrokenProcessPool) as error:
            for process in list(self.pool._processes.values()):
                process.kill()
            self.pool = None
            return {"failed": type(error).__name__}


def tried(work, *arguments):
    """What a work gives on one thread, why it failed, or nothing without a library."""
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # peers that have not converged
            return work(*arguments)
    except ImportError:
        return None
    except Exception as error:  # libraries have classes of their own
        said = str(error).splitlines()
        return {"failed": f"{type(error).__name__}: {said[0] if said else ''}"}


LOOKED_AT, NOT_LOOKED_AT = "looked-at", "not-looked-at"


def half_of(name):
    """Which half a table is in, settled by its name before anything was run."""
    return (LOOKED_AT, NOT_LOOKED_AT)[crc32(name.encode()) % 2]


def peak_megabytes():
    """The most memory that this process has had, files that it maps included."""
    # ru_maxrss begins with that of the process which has started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def line(*cells):
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def header(*cells):
    """The first two lines of a Markdown table."""
    return [line(*cells), "|---" * len(cells) + "|"]


COLUMNS = header("name", "work", "against", "ours", "theirs", "ratio", "accuracy")


@dataclass(frozen=True)
class Row:
    """One comparison: seconds (or megabytes) of both sides, and their ratio."""

    work: str
    against: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    accuracy: str = ""

    @classmethod
    def speed(cls, work, against, ours, theirs, accuracy=""):
        """How many times faster than the opponent we are."""
        return cls(work, against, ours, theirs, theirs / ours, accuracy)

    @classmethod
    def cost(cls, work, against, ours, theirs, accuracy=""):
        """How many times a reference our work takes."""
        return cls(work, against, ours, theirs, ours / theirs, accuracy)

    def markdown(self, name):
        """A line of the table, for a benchmark of that name."""
        numbers = [self.ours, self.theirs, self.ratio]
        written = ["" if number is None else f"{number:.3g}" for number in numbers]
        return line(name, self.work, self.against, *written, self.accuracy)


def race(work, against, ours, theirs, accuracy=None, repeats=3):
    """A row of two functions that are timed in turn, and what results say."""
    (mine, outcome), (their, expected) = medians(ours, theirs, repeats=repeats)
    said = accuracy(outcome, expected) if accuracy else ""
    return Row.speed(work, against, mine, their, said)


def race_over_seeds(work, against, ours, theirs):
    """A row of seconds and true risks, shape (n_seeds, 2) of either side."""
    (mine, risk), (their, their_risk) = np.transpose(ours), np.transpose(theirs)
    worse, ratio = risk / their_risk, float(np.median(their / mine))
    said = f"true risk {np.median(worse):.3f} of its, at most {worse.max():.3f}"
    return Row(work, against, np.median(mine), np.median(their), ratio, said)


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
    """Print names and rows as they come, with the versions of packages; write them."""
    # Before the rows: a peer may bind the process to one processor.
    lines = [f"# {title}", "", heading(packages), "", *COLUMNS]
    print(*lines, sep="\n", flush=True)
    for name, row in rows:
        lines.append(row.markdown(name))
        print(lines[-1], flush=True)
    if output is not None:
        output.write_text("\n".join([*lines, ""]))


def write_sections(path, title, sections):
    """Write sections in the place of former ones of their commands, else at the end.

    Sections are by the command that prints them, and have a title and a text.
    """
    former = path.read_text().split("\n## ")[1:] if path.exists() else []
    # The command is what a section names first.
    outcome = {text.split("`")[1]: f"## {text.rstrip()}\n" for text in former}
    for command, (subject, text) in sections.items():
        versions = f"`{command}` ({heading(PEERS)})"
        outcome[command] = f"## {subject}\n\n{versions}\n\n{text}\n"
    path.write_text("\n".join([f"# {title}\n", *outcome.values()]))


def kept(path, work, same=None, is_new=True, is_old=True):
    """What a file holds of a work, as a dict; else the work is done, and kept there.

    A file is of the same work if it holds what is the same. The work may be done if it
    is new, and a file will do that has not failed if it may be old.
    """
    same, row = same or {}, json.loads(path.read_text()) if path.exists() else None
    if row is not None and not same.items() <= row.items():
        row = None
    if not is_new or (is_old and row is not None and "failed" not in row):
        return row
    row = work()
    if row is not None:
        row |= same
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(row, indent=1) + "\n")
        part.replace(path)
    return row


class Fits:
    """A file of fits, one a row, so that a run that was interrupted goes on.

    Places are types of the columns that say which fit a row is, by name; figures are
    the names of its numbers. A fit that failed has its reason instead.
    """

    def __init__(self, path, places, figures):
        self.path, self.places = path, places
        self.columns = (*places, *figures, "failed")

    def read(self):
        """Figures by name, or why the fit failed, by the tuple of its places."""
        if not self.path.exists():
            return {}
        fits = {}
        with self.path.open(newline="") as lines:
            for row in csv.DictReader(lines):
                place = tuple(kind(row.pop(name)) for name, kind in self.places.items())
                known = {name: text for name, text in row.items() if text}
                if "failed" not in known:
                    known = {name: float(text) for name, text in known.items()}
                fits[place] = known
        return fits

    def add(self, place, row):
        """Write one more fit, of a tuple of places."""
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as lines:
            writer = csv.DictWriter(lines, self.columns, "", lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(dict(zip(self.places, place)) | row)


def arguments(doc, names=(), **options):
    """What a command line says: names of those, output, and options by their defaults.

    Underscores stand for hyphens; False makes a switch, a tuple takes several words.
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


STUDIES = {}


def study(*needs):
    """Register a study under its name; it needs these packages, "tables" or "small"."""

    def register(lines):
        lines.needs = needs
        STUDIES[lines.__name__.replace("_", "-")] = lines
        return lines

    return register
