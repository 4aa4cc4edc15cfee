"""Is the default as good as the best peer on unseen tables? ``make bench-unseen``.

Tables are those of ``tables.csv``, in the folder that SKACV_TABLES names; ``--half``
and ``--only`` take some of them. All models have them as raw frames. Every fit is kept
in the folder that SKACV_UNSEEN names, so that a run that was interrupted goes on and
peers are fitted once; ours are fitted anew each time. ``--methods`` takes names,
"ours", "peers", "six" (the peers that the claim about raw frames names) or "none", and
the page has all that are kept.
"""

import json
import os
import re
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from ..framework import arguments
from .page import page
from .peers import PEERS, SIX
from .tables import HALVES, listed, read
from .views import indicators

CACHE = Path(os.environ.get("SKACV_UNSEEN", "output/unseen"))
MOST_TRAINING, MOST_TEST = 1000, 5000
# From so many training rows on there are two splits, else three: few rows tell less.
TWO_SPLITS = 500
# What is set of ours, by name: the default, and what it chooses among.
OURS = {
    "default": {},
    "encoded": {},
    "best member": {"rule": "min"},
    "blend": {"rule": "blend"},
}
SCORE = "best_score_corrected_"


def ours(task, name):
    """Ours with nothing set but what its name says, on the raw frame or encoded."""
    kinds = {
        "regression": SelfStoppingRegressor,
        "classification": SelfStoppingClassifier,
    }
    model = kinds[task](random_state=0, **OURS[name])
    return make_pipeline(indicators(task), model) if name == "encoded" else model


def methods(task):
    """What is compared, by name: functions that give an estimator of raw frames."""
    mine = {name: partial(ours, task, name) for name in OURS}
    return mine | {name: partial(peer, task) for name, peer in PEERS[task].items()}


def n_training(n):
    """Rows that train, of n."""
    return min(n // 2, MOST_TRAINING)


def errors_of(task, model, X, y, n_classes):
    """Test errors by their names."""
    predicted = np.ravel(model.predict(X))
    if task == "regression":
        return {"mse": float(np.mean((predicted - y) ** 2))}
    loss = log_loss(y, model.predict_proba(X), labels=np.arange(n_classes))
    return {"log loss": float(loss), "error rate": float(np.mean(predicted != y))}


def fitted(task, build, X, y, seed):
    """Fit one method on one split, classes in their shares.

    Returns
    -------
    dict
        Errors, seconds of a processor, and what ours tell.
    """
    size = n_training(len(y))
    X_train, X_test, y_train, y_test = train_test_split(
        X,
        y,
        train_size=size,
        test_size=min(len(y) - size, MOST_TEST),
        random_state=seed,
        stratify=y if task == "classification" else None,
    )
    begun = process_time()
    model = build().fit(X_train, y_train)
    results = {"seconds": process_time() - begun}
    results |= errors_of(task, model, X_test, y_test, len(np.unique(y)))
    last = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(last, SCORE):
        results[SCORE] = getattr(last, SCORE)
    return results | {"n": size, "p": X.shape[1], "spread": float(np.var(y_test))}


def tried(task, build, X, y, seed):
    """The same, or why there is none; nothing where a library is not installed."""
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # peers that have not converged
            return fitted(task, build, X, y, seed)
    except ImportError:
        return None
    except Exception as error:  # libraries have classes of their own
        return {"failed": str(error).splitlines()[0]}


def run_table(table, selected):
    """Fit what is wanted and not kept, and collect all that is kept.

    Parameters
    ----------
    table : Table
    wanted : collection of str
        Names of methods; of ours no kept fit will do.

    Returns
    -------
    dict of list of dict
        By the name of a method, what every split has found; None for nothing.
    """
    X, y, fingerprint = read(table)
    same = {"fingerprint": fingerprint, "rows": n_training(len(y))}
    folder = CACHE / table.name
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, build in methods(table.task).items():
        results[name] = []
        for seed in range(2 if n_training(len(y)) >= TWO_SPLITS else 3):
            path = folder / f"{re.sub(r'[^a-zA-Z0-9]+', '-', name)}-{seed}.json"
            row = json.loads(path.read_text()) if path.exists() else None
            if row is not None and not same.items() <= row.items():
                row = None
            is_done = row is not None and "failed" not in row and name not in OURS
            if name in selected and not is_done:
                row = tried(table.task, build, X, y, seed)
                if row is not None:
                    part = path.with_suffix(".part")
                    part.write_text(json.dumps(row | same, indent=1) + "\n")
                    part.replace(path)
            results[name].append(row)
    return results


def names_of(chosen):
    """Names of methods, where "ours" and "peers" are all of a kind."""
    peers = {name for of_task in PEERS.values() for name in of_task}
    groups = {"ours": set(OURS), "peers": peers, "six": SIX, "none": set()}
    if unknown := set(chosen) - set(groups) - peers - set(OURS):
        raise SystemExit(f"no such methods: {', '.join(sorted(unknown))}")
    return set().union(*(groups.get(name, {name}) for name in chosen))


if __name__ == "__main__":
    every = {"half": HALVES, "only": (), "methods": ("ours", "peers")}
    args = arguments(__doc__, **every)
    selected, results = names_of(args.methods), {}
    for table in listed(args.half, args.only):
        begun = perf_counter()
        results[table] = run_table(table, selected)
        n_complete = sum(None not in rows for rows in results[table].values())
        elapsed = perf_counter() - begun
        print(f"{table.name}: {n_complete} methods, {elapsed:.0f} s", flush=True)
    text = page(results)
    print(text)
    if args.output:
        args.output.write_text(text)
