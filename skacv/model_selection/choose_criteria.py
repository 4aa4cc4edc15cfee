"""What iterates, members and their blends are compared by, chosen before any run."""

from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import get_scorer_names

from .._estimator.data.queries import is_ranker
from .._estimator.data.row_summary import RowSummary
from .._estimator.data.survival import takes_survival
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from ..staged.query_losses import parse_measure
from .averaging import Averaging
from .blending import BlendTask
from .candidates import drop_left_out
from .comparison import BestRun
from .criteria import (
    MEANS,
    Criterion,
    PathCriterion,
    ScorerCriterion,
    list_losses,
    resolve_auto,
)


@dataclass(frozen=True, eq=False)
class Criteria:
    """What a fit compares by, and what it knows of the losses of its members."""

    # It compares the iterates of a run.
    of_iterates: Criterion
    # The scorer that compares members whose losses differ; None: ``of_iterates``.
    of_members: ScorerCriterion | None = None
    # The subclass of Comparison that says what is kept, or how it is made.
    comparison: Any = BestRun
    # How members are blended; None if one is kept.
    blend: BlendTask | None = None
    # The loss of each of several members, or with Dask input, by its name; and that of
    # all, None if they differ.
    losses: dict | None = None
    shared_loss: Any = None


def choose_criteria(owner, data, candidates):
    """The Criteria of a fit, or an error of what cannot be compared."""
    left, losses, shared_loss = drop_left_out(candidates), None, None
    measure = measure_of(owner, data)
    if len(data.members) > 1 or data.is_collection:
        losses, shared_loss = member_losses(left, data.y, measure)
    if data.is_collection:
        check_collections(owner, losses, shared_loss)
    estimate = estimate_for(owner, data, left, losses, shared_loss)
    name, weights, of_members = criterion_of(owner), left[0].sample_weight, None
    if is_auto(name) or is_estimate(name) or measure is not None:
        for candidate in left:
            terms_of(candidate.model).check_loss_chooses()
        of_iterates = PathCriterion(estimate.name, estimate, data.y, measure=measure)
    else:
        routed = {} if data.routed is None else data.routed["criterion"]["score"]
        if data.task == "ranking" and takes_groups(name):
            routed = {**routed, "groups": data.params["groups"]}
        of_rows = data.X, data.y, routed
        of_iterates = ScorerCriterion.of(name, estimate, left, *of_rows)
    if is_auto(name) and len(losses or ()) > 1 and shared_loss is None:
        # Scores have the weights of the rows, as losses do.
        params = {} if weights is None else {"sample_weight": weights}
        scorer, of_rows = usual_scorer(left[0].model), (data.X, data.y, params)
        of_members = ScorerCriterion.of(scorer, ESTIMATES["cv"], left, *of_rows)
    comparison, blend, of_all = BestRun, None, (losses, shared_loss)
    if losses is None and data.rule in MEANS:
        of_all = member_losses(left, data.y, measure)
    of_task = left, of_iterates, *of_all, data.y, weights, data.offset
    if data.rule == "blend":
        blend = BlendTask.of_members(*of_task)
        comparison = blend.compare
    elif data.rule == "average":
        comparison = partial(Averaging, BlendTask.of_iterates(*of_task))
    return Criteria(of_iterates, of_members, comparison, blend, losses, shared_loss)


def measure_of(owner, data):
    """The measure of the order of rows that the criterion names, or None."""
    name = owner.criterion
    if data.task != "ranking":
        return None
    if parse_measure(name) is not None:
        return name
    is_known = callable(name) or is_auto(name) or is_estimate(name)
    if not (is_known or name in get_scorer_names()):
        raise ValueError(
            "The criterion of a ranker must be 'auto', 'cv', 'ndcg@5' or 'map@10', "
            "with any number or none, or a callable scorer(estimator, X, y) or "
            f"scorer(estimator, X, y, groups), got {name!r}."
        )
    return None


def takes_groups(scorer):
    """Whether a scorer is a function that asks for the groups of rows."""
    return callable(scorer) and "groups" in signature(scorer).parameters


def estimate_for(owner, data, candidates, losses, shared_loss):
    """The estimate that a criterion is computed from; ValueError if none suits."""
    name, given = criterion_of(owner), []
    if data.params.get("groups") is not None:
        given.append("groups")
    if owner.cv is not None:
        given.append("cv")
    if given and is_estimate(name) and name != "cv":
        raise ValueError(
            f"criterion={name!r} would ignore {' and '.join(given)}: "
            "use criterion='cv'."
        )
    is_scorer = not (is_auto(name) or is_estimate(name))
    if is_scorer and isinstance(data.X, RowSummary):
        raise ValueError(
            "With a RowSummary the criterion must be 'auto' or one of "
            f"{', '.join(map(repr, ESTIMATES))}: a scorer needs all held-out rows."
        )
    if is_estimate(name) and len(data.members) > 1 and shared_loss is None:
        scorer = usual_scorer(candidates[0].model)
        raise ValueError(
            f"Members have different losses ({list_losses(losses)}), which "
            "cannot be compared: use criterion='auto', or a scorer, such as "
            f"criterion={scorer!r}."
        )
    if is_estimate(name):
        return ESTIMATES[name]
    if given or data.is_portfolio or owner.search == "race":
        return ESTIMATES["cv"]
    return resolve_auto(candidates, data.y)


def criterion_of(owner):
    """The criterion of a stopping estimator; the folds of Cox's loss are "cv"."""
    is_named = isinstance(owner.criterion, str)
    return "cv" if is_named and owner.criterion == "cox" else owner.criterion


def is_estimate(criterion):
    """Whether a criterion is the name of an estimate."""
    return criterion in tuple(ESTIMATES)  # callables may not be hashable


def check_collections(owner, losses, shared_loss):
    """Raise if a stopping estimator cannot compare runs on Dask input.

    ``losses`` and ``shared_loss`` are those of :func:`member_losses`.
    """
    if len(losses) > 1 and shared_loss is None:
        raise ValueError(
            "Members have different losses, and comparing them needs single rows, "
            "which stay on their workers with Dask input: use members with the same "
            "loss."
        )
    offered = ["auto", "cv", "loo"]
    if all(loss.is_quadratic for loss in losses.values()):
        offered.append("risk")
    if owner.criterion not in offered:
        raise ValueError(
            f"criterion={owner.criterion!r} needs single rows, which stay on their "
            "workers with Dask input: set criterion='cv', or 'loo' with loo=100."
        )


def member_losses(candidates, y, measure=None):
    """The loss of every member on its table, by name, and that of all, or None.

    ``measure`` is that of the order of rankers, or None.
    """
    last, losses = {}, {}
    for candidate in candidates:
        last[candidate.member] = candidate
    for name, candidate in last.items():
        terms = terms_of(candidate.model)
        try:
            if measure is None:
                losses[name] = terms.loss(candidate.X, y)
            else:
                losses[name] = terms.query_loss(measure)
        except (TypeError, ValueError) as error:
            error.add_note(f"This is what the member {name!r} says of the data.")
            raise
    first, *rest = losses.values()
    shared = first if rest.count(first) == len(rest) else None
    if shared is None and is_ranker(candidates[0].model):
        raise ValueError(
            "Rankers with different gains (label_gain, ndcg_exp_gain) cannot be "
            "compared by NDCG: give all the same, or set criterion='map@10'."
        )
    return losses, shared


def usual_scorer(estimator):
    """The name of the scorer that compares members with different losses."""
    if takes_survival(estimator):
        return "concordance"
    return "accuracy" if is_classifier(estimator) else "r2"
