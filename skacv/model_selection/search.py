"""One fit of a stopping estimator: its steps, from data to fitted attributes."""

from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._compat import _num_samples, has_callbacks, on_host
from .._estimator.collections import is_collection
from .._estimator.data.checks import check_target, target_array, validated_weights
from .._estimator.data.row_summary import RowSummary
from .._estimator.devices import on_device_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import is_auto
from .._estimator.run.source import shape_of
from ..optim.threads import threads_for
from .advice import groups_of_copies, warn_of_copies, warn_of_limits
from .blending import BlendTask, check_offsets, check_rows
from .class_weights import (
    check_members_are_weighed_once,
    check_weighs_classes,
    weighed_by_class,
)
from .comparison import Comparison
from .criteria import RULES, PathCriterion, ScorerCriterion, automatic, least
from .encoded import EncodedTable
from .fit_report import FitReport
from .members import (
    are_alike,
    check_collections,
    check_losses,
    draw_once,
    member_losses,
    prepare,
    read_once,
    share_folds,
    usual_scorer,
)
from .optimism import Uncorrected
from .stages import Stages, run_side_by_side
from .time_limit import Deadline, prices_of, split_by_time, warn_of_time


@dataclass(eq=False)
class Search:
    """The data, the candidates and the criterion of one fit, step by step.

    Attributes
    ----------
    owner : TrajectoryEarlyStoppingCV
    X, y : as passed to fit; or a summary, and None
    params : dict
        What else fit was passed.
    members : list of (str, estimator)
    skipped : list of (str, dict, str)
        Members that are not run, combinations of their parameters, and why.
    table : EncodedTable or None
        None if members are fitted to X itself.
    fit_params : dict of str to dict
        What the ``fit`` of every member is passed.
    candidates : list of Candidate
    rule : str
    groups, copies : ndarray of int, shape (n_samples,), or None
        The groups of rows that depend on each other; those of copies, if many.
    runs : list of EvaluatedFit
    compared : Comparison
    """

    owner: Any
    X: Any
    y: Any
    params: dict
    members: Any = None
    skipped: Any = None
    table: Any = None
    fit_params: Any = None
    candidates: Any = None
    rule: str = "min"
    criterion: Any = None
    blend: BlendTask | None = None
    rng: Any = None
    deadline: Deadline | None = None
    report: FitReport | None = None
    groups: Any = None
    copies: Any = None
    runs: Any = None
    late: Any = ()
    sample_weight: Any = None
    losses: Any = None
    compared: Any = None
    begun: float = field(default_factory=perf_counter)

    @property
    def has_rows(self):
        """Whether X has rows in memory."""
        return not (self.is_collection or isinstance(self.X, RowSummary))

    def read_data(self):
        """Check targets and weights, encode X, and list the members that take it."""
        owner = self.owner
        self.passed_X, self.passed_y = self.X, self.y
        self.is_collection = is_collection(self.X)
        if owner.time_limit is not None:
            self.deadline = Deadline(owner.time_limit)
        params = self.params
        if not self.is_collection:
            self.y = target_array(self.y)
            params = {name: on_host(value) for name, value in params.items()}
        params = {name: value for name, value in params.items() if value is not None}
        is_default = owner.estimator is None
        if is_default or not (owner.encoder is None or is_auto(owner.encoder)):
            self.table = EncodedTable.of(self.X, self.y, owner.encoder, is_default)
        self.members, skipped = owner._members_for(self.X, self.y, self.table)
        self.skipped = [(name, {}, why) for name, why in skipped.items()]
        of_classes = is_classifier(self.members[0][1])
        if self.has_rows and self.y is not None:
            # Weights of collections, and of a summary, are checked block by block.
            check_target(self.y, of_classes)
            if "sample_weight" in params:
                n_rows = _num_samples(self.X)
                weights = validated_weights(params["sample_weight"], n_rows)
                params["sample_weight"] = weights
        if owner.class_weight is not None:
            check_weighs_classes(self.members, self.y)
            params["sample_weight"] = weighed_by_class(
                owner.class_weight, self.y, params.get("sample_weight")
            )
        self.rule = owner.rule
        if is_auto(self.rule):
            may_blend = is_default and owner.criterion in ("auto", "cv")
            self.rule = "blend" if may_blend and self.has_rows else "min"
        if self.rule == "blend" and len(self.members) == 1:
            self.rule = "min"  # a single member is kept as it is
        if self.rule == "blend":
            check_rows(self.X)
        self.params = params
        if self.is_collection:
            self.X, self.y, self.params = read_once(
                self.members, owner.cv, self.X, self.y, params
            )
            self.is_collection = is_collection(self.X)  # or a summary now

    def list_candidates(self):
        """Make an estimator of every member and combination of its parameters."""
        owner = self.owner
        self.fit_params = {
            name: owner._routed(owner._receiver(name), "fit", self.params)
            for name, _ in self.members
        }
        if self.rule == "blend":
            check_offsets(self.members, self.fit_params)
        self.candidates = owner._candidates(
            self.members, self.X, self.y, self.table, self.fit_params
        )
        if owner.class_weight is not None:
            check_members_are_weighed_once(self.candidates)
        if self.is_collection:
            check_collections(owner, member_losses(self.candidates, self.y))
        weights = self.fit_params[self.candidates[0].member].get("sample_weight")
        self.sample_weight, self.rng = weights, check_random_state(owner.random_state)
        if owner._is_portfolio():
            share_folds(self.candidates, self.rng)

    def choose_criterion(self):
        """The criterion for the iterates of all candidates, and the task of a blend."""
        owner, name = self.owner, self.owner.criterion
        folds = {"groups": self.params.get("groups"), "cv": owner.cv}
        given = [key for key, value in folds.items() if value is not None]
        is_of_table = name in tuple(ESTIMATES)
        if given and is_of_table and name != "cv":
            raise ValueError(
                f"criterion={name!r} would ignore {' and '.join(given)}: "
                "take criterion='cv'."
            )
        if isinstance(self.X, RowSummary) and name != "auto" and not is_of_table:
            raise ValueError(
                "With a summary of rows the criterion must be 'auto' or one of "
                f"{', '.join(map(repr, ESTIMATES))}: a scorer needs all held-out rows."
            )
        if is_of_table:
            check_losses(self.candidates, self.y)
            estimate = ESTIMATES[name]
        elif given or owner._is_portfolio():
            estimate = ESTIMATES["cv"]
        else:
            estimate = automatic(self.candidates, self.y)
        if is_of_table or name == "auto":
            self.criterion = PathCriterion(estimate, self.y)
        else:
            routed = {}
            if get_config()["enable_metadata_routing"]:
                routed = owner._routed("criterion", "score", self.params)
            self.criterion = ScorerCriterion.of(
                name, estimate, self.candidates, self.X, self.y, routed
            )
        if self.rule == "blend":
            self.blend = BlendTask.of(
                self.candidates, self.criterion, self.y, self.sample_weight
            )
        if owner.verbose:
            skipped = {member: why for member, _, why in self.skipped}
            self.report = FitReport(owner, self.candidates, self.criterion, skipped)

    def share_splits(self):
        """Switch the criterion's estimate on; draw splits and share work once."""
        owner, estimate = self.owner, self.criterion.estimate
        # The cv that every candidate has a copy of.
        origins = [ESTIMATES["cv"].setting(c.estimator) for c in self.candidates]
        if not owner._is_portfolio() and owner.cv is None:
            ((_, member),) = self.members
            cv = ESTIMATES["cv"].setting(member)
            origins = [c.params.get("cv", cv) for c in self.candidates]
        for candidate in self.candidates:
            name, params, estimator, X, *_ = candidate
            weights = self.fit_params[name].get("sample_weight")
            prepare(estimator, estimate, params, X, self.y, weights)
        # Folds of a collection are always the same; a summary has its folds.
        if self.has_rows:
            draws = self.fit_params[self.members[0][0]]
            self.groups = draw_once(self.candidates, origins, self.X, self.y, draws)
        if len(self.candidates) == 1:
            return
        for name, member in self.members:
            by_table = {}
            for candidate in self.candidates:
                if candidate.member == name:
                    by_table.setdefault(id(candidate.X), []).append(candidate)
            weights = self.fit_params[name].get("sample_weight")
            for candidates in by_table.values():
                estimators = [candidate.estimator for candidate in candidates]
                member._share_work(estimators, candidates[0].X, self.y, weights)

    def run(self):
        """Run all candidates, each with its part of the callbacks' tree."""
        owner = self.owner
        groups = [
            list(group) for _, group in groupby(self.candidates, attrgetter("group"))
        ]
        stages = Stages(self.criterion, owner.patience, self.deadline)
        prices, order = [None] * len(groups), range(len(groups))
        if self.deadline is not None:
            prices = prices_of(groups, self.y)
            order = np.argsort([price.total for price in prices], kind="stable")
        calls = []
        for index in order:
            first = groups[index][0]
            estimators = [candidate.estimator for candidate in groups[index]]
            data = first.X, self.y, self.fit_params[first.member]
            calls.append((estimators, *data, prices[index]))
        if len(groups) == 1 and self.deadline is None and not has_callbacks(owner):
            ended = [stages.run_group(*calls[0])]
        else:
            # Every run of a collection has all of its workers; one alone needs no
            # process.
            n_jobs = 1 if self.is_collection or len(groups) == 1 else owner.n_jobs
            data = {"X": self.X, "y": self.y, "metadata": self.params or None}
            ended = run_side_by_side(
                owner, stages.run_group, calls, data, n_jobs, self.deadline
            )
        fits = [None] * len(groups)
        for index, fits_of_group in zip(order, ended, strict=True):
            fits[index] = fits_of_group
            if self.report is not None:
                self.report.add(groups[index], fits_of_group)
        self.runs = list(chain.from_iterable(fits))
        if self.deadline is not None:
            self.candidates, self.runs, self.late = split_by_time(
                self.candidates, self.runs, owner.time_limit
            )
            self.skipped += self.late

    def compare(self):
        """Choose an iterate from every run, and the best of these or their weights."""
        owner = self.owner
        if self.groups is None and self.y is not None and not self.is_collection:
            X = self.X if self.table is None else self.table.X
            self.groups = self.copies = groups_of_copies(on_host(X), self.y)
        criterion = replace(self.criterion, groups=self.groups, deadline=self.deadline)
        self.losses, between = member_losses(self.candidates, self.y), None
        if is_auto(owner.criterion) and len(self.losses) > 1:
            if not are_alike(self.losses):
                # Scores have the weights of the rows, as losses do.
                weights = self.sample_weight
                scorer_params = {} if weights is None else {"sample_weight": weights}
                between = ScorerCriterion.of(
                    usual_scorer(self.candidates[0].estimator),
                    ESTIMATES["cv"],
                    self.candidates,
                    self.X,
                    self.y,
                    scorer_params,
                )
        if owner._is_portfolio():
            # On the rows that all runs have held out.
            estimators = [run.estimator for run in self.runs]
            common = criterion.on_common_rows(estimators)
            if common is not criterion:
                criterion = common
                self.runs = [
                    run._replace(path=common.path(run.estimator)) for run in self.runs
                ]
                between = between and between.on_common_rows(estimators)
        # A blend is of the best iterates.
        arguments = self.candidates, self.runs, criterion, RULES.get(self.rule, least)
        compared = Comparison if self.blend is None else self.blend.compared
        self.compared = compared(*arguments, between)

    def fitted_attributes(self):
        """The models kept, and the results of all runs, as attributes by name."""
        compared, table, criterion = self.compared, self.table, self.criterion
        results = compared.results(self.skipped)
        best = self.candidates[compared.index].member
        iteration = compared.choices[compared.index].iteration
        fitted = {
            name: on_device_of(self.passed_X, self.passed_y, member)
            for name, member in compared.fitted_members().items()
        }
        members, used = fitted, [name for name, w in compared.weights.items() if w > 0]
        if table is not None:
            views = {
                name: self.candidates[compared.best_indices[name]].view
                for name in fitted
            }
            members = {
                name: table.with_encoder(views[name], member)
                for name, member in fitted.items()
            }
        kept = members[used[0]]
        if len(used) > 1:
            if table is None:
                kept = compared.blend(fitted)
            else:
                viewed = {
                    name: table.with_view(views[name], member)
                    for name, member in fitted.items()
                }
                kept = table.with_encoder(None, compared.blend(viewed))
        paths = {
            name: compared.shown_path(index)
            for name, index in compared.best_indices.items()
        }
        run, params = self.runs[compared.index], self.candidates[compared.index].params
        X = self.X if table is None else table.X
        with threads_for(shape_of(X)):
            try:
                corrected = compared.corrected_score(self.rng)
            except Uncorrected as reason:
                corrected = str(reason)
        held_out_prediction = None
        if self.has_rows:
            held_out_prediction = compared.held_out_prediction(_num_samples(self.X))
        return {
            "estimator_": kept,
            "encoder_": None if table is None else table.encoder,
            "members_": members,
            "weights_": compared.weights,
            "best_iter_": iteration,
            "best_score_": compared.score[0],
            "best_score_se_": compared.score[1],
            "best_member_": best,
            "best_params_": {**params, **run.estimator._parameters_at(iteration)},
            "criterion_": criterion.name,
            "task_": "classification" if is_classifier(kept) else "regression",
            "path_": paths[best][0],
            "member_paths_": {name: path for name, (path, _) in paths.items()},
            "results_": results,
            "_best_indices": compared.best_indices,
            "_fold_scores": compared.fold_scores(),
            "_alike": compared.alike(self.losses),
            "_path_error": paths[best][1],
            "_corrected": corrected,
            "_held_out_prediction": held_out_prediction,
        }

    def advise(self):
        """Warn if another call is likely to do better, and report what is kept."""
        compared, owner = self.compared, self.owner
        warn_of_limits(compared, owner.estimator is None)
        if self.copies is not None:
            folds = ESTIMATES["cv"].setting(self.runs[compared.index].estimator)
            name = self.criterion.estimate.name
            if name == "loo" or (name == "cv" and folds is None):
                warn_of_copies(self.copies)
        if self.deadline is not None:
            warn_of_time(owner.time_limit, self.candidates, self.runs, self.late)
        if self.report is not None:
            self.report.end(compared, perf_counter() - self.begun)
