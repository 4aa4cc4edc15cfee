"""What is known of the data of a stopping fit before any model is made."""

from dataclasses import dataclass, replace
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import process_routing

from .._compat import on_host
from .._estimator.collections import import_dask_layer, is_collection
from .._estimator.data.checks import (
    check_has_rows,
    check_target,
    frame_of_arrow,
    replace_weightless_rows,
    target_array,
    validate_weights,
)
from .._estimator.data.queries import is_ranker, rows_by_query
from .._estimator.data.row_summary import RowSummary
from .._estimator.data.survival import is_survival, survival_array, takes_survival
from .._estimator.delegation import class_of
from .._estimator.estimates.folds import ShuffledFolds
from .._estimator.parameters import is_auto
from .._estimator.run.source import takes_moments_of
from .._estimator.run.summary_data import n_folds_asked, n_sampled_asked
from ..optim.losses import Logistic
from ..records.offsets import RowOffsets
from .class_weights import check_weighs_classes, weigh_by_class
from .criteria import MEANS, SURVIVAL_CRITERIA
from .defaults.encoded import EncodedTable
from .defaults.portfolio import FEWEST_ROWS, default_members, infer_task, list_forms
from .members import check_members
from .offsets import take_offset
from .time_limit import Deadline


@dataclass(frozen=True, eq=False)
class SearchData:
    """The data of a fit, and the members that take them."""

    # As members read them: rows of weight zero are copies of another row, which nobody
    # reads; of Dask input that moments suffice for, a RowSummary and None.
    X: Any
    y: Any
    # Metadata of fit, not None; weights of rows are times those of their classes.
    params: dict
    passed_X: Any
    passed_y: Any
    has_rows: bool  # single ones, in memory
    is_collection: bool
    task: str  # "regression", "classification" or "ranking"
    # Number of rows of positive weight, where rows are single ones.
    n_rows: int
    # An EncodedTable; None if members are fitted to X itself.
    table: EncodedTable | None
    # Pairs of a name and an estimator.
    members: list
    # Triples of a member that does not take the data, its parameters (none), and why.
    left_out: list
    # "min", "one_se", "blend" or "average".
    rule: str
    # Names of members that gain most from more rows, where rows are many.
    essential: frozenset = frozenset()
    # Names of members that run last, as long as that may improve what is kept.
    open_ended: frozenset = frozenset()
    # Names of members that are fitted to the tf-idf of texts.
    of_texts: frozenset = frozenset()
    # Whether members have names of their own in grids and metadata routing.
    is_portfolio: bool = False
    # Metadata that scikit-learn routes, by their receivers; None without routing.
    routed: Any = None
    deadline: Deadline | None = None
    # Those of the rows, for which y and weights stand; None if fit was passed none.
    offset: RowOffsets | None = None
    # The row that every row is a copy of, by number; None if there are no copies.
    originals: Any = None
    # Whether all members get weights of rows that the user has not passed.
    adds_weights: bool = False
    # When fit was called, on the clock of ``perf_counter``.
    begun: float = 0.0

    @property
    def of_classes(self):
        """Whether targets are classes."""
        return self.task == "classification"

    @classmethod
    def of(
        cls,
        owner,
        X,
        y,
        params,
        forms=list_forms,
        offset=None,
        factors=None,
        originals=None,
    ):
        """The data of a fit of a stopping estimator, checked, or an error.

        ``forms`` makes of the default members what runs of each. ``factors`` multiply
        the weights of rows, for all members; None: ones. Rows of the same number in
        ``originals`` are copies of one, which an encoder counts once; None: no copies.
        """
        begun = perf_counter()
        limit = owner.time_limit
        deadline = None if limit is None else Deadline(limit)
        check_has_targets(owner, X, y)
        if (forms_of_survival := survival_of_members(owner)) is not None:
            y = survival_array(y, signed=forms_of_survival == {"signed times"})
        passed_X, passed_y, metadata = X, y, params
        X, y, params = read_containers(X, y, params)
        dask = is_collection(X)
        has_rows = not (dask or isinstance(X, RowSummary))
        if factors is not None:
            weights = validate_weights(params.get("sample_weight"), len(factors))
            params = {**params, "sample_weight": weights * factors}
        is_default = owner.estimator is None
        task, members = task_and_members(owner, X, y)
        of_classes, offsets = task == "classification", None
        loss = owner._default_loss()
        if task == "ranking" and has_rows:
            params = rows_by_query(X, params, class_of(members[0][1]))
            metadata = params
            if params["groups"][-1] == 0:
                raise ValueError(
                    "Folds are of whole queries, and at least two are needed, got one."
                )
        if offset is not None:
            check_has_rows_for_offset(X, has_rows)
            # No loss of classes has a form for offsets.
            loss = Logistic() if of_classes else loss
            y, params, offsets = take_offset(owner, members, loss, y, params, offset)
        X, y, params, n_rows = weigh_rows(owner, X, y, params, of_classes, has_rows)
        weights = params.get("sample_weight")
        table, roles, left_out, essential = None, [], [], []
        if is_default or not (owner.encoder is None or is_auto(owner.encoder)):
            table = EncodedTable.of(X, y, owner.encoder, is_default, weights, originals)
        if is_default:
            roles, skipped = default_members(owner, task, X, y, table, weights)
            members = forms(roles)
            left_out = [(name, {}, why) for name, why in skipped.items()]
            if n_rows >= FEWEST_ROWS:
                essential = [one.name for one in roles if one.is_essential]
        rule = choose_rule(owner, members, has_rows, dask)
        if dask:
            X, y, params = read_once(members, owner.cv, X, y, params)
        adds_weights = owner.class_weight is not None or factors is not None
        adds_weights |= offset is not None and "sample_weight" in params
        return cls(
            X=X,
            y=y,
            params=params,
            passed_X=passed_X,
            passed_y=passed_y,
            has_rows=has_rows,
            is_collection=is_collection(X),  # or a summary now
            task=task,
            n_rows=n_rows,
            table=table,
            members=members,
            left_out=left_out,
            rule=rule,
            essential=frozenset(essential),
            open_ended=frozenset(one.name for one in roles if one.is_open_ended),
            of_texts=frozenset(one.name for one in roles if one.is_of_texts),
            is_portfolio=is_default or isinstance(owner.estimator, list),
            routed=route(owner, params, metadata),
            deadline=deadline,
            offset=offsets,
            originals=originals,
            adds_weights=adds_weights,
            begun=begun,
        )

    def leave_out(self, names, why):
        """These data without some of several members, which are left out."""
        members = [pair for pair in self.members if pair[0] not in names]
        left_out = [(name, {}, why) for name, _ in self.members if name in names]
        rule = "min" if self.rule == "blend" and len(members) == 1 else self.rule
        left_out = [*self.left_out, *left_out]
        return replace(self, members=members, left_out=left_out, rule=rule)


def survival_of_members(owner):
    """How members take survival times; None if none of them is fitted to these.

    ValueError is raised if some are and others are not, or if they cannot be compared
    as asked for.
    """
    are = {}
    if owner.estimator is not None:
        are = {name: takes_survival(member) for name, member in owner._members()}
    is_of_survival = any(are.values())
    if is_of_survival and not all(are.values()):
        names = ", ".join(repr(name) for name, takes in are.items() if not takes)
        raise ValueError(
            "Members must all be fitted to survival times, or none of them: "
            f"{names} are not."
        )
    if is_of_survival and owner.rule in MEANS:
        raise ValueError(
            f"rule={owner.rule!r} averages predictions, and log hazard ratios of "
            "several models have no common unit: use rule='min' or rule='one_se'."
        )
    if owner.criterion in SURVIVAL_CRITERIA and not is_of_survival:
        raise ValueError(
            f"criterion={owner.criterion!r} is for models of survival times."
        )
    return {*are.values()} if is_of_survival else None


def check_has_targets(owner, X, y):
    """Raise if there are no targets, which only a summary has itself."""
    if y is None and not isinstance(X, RowSummary):
        raise ValueError(
            f"{type(owner).__name__} requires y to be passed, but the target y is None."
        )


def check_has_rows_for_offset(X, has_rows):
    """Raise if rows are not single ones in memory, which offsets are of."""
    if not has_rows:
        what = "a RowSummary" if isinstance(X, RowSummary) else "Dask input"
        raise ValueError(f"offset is not available with {what}: pass rows in memory.")


def read_containers(X, y, params):
    """X, targets and metadata in containers that members read; errors of no rows."""
    dask, read = is_collection(X), {}
    for name, value in params.items():
        value = value if dask else on_host(value)
        if value is not None:
            read[name] = value
    if not (dask or isinstance(X, RowSummary)):
        check_has_rows(X)
    if not dask:
        X, y = frame_of_arrow(X), target_array(y)
    return X, y, read


def task_and_members(owner, X, y):
    """The task, and the members that the user has passed; none for the default."""
    if owner.estimator is None:
        return (infer_task(X, y) if is_auto(owner.task) else owner.task), []
    members = owner._members()
    if isinstance(owner.estimator, list):
        owner._check_names(next(zip(*members)))
    check_members(members, owner)
    task, first = "regression", members[0][1]
    if is_ranker(first):
        task = "ranking"
    elif is_classifier(first):
        task = "classification"
    return task, members


def weigh_rows(owner, X, y, params, of_classes, has_rows):
    """Check targets and weights, and multiply these by weights of classes.

    Returned are X and y, in which rows of weight zero are copies of another row; the
    metadata with these weights; and the number of rows of positive weight, 0 where
    there are no single rows. Weights of collections, and of a summary, are checked
    block by block.
    """
    params, n_rows = dict(params), 0
    if has_rows and y is not None:
        if not is_survival(y):
            check_target(y, of_classes)
        n_rows = len(y)  # X may be no table, which members refuse
        if "sample_weight" in params:
            weights = validate_weights(params["sample_weight"], n_rows)
            params["sample_weight"] = weights
    if owner.class_weight is not None:
        check_weighs_classes(of_classes, y)
        params["sample_weight"] = weigh_by_class(
            owner.class_weight, y, params.get("sample_weight")
        )
    if not (has_rows and "sample_weight" in params):
        return X, y, params, n_rows
    check_consistent_length(X, y)
    weights = params["sample_weight"]
    if not weights.any():
        raise ValueError(
            "sample_weight is zero on all rows: at least one non-zero weight is needed."
        )
    if owner.estimator is None:
        # Penalties of the default members are for weights of about one. Not to the last
        # bit, which would depend on the units: trees choose by it among equal splits.
        weights = np.round(weights / weights[weights > 0].mean(), 12)
    params["sample_weight"] = weights
    return *replace_weightless_rows(weights, X, y), params, np.count_nonzero(weights)


def choose_rule(owner, members, has_rows, is_collection):
    """The rule that "auto" stands for; ValueError if there is nothing to blend."""
    rule = owner.rule
    if is_auto(rule):
        may_blend = owner.estimator is None and owner.criterion in ("auto", "cv")
        rule = "blend" if may_blend and has_rows else "min"
    if rule == "blend" and len(members) == 1:
        return "min"  # a single member is kept as it is
    if rule in MEANS and is_ranker(members[0][1]):
        raise ValueError(
            f"rule={rule!r} averages predictions of y, but the scores of rankers are "
            "on scales of their own: use rule='min' or rule='one_se'."
        )
    if rule in MEANS and not has_rows:
        which = "a RowSummary does not have"
        if is_collection:
            which = "stay on their workers with Dask input"
        raise ValueError(
            f"rule={rule!r} needs held-out predictions of single rows, which "
            f"{which}: use rule='min' or rule='one_se'."
        )
    return rule


def read_once(members, cv, X, y, params):
    """The summary of a collection, where its moments are enough for all members.

    Returned are X, y and the other parameters of fit; or a summary, None, and these
    parameters without weights, which the summary has.
    """
    estimators = [member for _, member in members]
    is_enough = all(
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
    summary = import_dask_layer("summary").summarise(
        X, y, weights, max(n_folds, default=ShuffledFolds.n_splits), n_sampled
    )
    rest = {name: params[name] for name in params if name != "sample_weight"}
    return summary, None, rest


def route(owner, params, passed):
    """The metadata that scikit-learn routes, by receivers; None without routing."""
    if not get_config()["enable_metadata_routing"]:
        return None
    routed = dict(params)
    # Weights of classes, and of offsets, are for all members; rows may have some of
    # their own, which are routed.
    if passed.get("sample_weight") is None:
        routed.pop("sample_weight", None)
    return process_routing(owner, "fit", **routed)
