"""What is measured: printed as it comes, written as Markdown and as JSON."""

import json
import platform
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import joblib

NAMES = {
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
}


# Of a table of rows, and the line under them.
COLUMNS = (
    "| name | work | against | ours | theirs | ratio | asked | accuracy |",
    "|---|---|---|---|---|---|---|---|",
)


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

    def markdown(self, name):
        """A line of the table, for a benchmark of that name."""
        numbers = [self.ours, self.theirs, self.ratio]
        written = ["" if number is None else f"{number:.3g}" for number in numbers]
        cells = [name, self.work, self.against, *written, self.asked, self.accuracy]
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
    rows : iterable of (str, Row)
        The benchmark's name, as the command takes it, and what it found.
    output : str or None
        Path of the Markdown file; the JSON lies beside it.
    packages : iterable of str
        Others whose versions matter.
    """
    lines = [*COLUMNS]
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
    for name, row in rows:
        found.append({"name": name, **asdict(row)})
        lines.append(row.markdown(name))
        print(lines[-1], flush=True)
    if output is None:
        return
    path = Path(output)
    path.write_text("\n".join([f"# {title}", "", first, "", *lines, ""]))
    record["rows"] = found
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


@dataclass(frozen=True)
class Section:
    """What one command prints, in a file of such sections."""

    title: str
    command: str
    text: str

    def markdown(self):
        return f"## {self.title}\n\n`{self.command}` ({heading()})\n\n{self.text}\n"


def write_sections(path, title, sections):
    """Write sections in the place of former ones of their commands, else at the end.

    Parameters
    ----------
    path : Path
    title : str
    sections : list of Section
    """
    former = path.read_text().split("\n## ")[1:] if path.exists() else []
    found = {command_of(text): f"## {text.rstrip()}\n" for text in former}
    found |= {section.command: section.markdown() for section in sections}
    path.write_text("\n".join([f"# {title}\n", *found.values()]))


def command_of(text):
    """The command that a section names first."""
    return text.split("`")[1]
