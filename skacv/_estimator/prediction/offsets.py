"""Offsets of new rows, where a model has been fitted with one."""

from ..._compat import is_foreign
from ...optim.namespaces import to_device_of, to_numpy
from ..collections import is_collection
from ..data.checks import (
    shape_of,
    validate_offset,
    validate_target,
    validate_weights,
)
from ..data.training_data import check_usable
from ..delegation import class_of


def offset_of_rows(fitted, X, offset, method):
    """Offsets of new rows, (n_samples,), or None for a model without; or ValueError.

    ``method`` is the one that has been passed these rows.
    """
    if offset is None and "record_" not in vars(fitted):
        return None  # the method says what it lacks
    check_usable(fitted)
    check_has_offset(fitted, fitted.record_.offset is not None, offset, method)
    if offset is None:
        return None
    if is_collection(X):
        raise ValueError("offset is not available with Dask input: pass arrays.")
    return validate_offset(offset, shape_of(X)[0])


def check_has_offset(fitted, has_offset, offset, method):
    """Raise if an offset of new rows is missing, or has no counterpart in fit."""
    name = class_of(fitted)
    if has_offset and offset is None:
        raise ValueError(
            f"This {name} was fitted with an offset: pass {method} the offset= of "
            "these rows too. offset=0 gives predictions without one, which with a log "
            "link are rates per unit of exposure."
        )
    if offset is not None and not has_offset:
        raise ValueError(
            f"This {name} was fitted without an offset, so {method} takes none."
        )


def add_offset(fitted, prediction, offset):
    """Predictions (n_samples[, n_targets]) with offsets (n_samples,), if any."""
    if offset is None:
        return prediction
    offset = offset.reshape(-1, *[1] * (prediction.ndim - 1))
    result = fitted.record_.loss.with_offset(to_numpy(prediction), offset)
    return to_device_of(result, prediction) if is_foreign(prediction) else result


def without_offset(fitted, y, params, offset):
    """Targets that stand for offsets of new rows, and parameters with such weights."""
    y = validate_target(y, of_classes=False)
    weights = validate_weights(params.get("sample_weight"), len(y))
    y, weights = fitted.record_.loss.without_offset(y, weights, offset)
    return y, {**params, "sample_weight": weights}


def given(offset):
    """The keyword with an offset of new rows, if there is one."""
    # Only models that can be fitted with one take it.
    return {} if offset is None else {"offset": offset}
