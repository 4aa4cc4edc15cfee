"""Candidates: each is a member with one combination of its parameters, for one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state

from .._compat import validate_parameters
from .._estimator.delegation import request_weights
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_off
from .._names import did_you_mean
from ..staged import Staged
from ..staged.begin import fit_params_of
from ..staged.fits import last_of
from .class_weights import check_members_are_weighed_once
from .criteria import MEANS
from .failures import Failed, attempt, name_of, raise_first
from .stages import BegunRun


@dataclass(eq=False)
class Candidate:
    """A member with one combination of its parameters: its model, and its run."""

    member: str
    # The combination, with values of automatic parameters that are compared.
    params: dict
    # The estimator that is run.
    model: Any
    # Metadata for its ``fit``.
    fit_params: dict = field(default_factory=dict)
    # The table that it is fitted to.
    X: Any = None
    # The transformer that makes X from the codes of an encoder, or from a sparse X.
    view: Any = None
    # Whether that is the tf-idf of texts beside other columns.
    is_of_texts: bool = False
    # Further arguments of ``begin``, which candidates share while they run.
    shared: dict = field(default_factory=dict)
    # A run on some of its folds that a race has begun.
    begun: BegunRun = field(default_factory=BegunRun)
    # Candidates of a group differ only in automatic parameters.
    group: int = 0
    # What its run has left, an EndedRun. Only ``run_all`` writes it.
    run: Any = None
    # Laps of a race that it has not survived. Only ``race`` writes them.
    laps: list = field(default_factory=list)
    # Why it has no run, or is not compared, and its error if it has raised one. Only
    # ``leave_out`` writes them, once.
    why_not: str = ""
    failed: Failed | None = None

    @property
    def name(self):
        """The member, with its combination of parameters if there is one."""
        return name_of(self.member, self.params)

    @property
    def is_late(self):
        """Whether there was no time for it."""
        return bool(self.why_not) and self.failed is None and not self.laps

    @property
    def sample_weight(self):
        """Weights of the rows in its fit, or None."""
        return self.fit_params.get("sample_weight")

    def leave_out(self, why):
        """Go on without it: ``why`` is a reason, or Failed."""
        if isinstance(why, Failed):
            self.failed, self.why_not = why, why.why
        else:
            self.why_not = why


def drop_left_out(candidates):
    """Those that are not left out; the error of the first if all have failed."""
    left = [candidate for candidate in candidates if not candidate.why_not]
    if not left:
        raise_first([one for one in candidates if one.failed is not None])
    return left


def group_candidates(candidates):
    """Lists of the candidates that differ only in automatic parameters, in order."""
    groups = {}
    for candidate in candidates:
        groups.setdefault(candidate.group, []).append(candidate)
    return list(groups.values())


def list_candidates(owner, data, rng):
    """Candidates of all members and combinations of their parameters, with one seed.

    Each has its own model, and the view of the table that this takes. Those of invalid
    parameters are left out.
    """
    candidates = []
    for number, draft in enumerate(draft_candidates(owner, data)):
        model, X, view = draft.model, data.X, None
        if data.table is not None:
            model, X, view = data.table.choose_view(model, draft.is_of_texts)
        candidate = replace(draft, model=model, X=X, view=view, group=number)
        invalid = attempt(check_parameters, model)
        if isinstance(invalid, Failed):
            candidate.leave_out(invalid)
            candidates.append(candidate)
            continue
        # Values of automatic parameters are compared as combinations are.
        terms = terms_of(model)
        for values in terms.values_to_compare(X, data.y, candidate.sample_weight):
            compared = candidate
            if values:
                compared = replace(
                    candidate,
                    params={**candidate.params, **values},
                    model=clone_with(model, values),
                )
            candidates.append(compared)
    left = drop_left_out(candidates)
    if owner.class_weight is not None:
        check_members_are_weighed_once(left)
    if data.is_portfolio:
        share_folds(candidates)
        share_seed(left, rng)
    elif owner.random_state is not None:
        # Draws of the corrected score are those of a model that has its own seed.
        share_seed(left, check_random_state(owner.random_state))
    return candidates


def draft_candidates(owner, data):
    """Candidates before they have their tables, with metadata and folds for fit."""
    weighed, grids = owner._weighed_methods(), {}
    if data.routed is not None and data.adds_weights:
        weighed = {*weighed, "fit"}
    names = [name for name, _ in data.members]
    if owner.param_grid is not None:
        # Also of those that do not run.
        all_names = *names, *(name for name, *_ in data.left_out)
        grids = list_combinations(owner, all_names if data.is_portfolio else names[0])
    drafts = []
    for name, member in data.members:
        fit_params = data.params
        if data.routed is not None:
            fit_params = dict(data.routed[owner._receiver(name)]["fit"])
            if data.adds_weights:
                fit_params["sample_weight"] = data.params["sample_weight"]
        for combination in grids.get(name, [{}]):
            model = clone_with(member, clone(combination, safe=False))
            request_weights(model, weighed)
            draft = Candidate(name, combination, model, fit_params)
            drafts.append(replace(draft, is_of_texts=name in data.of_texts))
    if owner.cv is not None:
        give_folds(drafts, owner.cv, type(owner).__name__)
    for draft in drafts if data.rule in MEANS else ():
        if isinstance(draft.model, Staged):
            check_has_no_offset(draft, data.rule)
    return drafts


def clone_with(estimator, params):
    """A clone of an estimator with other parameters."""
    return clone(estimator).set_params(**params)


def check_has_no_offset(candidate, rule):
    """Raise if a parameter of fit is an offset, which ``predict`` leaves out."""
    staged = candidate.model
    offset = fit_params_of(staged, staged._adapter(), candidate.fit_params).offset
    if offset is not None:
        raise ValueError(
            f"rule={rule!r} averages predictions without {offset}, which fit passes to "
            f"the member {candidate.member!r}: use rule='min', or leave {offset} out."
        )


def list_combinations(owner, names):
    """The combinations of ``param_grid`` for every member, by name, at least one.

    ``names`` are those of a list of members, or the name of a single estimator, whose
    parameters have no prefix. ValueError is raised if a key of the grid names none of
    the members, or if values cannot be listed.
    """
    is_list, param_grid = not isinstance(names, str), owner.param_grid
    grids = {name: [] for name in (names if is_list else [names])}
    for grid in [param_grid] if isinstance(param_grid, Mapping) else param_grid:
        if not isinstance(grid, Mapping):
            raise ValueError(
                f"param_grid must be a dict or a list of dicts, got a list with {grid}."
            )
        by_member = {} if is_list else {names: grid}
        for key, values in grid.items() if is_list else ():
            name, _, parameter = key.partition("__")
            if name not in grids or not parameter:
                raise ValueError(
                    f"Invalid parameter {key!r} in param_grid: with several members "
                    "keys are name__parameter, with a name from "
                    f"{', '.join(map(repr, names))}.{did_you_mean(name, names)}"
                )
            by_member.setdefault(name, {})[parameter] = values
        for name, grid_of_member in by_member.items():
            grids[name].append(grid_of_member)
    for name, of_member in grids.items():
        if of_member and owner.n_candidates is not None:
            grids[name] = ParameterSampler(
                of_member, owner.n_candidates, random_state=owner.random_state
            )
            continue
        for key, values in chain.from_iterable(grid.items() for grid in of_member):
            if hasattr(values, "rvs"):
                raise ValueError(
                    f"param_grid has a distribution for {key!r}: set n_candidates, the "
                    "number of combinations to draw."
                )
        grids[name] = ParameterGrid(of_member or {})
    return grids


def check_parameters(estimator):
    """Raise if parameters of an estimator, or of one that it stages, are invalid."""
    validate_parameters(estimator)
    if isinstance(estimator, Staged):
        validate_parameters(last_of(estimator.estimator))
    # It reads those that only a run would.
    terms_of(estimator).price(1, 1, 1)


def give_folds(candidates, cv, owner_name):
    """Let the ``cv`` of a stopping estimator be that of all its candidates.

    ValueError is raised if one has no folds, or has its own.
    """
    is_iterable = not (isinstance(cv, Integral) or hasattr(cv, "split"))
    cv = list(cv) if is_iterable else cv
    for candidate in candidates:
        ESTIMATES["cv"].check_offered(candidate.model, "cv")
        if ESTIMATES["cv"].is_on(candidate.model):
            raise ValueError(
                f"cv is set twice, in {owner_name} and in its estimator "
                f"{candidate.member!r}: set only one."
            )
        candidate.model.set_params(cv=cv)


def share_folds(candidates):
    """Give candidates the same folds.

    ValueError is raised if members ask for different folds.
    """
    settings, given = [], []
    for candidate in candidates:
        setting = ESTIMATES["cv"].setting(candidate.model)
        settings.append(setting)
        if not is_off(setting):
            given.append(setting)
    if len(set(map(joblib.hash, given))) > 1:
        raise ValueError(
            "All members use the same folds: set cv of one of them, or the same cv of "
            f"all, not {', '.join(map(repr, given))}."
        )
    for candidate, setting in zip(candidates, settings):
        if given and setting is not False:
            candidate.model.set_params(cv=given[0])


def share_seed(candidates, rng):
    """Give candidates without a ``random_state`` the same: they draw the same rows."""
    seed = rng.randint(np.iinfo(np.int32).max)
    for candidate in candidates:
        seeds = {}
        # Seeds of a forest inside Staged, and of the steps of a pipeline, too.
        for name, value in candidate.model.get_params().items():
            if value is None and name.rpartition("__")[2] == "random_state":
                seeds[name] = seed
        candidate.model.set_params(**seeds)
