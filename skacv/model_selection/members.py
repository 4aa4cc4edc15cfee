"""Members of a comparison: names, parameters, folds; what they compute and share.

Splits are drawn once, for all candidates and all stages of their runs. Splits drawn
anew would compare candidates on other rows, and the step, which is stable on all folds,
would change in the middle of a run.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)

from .._compat import Composition, _num_samples, validate_parameters
from .._estimator.collections import is_collection, on_workers
from .._estimator.data.row_summary import RowSummary
from .._estimator.delegation import routed
from .._estimator.estimates.folds import ShuffledFolds, splitter_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import check_records_trajectory
from .._estimator.parameters import is_auto, is_off
from .._estimator.run.source import takes_moments_of
from .._estimator.run.summary_data import n_folds_asked, n_sampled_asked
from ..staged.estimator import recorded
from ..staged.run import cloned
from ..tables.views import n_tree_columns
from .criteria import scorer_of
from .portfolios import (
    PORTFOLIOS,
    TableInfo,
    check_some_take,
    task_of,
    that_take,
    warn_of_columns,
)

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
        Makes X from the codes of an encoder, or from a sparse X.
    """

    member: str
    params: dict
    estimator: object
    X: object = None
    group: int = 0
    view: object = None


def check_pairs(members):
    """Raise if a list does not consist of pairs of a name and an estimator."""
    are_pairs = members and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in members
    )
    if not are_pairs:
        raise ValueError(
            "A list as 'estimator' must have pairs of a name (a string) and an "
            f"estimator, at least one, got {members!r}."
        )


def check_members(members, owner):
    """Raise if members are not of one kind, or do not record their trajectories.

    Parameters
    ----------
    members : list of (str, estimator)
    owner : ComposedOfMembers
        The estimator that they are passed to.
    """
    owner_name = type(owner).__name__
    is_of_list = isinstance(owner.estimator, list)
    for name, member in members:
        if isinstance(member, ComposedOfMembers):
            which = f"The member {name!r}" if is_of_list else "The 'estimator'"
            raise ValueError(
                f"{which} of {owner_name} is a {type(member).__name__}, which stops "
                "itself: fit it as it is, or list models as members, such as "
                "[('lasso', TrajectoryLasso('path')), "
                "('trees', HistGradientBoostingRegressor())]."
            )
        check_records_trajectory(member, owner_name, name if is_of_list else None)
    kinds = {name: get_tags(member).estimator_type for name, member in members}
    distinct = set(kinds.values())
    is_of_task = owner.task == "auto" or distinct == {KINDS[owner.task]}
    if len(distinct) == 1 and is_of_task:
        return
    listed = ", ".join(f"{name!r} is a {kind}" for name, kind in kinds.items())
    if len(distinct) > 1:
        raise ValueError(
            f"Members must be all regressors or all classifiers, but {listed}."
        )
    raise ValueError(f"{owner_name} is for {owner.task}, but {listed}.")


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


def member_losses(candidates, y):
    """The loss of every member on its table, by the name of the member, or None."""
    members = {candidate.member: candidate for candidate in candidates}
    return {
        name: candidate.estimator._loss_on(candidate.X, y)
        for name, candidate in members.items()
    }


def are_alike(losses):
    """Whether all members have the same loss."""
    first, *rest = losses.values()
    return first is not None and all(loss == first for loss in rest)


def usual_scorer(estimator):
    """The name of the scorer that compares members with different losses."""
    return "accuracy" if is_classifier(estimator) else "r2"


def check_losses(candidates, y):
    """Raise if members have different losses."""
    losses = member_losses(candidates, y)
    if len(losses) == 1 or are_alike(losses):
        return
    raise ValueError(
        f"Members have different losses ({listed_losses(losses)}), which cannot be "
        "compared: use criterion='auto', or a scorer, such as "
        f"criterion={usual_scorer(candidates[0].estimator)!r}."
    )


def listed_losses(losses):
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
    grids = {name: [] for name in names}
    for grid in [param_grid] if isinstance(param_grid, Mapping) else param_grid or []:
        by_member = {}
        for key, values in grid.items():
            name, _, parameter = key.partition("__")
            if name not in grids or not parameter:
                raise ValueError(
                    f"Invalid parameter {key!r} in param_grid: with several members a "
                    "key is name__parameter, the name one of "
                    f"{', '.join(map(repr, names))}."
                )
            by_member.setdefault(name, {})[parameter] = values
        for name, grid_of_member in by_member.items():
            grids[name].append(grid_of_member)
    return {name: list(ParameterGrid(grid or {})) for name, grid in grids.items()}


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
    seed = rng.randint(np.iinfo(np.int32).max)
    settings = [ESTIMATES["cv"].setting(c.estimator) for c in candidates]
    given = [cv for cv in settings if not is_off(cv)]
    if len({joblib.hash(cv) for cv in given}) > 1:
        raise ValueError(
            "All members use the same folds: set cv of one of them, or the same cv of "
            f"all, not {', '.join(map(repr, given))}."
        )
    for candidate, setting in zip(candidates, settings):
        estimator = candidate.estimator
        if given and setting is not False:
            estimator.set_params(cv=given[0])
        # Also those of a forest inside Staged, and of the steps of a pipeline.
        unseeded = {
            name: seed
            for name, value in estimator.get_params().items()
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        estimator.set_params(**unseeded)


def prepare(estimator, estimate, combination, X, y, sample_weight=None):
    """Make the estimator compute what the criterion needs, and nothing else.

    ``combination`` is that of ``param_grid``, for errors to name.

    Raises
    ------
    ValueError
        If the estimator cannot compute the estimate, or has switched it off.
    """
    needing = f"criterion={estimate.name!r}"
    estimate.check_offered(estimator, needing)
    setting = estimate.setting(estimator)
    if setting is False:
        among = f" (candidate {combination} of param_grid)" if combination else ""
        raise ValueError(
            f"{needing} needs {estimate.path}, which {type(estimator).__name__} does "
            f"not compute with {estimate.parameter}=False{among}."
        )
    if setting is None:
        default = estimate.default(estimator, sample_weight)
        estimator.set_params(**{estimate.parameter: default})
    elif is_auto(setting) and estimate.sample:
        n_rows = len(X) if isinstance(X, RowSummary) else _num_samples(X)
        if sample_weight is not None:
            n_rows = np.count_nonzero(sample_weight)
        sample = estimate.sample(estimator, X, y, n_rows)
        estimator.set_params(**{estimate.parameter: sample})
    for unused in ESTIMATES.values():
        if unused != estimate and is_auto(unused.setting(estimator)):
            estimator.set_params(**{unused.parameter: False})


@dataclass(frozen=True, eq=False)
class DrawnSplits:
    """A splitter that has drawn, in the place of the one that would draw again.

    Attributes
    ----------
    cv : int, splitter or iterable
        What it stands for; metadata are requested as that requests them.
    splits : list of (ndarray of int, ndarray of int)
    groups : ndarray of int, shape (n_samples,), or None
        The group of every sample, if groups have been passed to it.
    """

    cv: object
    splits: list
    groups: object = None

    def split(self, X, y=None, **params):
        """The splits that have been drawn, whatever is passed."""
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, **params):
        """How many there are."""
        return len(self.splits)

    def with_groups(self):
        """The same: groups have had their part when they were drawn."""
        return self

    def get_metadata_routing(self):
        """Metadata routing of what it stands for."""
        return get_routing_for_object(check_cv(self.cv))


def draw_once(candidates, origins, X, y, fit_params):
    """Give the same splits to all candidates that have the same ``cv``.

    Parameters
    ----------
    candidates : list of Candidate
        The ``cv`` of their estimators is set, where they have one.
    origins : list
        What the ``cv`` of every candidate is a copy of.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        What the splitter sees: the rows as the user has them.
    fit_params : dict
        What the candidates' ``fit`` will be passed.

    Returns
    -------
    ndarray of int, shape (n_samples,), or None
        The group of every sample, if groups are passed to the splitters.
    """
    routes, drawn = get_config()["enable_metadata_routing"], {}
    params = {
        key: fit_params[key]
        for key in fit_params
        if key == "groups" or (routes and key != "sample_weight")
    }
    for candidate, origin in zip(candidates, origins):
        estimator = candidate.estimator
        if not ESTIMATES["cv"].is_on(estimator):
            continue
        if id(origin) not in drawn:
            try:
                splitter, split_params, groups = splitter_of(estimator, y, params)
                splits = list(splitter.split(X, y, **split_params))
            except (TypeError, ValueError):
                # Bad data have an error of their own.
                weights = fit_params.get("sample_weight")
                estimator._check_data(candidate.X, y, weights)
                raise
            drawn[id(origin)] = DrawnSplits(origin, splits, groups)
        estimator.set_params(cv=drawn[id(origin)])
    groups = [splits.groups for splits in drawn.values() if splits.groups is not None]
    return groups[0] if groups else None


def read_once(members, cv, X, y, params):
    """The summary of a collection, where its moments are enough for all members.

    Parameters
    ----------
    members : list of (str, estimator)
    cv : int, splitter, iterable or None
        What all members are given as ``cv``; None leaves them their own.
    params : dict
        What else ``fit`` was passed.

    Returns
    -------
    X, y, params
        As they were passed; or a summary, None, and no weights, which it has.
    """
    estimators = [member for _, member in members]
    is_enough = is_collection(X) and all(
        hasattr(estimator, "_spec") and takes_moments_of(estimator._spec(), X)
        for estimator in estimators
    )
    if not is_enough:
        return X, y, params
    # One asks for folds, or a number of sampled rows: all have the same.
    n_folds = [n_folds_asked(e) for e in estimators if e.cv is not None]
    n_folds += [cv] if isinstance(cv, Integral) else []
    n_sampled = max(n_sampled_asked(estimator) for estimator in estimators)
    weights = params.get("sample_weight")
    summary = on_workers("summary").summarised(
        X, y, weights, max(n_folds, default=ShuffledFolds.n_splits), n_sampled
    )
    rest = {name: params[name] for name in params if name != "sample_weight"}
    return summary, None, rest


def tags_of(members, tags, needs):
    """The tags of an estimator that is one of the members.

    ``needs`` is ``all`` or ``any``: which members must support what this estimator
    supports. ``tags`` are set, and returned.
    """
    member_tags = [get_tags(member) for _, member in members]
    for name in (
        "estimator_type",
        "regressor_tags",
        "classifier_tags",
        "target_tags",
        "input_tags",
    ):
        setattr(tags, name, getattr(member_tags[0], name))
    targets = [tags_k.target_tags for tags_k in member_tags]
    inputs = [tags_k.input_tags for tags_k in member_tags]
    tags.target_tags.multi_output = needs(t.multi_output for t in targets)
    if tags.classifier_tags is not None:
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
    tags.target_tags.positive_only = any(t.positive_only for t in targets)
    tags.input_tags.sparse = needs(i.sparse for i in inputs)
    tags.input_tags.allow_nan = needs(i.allow_nan for i in inputs)
    tags.input_tags.pairwise = any(i.pairwise for i in inputs)
    return tags


class ComposedOfMembers(Composition):
    """One estimator, a list of named ones, or the portfolio of a task."""

    _parts = "estimator"

    def __sklearn_clone__(self):
        """A clone, even if scikit-learn refuses to clone the estimators."""
        holder = copy(self)
        holder.estimator = None
        copied = super(ComposedOfMembers, holder).__sklearn_clone__()
        copied.estimator = cloned(self.estimator)
        return copied

    def _members(self):
        """Name and estimator of all that run; by default, if these are numbers.

        Those that are fitted in stages are wrapped.
        """
        if self.estimator is None:
            task = self.task
            if task == "auto":
                task = vars(self).get("task_", "regression")
            return [(name, member) for name, member, _ in PORTFOLIOS[task]()]
        if isinstance(self.estimator, list):
            check_pairs(self.estimator)
            return [(name, recorded(member)) for name, member in self.estimator]
        # What runs alone has all threads.
        n_jobs = self.n_jobs if self.param_grid is None else None
        return [(type(self.estimator).__name__, recorded(self.estimator, n_jobs))]

    def _is_portfolio(self):
        return self.estimator is None or isinstance(self.estimator, list)

    def _members_for(self, X, y, table):
        """Members that run on these data, checked, and why others do not, by name.

        ``table`` is an EncodedTable, or None if members are fitted to X itself.
        """
        if self.estimator is None:
            members, skipped = self._default_for(X, y, table)
        else:
            members, skipped = self._members(), {}
        if self._is_portfolio():
            self._check_names([name for name, _ in members])
        check_members(members, self)
        return members, skipped

    def _default_for(self, X, y, table):
        """Members of the default portfolio that can run on these data."""
        if table is not None:
            X = table.X
        task = task_of(X, y) if self.task == "auto" else self.task
        info = TableInfo.of(X, y)
        if table is not None and table.encoder is not None:
            # Views of the codes have what members can take.
            one_hot = table.encoder.one_hot().fit(X)
            info = replace(
                info,
                has_missing=False,
                n_columns=len(one_hot.get_feature_names_out()),
                n_tree_columns=n_tree_columns(table.encoder),
            )
        is_of_table = self.criterion in tuple(ESTIMATES)
        needed = ESTIMATES[self.criterion] if is_of_table else None
        members, skipped = that_take(PORTFOLIOS[task](info), info, needed)
        check_some_take(members, skipped, type(self).__name__)
        warn_of_columns(skipped)
        return members, skipped

    def _candidates(self, members, X, y, table, fit_params):
        """An estimator of every member and combination, its parameters checked.

        What a member leaves to us is compared as combinations are.
        """
        names = [name for name, _ in members]
        if self._is_portfolio():
            grids = combinations(self.param_grid, names)
        else:
            grids = {names[0]: ParameterGrid(self.param_grid or {})}
        candidates = [
            candidate_of(name, member, combination)
            for name, member in members
            for combination in grids[name]
        ]
        self._give_folds(candidates)
        compared = []
        for group, candidate in enumerate(candidates):
            candidate = candidate._replace(X=X, group=group)
            if table is not None:
                candidate = table.encoded(candidate)
            name, params, estimator, X_k, *_ = candidate
            weights = fit_params[name].get("sample_weight")
            for values in estimator._left_to_compare(X_k, y, weights):
                estimator = candidate_of(name, candidate.estimator, values).estimator
                compared.append(
                    candidate._replace(params={**params, **values}, estimator=estimator)
                )
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
        for member, _, estimator, *_ in candidates:
            ESTIMATES["cv"].check_offered(estimator, "cv")
            if ESTIMATES["cv"].is_on(estimator):
                raise ValueError(
                    f"cv is given twice, to {type(self).__name__} and to its estimator "
                    f"{member!r}: give it to one of them."
                )
            estimator.set_params(cv=cv)

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
            members = [
                (name, member)
                for portfolio in PORTFOLIOS.values()
                for name, member, _ in portfolio()
            ]
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
        encodes = self.encoder is not None
        if is_auto(self.encoder):
            encodes = self.estimator is None
        if encodes:
            tags.input_tags.allow_nan = tags.input_tags.string = True
        if self.estimator is None and self.task == "auto" and "task_" not in vars(self):
            # It may become one. Cross-validation then splits by classes where y has
            # some, and numbers as they come.
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags
