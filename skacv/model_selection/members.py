"""The candidates of a comparison: their names, parameters and folds."""

from collections.abc import Mapping
from typing import NamedTuple

import joblib
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags

from .._compat import validate_parameters
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import check_records_trajectory

LARGEST_SEED = 2**31 - 1
KINDS = {"regression": "regressor", "classification": "classifier"}


class Candidate(NamedTuple):
    """A member with one combination of its parameters, for one run.

    Attributes
    ----------
    group : int
        Candidates of a group differ only in automatic parameters.
    """

    member: str
    params: dict
    estimator: object
    group: int = 0


def named(members):
    """The members of a list, if it consists of pairs of a name and an estimator.

    Raises
    ------
    ValueError
    """
    are_pairs = members and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in members
    )
    if not are_pairs:
        raise ValueError(
            "A list as 'estimator' must have pairs of a name (a string) and an "
            f"estimator, at least one, got {members!r}."
        )
    return members


def check_members(members, owner):
    """Raise if members are not of one kind, or do not record their trajectories.

    Parameters
    ----------
    members : list of (str, estimator)
    owner : ComposedOfMembers
        The estimator that they are passed to.
    """
    asked = type(owner).__name__
    for name, member in members:
        is_of_list = isinstance(owner.estimator, list)
        check_records_trajectory(member, asked, name if is_of_list else None)
    kinds = {name: get_tags(member).estimator_type for name, member in members}
    said = ", ".join(f"{name!r} is a {kind}" for name, kind in kinds.items())
    if len(set(kinds.values())) > 1:
        raise ValueError(
            f"Members must be all regressors or all classifiers, but {said}."
        )
    if owner.task != "auto" and {KINDS[owner.task]} != set(kinds.values()):
        raise ValueError(f"{asked} is for {owner.task}, but {said}.")


def check_collections(stopping, losses):
    """Raise if a stopping estimator cannot compare runs on Dask input.

    Parameters
    ----------
    losses : dict
        The loss of every member, by its name.
    """
    if len(losses) > 1 and not are_alike(losses):
        raise ValueError(
            "Members have different losses, and comparing them needs single rows, "
            "which stay on their workers with Dask input: use members with the same "
            "loss."
        )
    offered = ["auto", "cv", "loo"]
    if all(loss.is_quadratic for loss in losses.values()):
        offered.append("risk")
    if stopping.criterion not in offered:
        raise ValueError(
            f"criterion={stopping.criterion!r} needs single rows, which stay on their "
            "workers with Dask input: set criterion='cv', or 'loo' with loo=100."
        )


def by_member(candidates):
    """An estimator of every member, by its name."""
    return {each.member: each.estimator for each in candidates}


def losses_of(candidates, X, y):
    """The loss of every member on some data, by the name of the member, or None."""
    members = by_member(candidates)
    return {name: member._loss_on(X, y) for name, member in members.items()}


def are_alike(losses):
    """Whether all members have the same loss."""
    first, *others = losses.values()
    return first is not None and all(loss == first for loss in others)


def usual_scorer(estimator):
    """The name of the scorer that compares members with different losses."""
    is_classifier = get_tags(estimator).estimator_type == "classifier"
    return "accuracy" if is_classifier else "r2"


def check_losses(candidates, X, y):
    """Raise if members have different losses."""
    losses = losses_of(candidates, X, y)
    if len(losses) == 1 or are_alike(losses):
        return
    raise ValueError(
        f"Members have different losses ({named_losses(losses)}), which cannot be "
        "compared: use criterion='auto', or a scorer, such as "
        f"criterion={usual_scorer(candidates[0].estimator)!r}."
    )


def named_losses(losses):
    """The members and their losses, for errors."""
    return ", ".join(
        f"{name!r}: {getattr(loss, 'name', 'another loss')}"
        for name, loss in losses.items()
    )


def combinations(param_grid, names):
    """Combinations of parameters of several members, at least one of each.

    Returns
    -------
    dict of str to list of dict

    Raises
    ------
    ValueError
        If a key of the grid names none of the members.
    """
    found = {name: [] for name in names}
    for grid in [param_grid] if isinstance(param_grid, Mapping) else param_grid or []:
        by_member = {}
        for key, values in grid.items():
            name, _, parameter = key.partition("__")
            if name not in found or not parameter:
                raise ValueError(
                    f"Invalid parameter {key!r} in param_grid: with several members a "
                    "key is name__parameter, the name one of "
                    f"{', '.join(map(repr, names))}."
                )
            by_member.setdefault(name, {})[parameter] = values
        for name, own in by_member.items():
            found[name].append(own)
    return {name: list(ParameterGrid(grids or {})) for name, grids in found.items()}


def candidate_of(name, member, combination):
    """A clone of a member with a combination of parameters, validated."""
    estimator = clone(member)
    estimator.set_params(**clone(combination, safe=False))
    validate_parameters(estimator)
    return Candidate(name, combination, estimator)


def share_folds(candidates, rng):
    """Give candidates the same folds, and a seed if they have none.

    A candidate that draws rows (a preconditioner's subsample) then draws the same rows
    with all combinations of its parameters.

    Raises
    ------
    ValueError
        If members ask for different folds.
    """
    seed = rng.randint(LARGEST_SEED)
    settings = [ESTIMATES["cv"].setting(each.estimator) for each in candidates]
    given = [cv for cv in settings if cv is not None and cv is not False]
    if len({joblib.hash(cv) for cv in given}) > 1:
        raise ValueError(
            "All members use the same folds: set cv of one of them, or the same cv of "
            f"all, not {', '.join(map(repr, given))}."
        )
    for each, setting in zip(candidates, settings):
        estimator = each.estimator
        if given and setting is not False:
            estimator.set_params(cv=given[0])
        if estimator.get_params(deep=False).get("random_state", seed) is None:
            estimator.set_params(random_state=seed)


def tags_of(members, tags, needs):
    """The tags of an estimator that is one of the members.

    Parameters
    ----------
    members : list of (str, estimator)
    tags : Tags
        They are set.
    needs : callable
        ``all`` or ``any``: which members must support what this estimator supports.

    Returns
    -------
    Tags
    """
    found = [get_tags(member) for _, member in members]
    for name in (
        "estimator_type",
        "regressor_tags",
        "classifier_tags",
        "target_tags",
        "input_tags",
    ):
        setattr(tags, name, getattr(found[0], name))
    targets = [each.target_tags for each in found]
    inputs = [each.input_tags for each in found]
    tags.target_tags.multi_output = needs(each.multi_output for each in targets)
    tags.target_tags.positive_only = any(each.positive_only for each in targets)
    tags.input_tags.sparse = needs(each.sparse for each in inputs)
    tags.input_tags.allow_nan = needs(each.allow_nan for each in inputs)
    tags.input_tags.pairwise = any(each.pairwise for each in inputs)
    return tags
