"""Numbers that R found: each table is written by the script of the same name."""

from csv import DictReader
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


def read_rows(name):
    """The columns of the rows that R was fitted to, by their names."""
    with open(FOLDER / f"{name}_rows.csv") as file:
        rows = list(DictReader(file))
    return {
        column: np.array([float(row[column]) for row in rows]) for column in rows[0]
    }


def read_results(name, folder=FOLDER):
    """What R, or the package of the folder, found, by the names of the script."""
    results = {}
    with open(folder / f"{name}.csv") as file:
        for row in DictReader(file):
            results.setdefault(row["name"], []).append(float(row["value"]))
    return {name: np.array(values) for name, values in results.items()}
