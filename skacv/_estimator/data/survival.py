"""Survival times: what users pass, and targets of Cox's loss.

Inside of the package they are structured arrays with the fields "event" and "time",
whatever they are called outside.
"""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from ..._compat import on_host
from .checks import NUMBERS, check_complete, check_is_no_name, number_array

SURVIVAL = np.dtype([("event", bool), ("time", np.float64)])
FORMS = (
    "y must be a structured array of an event (a boolean field) and a time, as "
    "sksurv.util.Surv makes it, two columns (event, time), or a tuple of both"
)


def is_survival(y):
    """Whether targets are survival times as the package has them."""
    return getattr(y, "dtype", None) == SURVIVAL


def takes_survival(estimator):
    """How an estimator, or the last step of a pipeline, takes such times, or None."""
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return getattr(estimator, "_takes_survival", None)


def survival_array(y, signed=False):
    """Survival times (n_samples,) with the fields "event" and "time", checked.

    With ``signed`` they may be times alone, negative where a row is censored.

    Raises
    ------
    ValueError
        If y is none of the forms that are allowed, or has values that are no times.
    """
    if is_survival(y):
        return y
    event, time = _event_and_time(y, signed)
    for part in event, time:
        check_complete(part)
    if event.dtype.kind not in NUMBERS or not np.isin(event, (0, 1)).all():
        swapped = time.dtype.kind in NUMBERS and np.isin(time, (0, 1)).all()
        raise ValueError(
            "Events must be True and False, or 1 and 0: whether the event has happened "
            "at the time of the row"
            + (
                ". The second column has these values: y is (event, time), in this "
                "order."
                if swapped
                else f", got values such as {event[~np.isin(event, (0, 1))][0]!r}."
            )
        )
    time = number_array(time, "The times of y")
    if not np.isfinite(time).all():
        raise ValueError("Some times of y are infinite.")
    if (time < 0).any():
        raise ValueError(f"Some times of y are negative, such as {time.min():g}.")
    pairs = np.empty(len(time), SURVIVAL)
    pairs["event"], pairs["time"] = event.astype(bool), time
    return pairs


def _event_and_time(y, signed):
    """The two arrays that targets of some form have."""
    check_is_no_name(y, "y")
    if y is None:
        raise ValueError(f"The target y is None: {FORMS}.")
    is_pair = isinstance(y, tuple) and len(y) == 2
    if is_pair and all(np.ndim(on_host(part)) == 1 for part in y):
        event, time = (np.asarray(on_host(part)) for part in y)
        check_consistent_length(event, time)
        return event, time
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 2:
        return y.iloc[:, 0].to_numpy(), y.iloc[:, 1].to_numpy()
    y = np.asarray(on_host(y))
    names = y.dtype.names
    if signed and names is None and y.size == len(y):
        times = number_array(y.ravel(), "y")
        check_complete(times)
        return times > 0, np.abs(times)
    if names is None:
        if y.ndim != 2 or y.shape[1] != 2:
            truncated = (
                " Three columns, with the time of entry, are not supported: left "
                "truncation."
                if y.ndim == 2 and y.shape[1] == 3
                else ""
            )
            raise ValueError(f"{FORMS}, got an array of shape {y.shape}.{truncated}")
        return y[:, 0], y[:, 1]
    flags = [name for name in names if y.dtype[name].kind == "b"]
    if len(names) != 2 or len(flags) != 1:
        raise ValueError(
            f"{FORMS}, got the fields "
            + ", ".join(f"{name!r} ({y.dtype[name]})" for name in names)
            + "."
        )
    (event,), (time,) = flags, [name for name in names if name not in flags]
    return y[event], y[time]


def ranked_times(y):
    """Targets (n_samples, 1) of Cox's loss: the rank of the time, negative if censored.

    Ranks begin with one, so that a time of zero has a sign.
    """
    rank = 1.0 + np.unique(y["time"], return_inverse=True)[1].reshape(len(y))
    return np.where(y["event"], rank, -rank)[:, None]
