"""Which tables has nobody tuned to, and where do they come from?

``tables.csv`` lists them. They are no part of the project: Rdatasets has them, a
collection of the data of R packages (https://github.com/vincentarelbundock/Rdatasets,
commit 1dcc2bf, as ``csv/<source>.csv``). With a copy of its folder ``csv``

    SKACV_TABLES=FOLDER python -m benchmarks.unseen.tables CSV

writes each into a file with the target as the last column, called ``target``.

No table has several rows of a person or a plot; in bikes, chicago and weather_perth a
row is a day. None is simulated, ships with scikit-learn, or is in real_data.py or the
study kernel-scores. Halves were given before any model was run: in turn, in the order
of the CRC32 of the names of a task. But the spectra of meats, by which an earlier
default was judged, can only tune.
"""

import argparse
import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ.get("SKACV_TABLES", "tables"))
LIST = Path(__file__).with_suffix(".csv")
TASKS = ("regression", "classification")
HALVES = ("tune", "report")
# Of a column of names.
MISSING = "missing"


@dataclass(frozen=True)
class Table:
    """A row of the list.

    Parameters
    ----------
    name : str
        Of the file, without its ending.
    task : {"regression", "classification"}
    half : {"tune", "report"}
    source : str
        Package and item of Rdatasets.
    target : str
        The column to predict.
    dropped : str
        Columns that name rows, or give the target away, with spaces between them.
    log : {"", "log"}
        Whether the logarithm is predicted: of prices, wages and the like.
    """

    name: str
    task: str
    half: str
    source: str
    target: str
    dropped: str
    log: str


def listed(halves=HALVES, names=()):
    """The tables of some halves, or of these names."""
    with LIST.open(newline="") as rows:
        tables = [Table(**row) for row in csv.DictReader(rows)]
    if unknown := set(names) - {table.name for table in tables}:
        raise SystemExit(f"no such tables: {', '.join(sorted(unknown))}")
    return [
        table
        for table in tables
        if table.half in halves and (not names or table.name in names)
    ]


def as_kept(table, frame):
    """A table of Rdatasets as it is kept, the target last.

    Parameters
    ----------
    table : Table
    frame : DataFrame
    """
    frame = frame.dropna(subset=table.target)
    target = frame[table.target].rename("target")
    columns = frame.drop(columns=["rownames", table.target, *table.dropped.split()])
    return columns.join(np.log(target) if table.log else target)


def read(name, is_class=False):
    """Columns and targets of a table; categories as indicators, for everyone alike.

    Numbers that are missing become the median of their column, and a missing category
    is one of its own. Nothing of that looks at targets.

    Parameters
    ----------
    name : str
    is_class : bool

    Returns
    -------
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
        Classes are 0, 1, ...
    """
    import pandas as pd

    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise SystemExit(
            f"There is no {path}: SKACV_TABLES names the folder with the tables, and "
            "benchmarks/unseen/tables.py says how to make it."
        )
    frame = pd.read_csv(path)
    y = frame.pop("target")
    y = pd.factorize(y, True)[0] if is_class else y.to_numpy(float)
    frame = frame.fillna(frame.median(numeric_only=True)).fillna(MISSING)
    return pd.get_dummies(frame, drop_first=True).to_numpy(float), y


if __name__ == "__main__":
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("csv", type=Path, help="folder csv of a copy of Rdatasets")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for table in listed():
        frame = pd.read_csv(arguments.csv / f"{table.source}.csv")
        as_kept(table, frame).to_csv(FOLDER / f"{table.name}.csv", index=False)
