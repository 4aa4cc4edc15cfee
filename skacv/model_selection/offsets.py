"""``offset`` of a stopping estimator: other targets and weights for all members.

Members are fitted to these and need nothing of their own. Records of those that are
kept have the offsets too, so that predictions are on the scale of y again.
"""

from dataclasses import replace
from inspect import signature

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .._estimator.data.checks import check_target, validate_offset, validate_weights
from .._estimator.data.training_data import check_changed_by_offset
from .._estimator.delegation import class_of
from .._estimator.estimates.fitted_state import attach_record
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from ..records.offsets import RowOffsets
from ..staged import Staged
from ..staged.fits import last_of
from .criteria import list_losses


def take_offset(owner, members, loss, y, params, offset):
    """Targets and metadata that stand for an offset, and the RowOffsets.

    ``members`` are pairs of a name and an estimator, and ``loss`` is that of default
    members, of which there are none here. ValueError is raised if there is no one loss,
    or if it has no form for offsets.
    """
    if not (is_auto(owner.criterion) or owner.criterion in tuple(ESTIMATES)):
        raise ValueError(
            "offset needs a criterion that estimates the loss, 'auto' or one of "
            f"{', '.join(map(repr, ESTIMATES))}: scorers do not know of it."
        )
    check_target(y, of_classes=False)
    weights = validate_weights(params.get("sample_weight"), len(y))
    counted = weights > 0
    values = validate_offset(offset, len(y), counted)
    if members:
        loss = loss_of_all(members, y[counted])
    target = y.astype(np.float64)
    loss.check_target(target[counted].reshape(np.count_nonzero(counted), -1))
    of_rows = target[counted], weights[counted], values[counted]
    with np.errstate(all="ignore"):
        target[counted], changed_weights = loss.without_offset(*of_rows)
    check_changed_by_offset(target[counted], changed_weights)
    if not np.array_equal(changed_weights, weights[counted]):
        check_take_weights(members)
        weights[counted] = changed_weights
        params = {**params, "sample_weight": weights}
    return target, params, RowOffsets(values, y)


def loss_of_all(members, y):
    """The loss of all members, which have to take offsets; else ValueError."""
    losses = {}
    for name, member in members:
        if "offset" not in signature(member.predict).parameters:
            raise ValueError(
                f"offset is not available for the member {name!r}: predict of "
                f"{class_of(member)} takes none."
            )
        terms = terms_of(member)
        terms.check_loss_chooses()
        # The loss does not depend on X, which may be a table for an encoder.
        losses[name] = terms.loss(np.zeros((len(y), 1)), y)
    first, *rest = losses.values()
    if rest.count(first) < len(rest):
        raise ValueError(
            "offset needs members of one loss, for which it stands for other targets "
            f"and weights, but their losses are {list_losses(losses)}."
        )
    return first


def check_take_weights(members):
    """Raise if some members take no weights of rows."""
    for name, member in members:
        model = last_of(member.estimator) if isinstance(member, Staged) else member
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                "An offset under a log link stands for weights of rows, which the "
                f"member {name!r} ({type(model).__name__}) does not take."
            )


def put_back(estimator, offset):
    """A fitted member whose record has these RowOffsets, if any."""
    if offset is None:
        return estimator
    return attach_record(estimator, replace(estimator.record_, offset=offset))
