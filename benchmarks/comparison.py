"""Every measured pair, in one table: ``python -m benchmarks.comparison``.

Rewrites the table of ``benchmarks/results/measured_pairs.md`` from what ``make bench``
and ``make bench-peers`` have left in the same folder, and prints the rows that are
outside the limits of their benchmarks.
"""

import json
import re
from pathlib import Path

from .framework import LIMIT, Row, header, line, without_limits

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "results" / "measured_pairs.md"
HEADING = "# Every measured pair\n"
# Files of results, and what prints a benchmark of theirs.
COMMANDS = {"bench": "python -m benchmarks", "peers": "python -m benchmarks.peers"}
COLUMNS = header("work", "against", "ratio", "outcome", "accuracy", "command")
# A number of the accuracy that has a limit.
LIMITED = re.compile(rf"(\d[\d.e+-]*)[^\d;]*?{LIMIT.pattern}")
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def outcome(row):
    """Who is faster, or that the ratio is what our work costs.

    Parameters
    ----------
    row : dict
        As in the JSON of the results.
    """
    if row["ratio"] is None:
        return "not measured"
    if row["required"].startswith("<="):
        return "cost"
    return "faster" if row["ratio"] > 1 else "**slower**"


def is_within_limits(row):
    """Whether the ratio and the accuracy of a row keep the limits of its benchmark."""
    limited = LIMITED.findall(row["accuracy"])
    if any(float(value) > float(most) for value, most, _ in limited):
        return False
    if row["ratio"] is None or not row["required"]:
        return True
    relation, limit = row["required"].split()
    ratio, limit = row["ratio"], float(limit)
    return ratio >= limit if relation == ">=" else ratio <= limit


def line_of(row):
    """A row as the Markdown of the results has it."""
    numbers = {key: value for key, value in row.items() if key != "name"}
    return Row(**numbers).markdown(row["name"])


def phrase_of(row, rows):
    """The shortest piece of a row that no other of its benchmark has.

    It names the row in the comment that says where its numbers are from.

    Returns
    -------
    list of str
        Empty if there is no other.

    Raises
    ------
    ValueError
        If there is none: another row is of the same work against the same opponent.
    """
    rest = [r for r in rows if r["name"] == row["name"] and r is not row]
    if not rest:
        return []
    rest = [line_of(second) for second in rest]
    sides = [row["work"].split(), row["against"].split()]
    for length in range(1, max(map(len, sides)) + 1):
        for words in sides:
            for start in range(len(words) - length + 1):
                phrase = " ".join(words[start : start + length])
                if not any(phrase in second for second in rest):
                    return [f"[{phrase}]"]
    raise ValueError(f"Another row is like {row['work']!r} of {row['name']}.")


def shown(ratio):
    """Three digits, as the results have them, without an exponent."""
    if ratio is None:
        return ""
    rounded = float(f"{ratio:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:.3g}"


def rows_of(file):
    """The rows that a command has left, as dicts."""
    path = ROOT / "benchmarks" / "results" / f"{file}.json"
    return json.loads(path.read_text())["rows"]


def table():
    """The lines of the table."""
    lines = [*COLUMNS]
    for file, command in COMMANDS.items():
        rows = rows_of(file)
        for row in rows:
            source = " ".join([file, row["name"], *phrase_of(row, rows)])
            cells = [
                row["work"],
                row["against"],
                shown(row["ratio"]),
                outcome(row),
                without_limits(row["accuracy"]),
                f"`{command} {row['name']}` <!-- {source} -->",
            ]
            lines.append(line(*cells))
    return "\n".join(lines) + "\n"


def with_table(page):
    """The text of the page with the table as it is now."""
    before, heading, section = page.partition(HEADING)
    section, n_tables = TABLE.subn(lambda _: table(), section, count=1)
    if not n_tables:
        raise ValueError(f"The page has no table under {HEADING.strip()!r}.")
    return before + heading + section


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
    print(f"Written: {PAGE}")
    for file in COMMANDS:
        for row in rows_of(file):
            if not is_within_limits(row):
                print(f"Outside its limits: {line_of(row)}")
