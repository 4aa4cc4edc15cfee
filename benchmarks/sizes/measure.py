"""How well, how fast and in how much memory do methods fit the same rows?

Methods are fitted by turns in one process, with the same number of threads; seconds are
medians, errors those of the last fit. Memory is that of a process of its own which has
nothing but X, y and what is imported: the most that it has had during the fit (VmHWM of
Linux), less what it had before.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import joblib
import numpy as np
from scipy.special import rel_entr
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from ..framework import medians, seconds
from ..large import peak_megabytes
from .data import probabilities


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Parameters
    ----------
    threads, repeats : int
    share : float
        Of the rows of every case: less than one to see that it runs.
    methods : sequence of str, default=()
        Names of the methods; all without any.
    """

    threads: int
    repeats: int
    share: float
    methods: Sequence[str] = ()

    def rows(self, n):
        """So many rows of n."""
        return n if self.share == 1 else max(100, round(self.share * n))


@dataclass(frozen=True)
class Failed:
    """Why there is no model."""

    reason: str


def tried(build, X, y):
    """A fitted model, or why there is none, and seconds of processors."""
    begun = process_time()
    try:
        model = build().fit(X, y)
    except ImportError as error:
        model = Failed(f"not installed: {error}")
    except Exception as error:  # libraries have classes of their own
        model = Failed(str(error).splitlines()[0] if str(error) else repr(error))
    return model, process_time() - begun


def errors(model, data):
    """The error on fresh rows, and what it is above that of the truth.

    The excess is a mean over the labels of the fresh rows, given their columns: the
    squared distance to the truth, or the divergence of the true probabilities.

    Returns
    -------
    dict
        "error" is the mean squared error or log loss, "excess" is there with a truth.
    """
    if data.task == "regression":
        predicted = np.ravel(model.predict(data.X_fresh))
        results = {"error": np.mean((predicted - data.y_fresh) ** 2)}
        if data.truth is not None:
            results["excess"] = np.mean((predicted - data.truth) ** 2)
    else:
        predicted = model.predict_proba(data.X_fresh)
        labels = np.arange(predicted.shape[1])
        results = {"error": log_loss(data.y_fresh, predicted, labels=labels)}
        if data.truth is not None:
            true = probabilities(data.truth)
            true = np.column_stack([1 - true, true])
            smallest = np.finfo(float).tiny
            divergences = rel_entr(true, np.maximum(predicted, smallest))
            results["excess"] = divergences.sum(axis=1).mean()
    return {name: float(value) for name, value in results.items()}


def compared(methods, data, settings):
    """Fit methods by turns.

    Parameters
    ----------
    methods : dict of str to callable
        Functions of the task, the threads and whether X is a frame.
    data : Data
    settings : Settings

    Returns
    -------
    dict of str to dict
        By method "seconds", "processor_seconds" of the last fit, "megabytes", what
        ``errors`` has, "said" where a model tells its error, "weights" where it is a
        blend; "failed" where there is none.
    """
    is_frame = hasattr(data.X, "columns")
    builders = {
        name: partial(method, data.task, settings.threads, is_frame)
        for name, method in methods.items()
    }
    works = [partial(tried, build, data.X, data.y) for build in builders.values()]
    for build in builders.values():
        with suppress(ImportError):
            build()  # imports are in no fit's seconds
    with warnings.catch_warnings(), threadpool_limits(settings.threads):
        warnings.simplefilter("ignore")  # peers that have not converged
        fits = medians(*works, repeats=settings.repeats)
        results = {
            name: outcome(model, elapsed, processors, data)
            for name, (elapsed, (model, processors)) in zip(builders, fits)
        }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.joblib"
        joblib.dump((data.X, data.y), path)
        for name, build in builders.items():
            if "failed" not in results[name]:
                megabytes = alone(build, path, settings.threads)
                results[name]["megabytes"] = megabytes
    return results


def outcome(model, elapsed, processors, data):
    """What is kept of a fit."""
    if isinstance(model, Failed):
        return {"failed": model.reason}
    results = {"seconds": elapsed, "processor_seconds": processors}
    results |= errors(model, data)
    if hasattr(model, "best_score_corrected_"):
        results["said"] = float(model.best_score_corrected_)
    if hasattr(model, "weights_"):
        results["weights"] = {
            name: round(float(weight), 3) for name, weight in model.weights_.items()
        }
    return results


def alone(build, path, threads):
    """Megabytes that a fit takes above X, y and imports, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_peak_of_fit, build, path, threads).result()


def _peak_of_fit(build, path, threads):
    warnings.simplefilter("ignore")
    with threadpool_limits(threads):
        model = build()
        X, y = joblib.load(path)
        # From here on, not from what reading has taken.
        Path("/proc/self/clear_refs").write_text("5")
        before = peak_megabytes()
        seconds(model.fit, X, y)
        return peak_megabytes() - before


def megabytes(X):
    """Of an array, a sparse matrix or a frame."""
    if hasattr(X, "memory_usage"):
        return float(X.memory_usage(deep=True).sum()) / 2**20
    return (X.data.nbytes if hasattr(X, "indptr") else X.nbytes) / 2**20
