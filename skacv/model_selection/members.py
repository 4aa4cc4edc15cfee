"""The members of a comparison: their names, parameters and folds."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import joblib
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import Composition, check_names, validate_parameters
from .._estimator.delegation import routed
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import check_records_trajectory
from ..staged.estimator import recorded
from ..staged.run import cloned
from ..tables.views import n_tree_columns
from .criteria import scorer_of
from .portfolios import (
    PORTFOLIOS,
    Table,
    check_some_take,
    task_of,
    that_take,
    warn_of_columns,
)

LARGEST_SEED = 2**31 - 1
KINDS = {"regression": "regressor", "classification": "classifier"}


class Candidate(NamedTuple):
    """A member with one combination of its parameters, for one run.

    Attributes
    ----------
    X : array-like or None
        The table that it is fitted to; None before it is known.
    group : int
        Candidates of a group differ only in automatic parameters.
    view : transformer or None
        Makes X of the codes of an encoder, or of a sparse X; None if nothing does.
    """

    member: str
    params: dict
    estimator: object
    X: object = None
    group: int = 0
    view: object = None


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
    is_of_list = isinstance(owner.estimator, list)
    for name, member in members:
        if isinstance(member, ComposedOfMembers):
            which = f"The member {name!r}" if is_of_list else "The 'estimator'"
            raise ValueError(
                f"{which} of {asked} is a {type(member).__name__}, which stops itself: "
                "fit it as it is, or list models as members, such as "
                "[('lasso', TrajectoryLasso('path')), "
                "('trees', HistGradientBoostingRegressor())]."
            )
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


def losses_of(candidates, y):
    """The loss of every member on its table, by the name of the member, or None."""
    members = {candidate.member: candidate for candidate in candidates}
    return {
        name: candidate.estimator._loss_on(candidate.X, y)
        for name, candidate in members.items()
    }


def are_alike(losses):
    """Whether all members have the same loss."""
    first, *others = losses.values()
    return first is not None and all(loss == first for loss in others)


def usual_scorer(estimator):
    """The name of the scorer that compares members with different losses."""
    return "accuracy" if is_classifier(estimator) else "r2"


def check_losses(candidates, y):
    """Raise if members have different losses."""
    losses = losses_of(candidates, y)
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
        # Also those of a forest inside Staged, and of the steps of a pipeline.
        unseeded = {
            name: seed
            for name, value in estimator.get_params().items()
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        estimator.set_params(**unseeded)


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
    if tags.classifier_tags is not None:
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
    tags.target_tags.positive_only = any(each.positive_only for each in targets)
    tags.input_tags.sparse = needs(each.sparse for each in inputs)
    tags.input_tags.allow_nan = needs(each.allow_nan for each in inputs)
    tags.input_tags.pairwise = any(each.pairwise for each in inputs)
    return tags


class ComposedOfMembers(Composition):
    """One estimator, a list of named ones, or the portfolio of a task."""

    _parts = "estimator"

    def __sklearn_clone__(self):
        """A clone, even if scikit-learn refuses to clone the estimators."""
        holder = copy(self)
        holder.estimator = None
        found = super(ComposedOfMembers, holder).__sklearn_clone__()
        found.estimator = cloned(self.estimator)
        return found

    def _members(self):
        """Name and estimator of all that run; by default, if these are numbers.

        Those that are fitted in stages are wrapped.
        """
        if self.estimator is None:
            return PORTFOLIOS[self._task()]()
        if isinstance(self.estimator, list):
            return [(name, recorded(each)) for name, each in named(self.estimator)]
        # What runs alone has all threads.
        n_jobs = self.n_jobs if self.param_grid is None else None
        return [(type(self.estimator).__name__, recorded(self.estimator, n_jobs))]

    def _task(self):
        """The task, numbers where that is left to fit."""
        if self.task != "auto":
            return self.task
        return vars(self).get("task_", "regression")

    def _is_portfolio(self):
        return self.estimator is None or isinstance(self.estimator, list)

    def _members_for(self, table, y):
        """Those that run on these data, checked, and why others do not.

        Parameters
        ----------
        table : EncodedTable

        Returns
        -------
        members : list of (str, estimator)
        left_out : dict of str to str
        """
        if self.estimator is None:
            members, left_out = self._default_for(table, y)
        else:
            members, left_out = self._members(), {}
        if self._is_portfolio():
            check_names(self, [name for name, _ in members])
        check_members(members, self)
        return members, left_out

    def _default_for(self, encoded, y):
        """Members of the default portfolio that can run on these data."""
        task = task_of(encoded.X, y) if self.task == "auto" else self.task
        table = Table.of(encoded.X, y)
        if encoded.encoder is not None:  # whose views have what members can take
            table = replace(
                table,
                has_missing=False,
                n_columns=encoded.n_one_hot_columns(),
                n_tree_columns=n_tree_columns(encoded.encoder),
            )
        is_of_table = self.criterion in tuple(ESTIMATES)
        needed = ESTIMATES[self.criterion] if is_of_table else None
        members, left_out = that_take(PORTFOLIOS[task](table), table, needed)
        check_some_take(members, left_out, type(self).__name__)
        warn_of_columns(left_out)
        return members, left_out

    def _candidates(self, members, table, y, fit_params):
        """An estimator of every member and combination, its parameters checked.

        What a member leaves to us is compared as combinations are.

        Parameters
        ----------
        table : EncodedTable
        """
        names = [name for name, _ in members]
        if self._is_portfolio():
            compared = combinations(self.param_grid, names)
        else:
            compared = {names[0]: ParameterGrid(self.param_grid or {})}
        candidates = [
            candidate_of(name, member, combination)
            for name, member in members
            for combination in compared[name]
        ]
        self._give_folds(candidates)
        compared = []
        for group, candidate in enumerate(map(table.encoded, candidates)):
            name, params, estimator, X, _, view = candidate
            weights = fit_params[name].get("sample_weight")
            for values in estimator._left_to_compare(X, y, weights):
                _, _, estimator, *_ = candidate_of(name, candidate.estimator, values)
                both = {**params, **values}
                compared.append(Candidate(name, both, estimator, X, group, view))
        return compared

    def _give_folds(self, candidates):
        """Let ``cv`` be that of all candidates.

        Raises
        ------
        ValueError
            If one has no folds, or has its own.
        """
        if self.cv is None:
            return
        is_iterable = not (isinstance(self.cv, Integral) or hasattr(self.cv, "split"))
        cv = list(self.cv) if is_iterable else self.cv
        for each in candidates:
            ESTIMATES["cv"].check_offered(each.estimator, "cv")
            if ESTIMATES["cv"].is_on(each.estimator):
                raise ValueError(
                    f"cv is given twice, to {type(self).__name__} and to its estimator "
                    f"{each.member!r}: give it to one of them."
                )
            each.estimator.set_params(cv=cv)

    def _receiver(self, name):
        """The name of a member in metadata routing."""
        return name if self._is_portfolio() else "estimator"

    def _routed(self, receiver, method, params):
        """The part of ``params`` for a method of the estimator, or for the scorer."""
        is_scored = method == "score" and receiver != "criterion"
        return routed(self, "score" if is_scored else "fit", receiver, method, params)

    def get_metadata_routing(self) -> Any:
        """Metadata routing of this object.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="score", callee="score")
        router = MetadataRouter(owner=self)
        members = self._members()
        if self.estimator is None and self.task == "auto":  # any that fit may take
            members = [pair for members in PORTFOLIOS.values() for pair in members()]
        for name, member in members:
            if self.cv is not None:
                member = clone(member).set_params(cv=self.cv)
            receiver = {self._receiver(name): member}
            router.add(method_mapping=mapping, **receiver)
        if self.criterion not in ("auto", *ESTIMATES):
            router.add(
                criterion=scorer_of(self.criterion),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        return router

    def __sklearn_tags__(self):
        # Members that run by default are those that can take the data.
        needs = any if self.estimator is None else all
        tags = tags_of(self._members(), super().__sklearn_tags__(), needs)
        is_automatic = isinstance(self.encoder, str)
        encodes = self.estimator is None if is_automatic else self.encoder is not None
        if encodes:
            tags.input_tags.allow_nan = tags.input_tags.string = True
        if self.estimator is None and self.task == "auto" and "task_" not in vars(self):
            # It may become one. Cross-validation then splits by classes where y has
            # some, and numbers as they come.
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags
