"""Rankers that stop by folds beside a held-out part of queries: ``make bench-ranking``.

Two public tables of queries, which are no part of the project: files of two
repositories, of which CLONES has clones as ``CLONES/<owner>/<name>``. "lambdarank" is
an example of LightGBM, 251 queries and 3773 rows; "mq2008" are the training and test
queries of the first fold of MQ2008 of LETOR 4.0, 627 queries and 12504 rows.

Random splits by query, a quarter for the test. The same trees are stopped in three
ways: ours, by five folds; by a fifth of the training queries that is held out, as the
library stops early by NDCG@10, with the same patience of 50 trees; and likewise with a
refit to all training queries with that number of trees. Mean NDCG@10 of the test
queries, with gains of 2^y - 1; differences with their standard errors over splits,
which overlap, so that these are too small; medians of the numbers of trees; and mean
processor seconds of one thread.
"""

import io
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupShuffleSplit
from threadpoolctl import threadpool_limits

from skacv import TrajectoryEarlyStoppingCV

from .framework import arguments, header, heading, line

LIGHTGBM = "microsoft/LightGBM", "bae0b7ba953341a32b2a9c5c5c437a1b976f576f"
L2R = "houchenyu/L2R", "1ee24ddddb0bd3d4810a2e72fdce082cd6c33c47"
PATIENCE, MOST_TREES, RATE = 50, 1000, 0.1


@dataclass(frozen=True)
class Table:
    """Rows of queries, those of a query together."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray

    def of(self, rows):
        """Some of the rows."""
        return Table(self.X[rows], self.y[rows], self.query[rows])

    def split(self, share, seed):
        """Rows without a random share of the queries, and those of these."""
        splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
        ((kept, others),) = splitter.split(self.X, self.y, self.query)
        return self.of(kept), self.of(others)

    @property
    def sizes(self):
        """Numbers of rows of the queries."""
        return np.unique(self.query, return_counts=True)[1]


def read(clones, source, path):
    """The bytes of a file of a repository."""
    repository, commit = source
    command = ["git", "-C", clones / repository, "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def lambdarank(clones):
    """The example of LightGBM."""
    parts, targets, sizes = [], [], []
    for name in ("train", "test"):
        path = f"examples/lambdarank/rank.{name}"
        file = io.BytesIO(read(clones, LIGHTGBM, path))
        rows, y = load_svmlight_file(file, n_features=301, zero_based=True)
        parts.append(rows.toarray())
        targets.append(y)
        sizes += [int(n) for n in read(clones, LIGHTGBM, f"{path}.query").split()]
    query = np.repeat(np.arange(len(sizes)), sizes)
    return Table(np.vstack(parts), np.concatenate(targets), query)


def mq2008(clones):
    """The first fold of MQ2008: relevance, query and 46 columns of every row."""
    paths = "dataset/train.npy", "dataset/test.npy"
    parts = [np.load(io.BytesIO(read(clones, L2R, path))) for path in paths]
    rows = np.vstack(parts)
    _, query = np.unique(rows[:, 1], return_inverse=True)
    rows, query = (array[np.argsort(query, kind="stable")] for array in (rows, query))
    return Table(rows[:, 2:], rows[:, 0], query)


TABLES = {"lambdarank": lambdarank, "mq2008": mq2008}


def lightgbm():
    """LightGBM, and a fit that stops by other queries, with its number of trees."""
    import lightgbm

    def make(n_trees):
        settings = {"learning_rate": RATE, "verbose": -1, "n_jobs": 1}
        return lightgbm.LGBMRanker(n_estimators=n_trees, random_state=0, **settings)

    def stop(fitted, judging):
        model = make(MOST_TREES).fit(
            fitted.X,
            fitted.y,
            group=fitted.sizes,
            eval_X=judging.X,
            eval_y=judging.y,
            eval_group=[judging.sizes],
            eval_at=[10],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        return model, model.best_iteration_

    return make, stop, lambda table: {"group": table.sizes}


def xgboost():
    """XGBoost, likewise."""
    import xgboost

    settings = {"learning_rate": RATE, "n_jobs": 1, "random_state": 0}

    def make(n_trees):
        return xgboost.XGBRanker(n_estimators=n_trees, **settings)

    def stop(fitted, judging):
        stopping = {"early_stopping_rounds": PATIENCE, "eval_metric": "ndcg@10"}
        model = xgboost.XGBRanker(n_estimators=MOST_TREES, **settings, **stopping)
        model.fit(
            fitted.X,
            fitted.y,
            qid=fitted.query,
            eval_set=[(judging.X, judging.y)],
            eval_qid=[judging.query],
        )
        return model, model.best_iteration + 1

    return make, stop, lambda table: {"qid": table.query}


def catboost():
    """CatBoost, likewise."""
    import catboost

    settings = {"learning_rate": RATE, "thread_count": 1, "random_seed": 0}
    settings |= {"verbose": False, "allow_writing_files": False}

    def make(n_trees, **more):
        return catboost.CatBoostRanker(iterations=n_trees, **settings, **more)

    def stop(fitted, judging):
        pool = catboost.Pool(judging.X, judging.y, group_id=judging.query)
        metric = "NDCG:top=10;type=Exp"
        model = make(MOST_TREES, eval_metric=metric, early_stopping_rounds=PATIENCE)
        model.fit(fitted.X, fitted.y, group_id=fitted.query, eval_set=pool)
        return model, model.tree_count_

    return make, stop, lambda table: {"group_id": table.query}


RANKERS = {"LightGBM": lightgbm, "XGBoost": xgboost, "CatBoost": catboost}


def mean_ndcg(table, scores):
    """The mean NDCG@10 of queries; 1 of one without relevant rows."""
    values = []
    for query in np.unique(table.query):
        rows = table.query == query
        gains = 2.0 ** table.y[rows] - 1
        is_open = gains.any() and len(gains) > 1
        value = ndcg_score([gains], [scores[rows]], k=10) if is_open else 1.0
        values.append(value)
    return np.mean(values)


def compared(table, ranker, seed):
    """Of one split: NDCG@10, numbers of trees and seconds of each way; our estimate."""
    make, stop, queries_of = RANKERS[ranker]()
    training, test = table.split(0.25, seed)
    begun = process_time()
    ours = TrajectoryEarlyStoppingCV(make(MOST_TREES), patience=PATIENCE)
    ours.fit(training.X, training.y, qid=training.query)
    times = [process_time() - begun]
    begun = process_time()
    held_out, n_trees = stop(*training.split(0.2, seed))
    times.append(process_time() - begun)
    refit = make(n_trees).fit(training.X, training.y, **queries_of(training))
    times.append(process_time() - begun)
    models = ours, held_out, refit
    values = [mean_ndcg(test, model.predict(test.X)) for model in models]
    return values, (ours.best_iter_, n_trees), times, 1 - ours.best_score_corrected_


def lines_of(name, table, n_splits):
    """Lines of a table of queries: one for each ranker."""
    for ranker in RANKERS:
        splits = [compared(table, ranker, seed) for seed in range(n_splits)]
        values, trees, times, estimates = (np.array(part) for part in zip(*splits))
        cells = [f"{value:.4f}" for value in values.mean(axis=0)]
        for gains in values[:, :1].T - values[:, 1:].T:
            error = gains.std(ddof=1) / np.sqrt(n_splits)
            cells.append(f"{gains.mean():+.4f}±{error:.4f}")
        cells.append(f"{estimates.mean():.4f}")
        cells.append(", ".join(f"{number:.0f}" for number in np.median(trees, axis=0)))
        cells += [f"{seconds:.1f}" for seconds in times.mean(axis=0)]
        yield line(name, ranker, *cells)


if __name__ == "__main__":
    args = arguments(__doc__, TABLES, splits=20, clones="clones")
    columns = "table", "ranker", "ours", "held out", "and refit"
    columns += "ours less held out", "ours less refit", "our estimate", "trees"
    columns += "seconds", "of held out", "and refit"
    said = __doc__.partition("\n\n")[2].strip()
    lines = [
        "# Stopped rankers beside those of a held-out part of the queries\n",
        f"`make bench-ranking` ({heading(('lightgbm', 'xgboost', 'catboost'))}), "
        f"{args.splits} splits\n",
        f"{said}\n",
        *header(*columns),
    ]
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for name in args.names or TABLES:
            for one in lines_of(name, TABLES[name](Path(args.clones)), args.splits):
                lines.append(one)
                print(one, flush=True)
    if args.output:
        args.output.write_text("\n".join([*lines, ""]))
