"""Tables of benchmarks: printed row by row, written as Markdown and as JSON."""

import json
import platform
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import joblib

RESULTS = Path(__file__).parent / "results"
NAMES = {
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
}


@dataclass(frozen=True)
class Row:
    """One comparison: seconds (or megabytes) of both sides, and their ratio."""

    work: str
    against: str
    ours: float | None
    theirs: float | None
    ratio: float | None
    asked: str = ""
    accuracy: str = ""

    def markdown(self):
        cells = (
            value
            if isinstance(value, str)
            else ("" if value is None else f"{value:.3g}")
            for value in asdict(self).values()
        )
        return f"| {' | '.join(cells)} |"


def machine():
    """What the numbers were measured on."""
    return f"{platform.machine()} with {joblib.cpu_count()} CPUs"


def versions(packages=()):
    """Versions of what is installed, of scikit-learn and what it stands on first."""
    found = {}
    for package in (*NAMES, *packages):
        try:
            found[NAMES.get(package, package)] = version(package)
        except PackageNotFoundError:
            continue
    return found


def heading(packages=()):
    """Date, versions and machine, for the record."""
    listed = [f"{name} {number}" for name, number in versions(packages).items()]
    python = f"Python {platform.python_version()}"
    return ", ".join([str(date.today()), python, *listed, machine()])


def report(title, rows, output, packages=()):
    """Print the rows as they come; with an output, write Markdown and JSON.

    Parameters
    ----------
    title : str
    rows : iterable of Row
    output : str or None
        Path of the Markdown file; the JSON lies beside it.
    packages : iterable of str
        Others whose versions matter.
    """
    lines = [
        "| work | against | ours | theirs | ratio | asked | accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    # Before the rows: a peer may bind the process to one processor.
    first, found = heading(packages), []
    record = {
        "title": title,
        "date": str(date.today()),
        "python": platform.python_version(),
        "versions": versions(packages),
        "machine": machine(),
    }
    for row in rows:
        found.append(row)
        lines.append(row.markdown())
        print(lines[-1], flush=True)
    if output is None:
        return
    path = Path(output)
    path.write_text("\n".join([f"# {title}", "", first, "", *lines, ""]))
    record["rows"] = [asdict(row) for row in found]
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
