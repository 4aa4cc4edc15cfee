"""One fit of a stopping estimator: its steps, from data to fitted attributes."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.metadata_routing import process_routing

from .._compat import (
    _num_samples,
    _safe_indexing,
    has_callbacks,
    is_foreign,
    on_host,
)
from .._estimator.collections import is_collection
from .._estimator.data.checks import (
    check_has_rows,
    check_target,
    frame_of_arrow,
    shape_of,
    target_array,
    validated_weights,
    with_stand_ins,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.delegation import request_weights
from .._estimator.devices import on_device_of
from .._estimator.estimates.fitted_state import chosen_iterate
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import is_auto
from ..optim.blocks import threads_for
from ..staged import Staged
from .advice import (
    groups_of_copies,
    names_encoder,
    warn_of_constants,
    warn_of_copies,
    warn_of_limits,
)
from .blending import LOG_LOSS, Blending, BlendTask, check_has_no_offset
from .class_weights import (
    check_members_are_weighed_once,
    check_weighs_classes,
    weighed_by_class,
)
from .comparison import Comparison, EndedRuns, loss_name
from .criteria import (
    RULES,
    PathCriterion,
    ScorerCriterion,
    automatic,
    index_of_least,
)
from .defaults.encoded import EncodedTable
from .failures import Failed, Failure, attempt, raise_first, warn_of_failures
from .fit_report import FitReport
from .members import (
    DrawnSplits,
    candidate_of,
    check_collections,
    check_members,
    check_parameters,
    combinations,
    draw_once,
    give_folds,
    listed_losses,
    member_losses,
    prepare,
    read_once,
    share_folds,
    share_seed,
    share_work,
    usual_scorer,
)
from .mixtures import LogLosses
from .optimism import Uncorrected
from .portfolios import default_members, task_of
from .race import race
from .stages import Stages, run_side_by_side
from .time_limit import (
    Deadline,
    in_time_order,
    prices_of,
    split_by_time,
    warn_of_time,
)
from .trial import FEWEST_ROWS, LEAST_WEIGHT, WITHOUT_WEIGHT, weights_in_trial


@dataclass(eq=False)
class Search:
    """The data, the candidates and the criterion of one fit, step by step."""

    owner: Any
    # As passed to fit; or a summary, and None.
    X: Any
    y: Any
    # Metadata that were passed to fit.
    params: dict
    # Pairs of a name and an estimator.
    members: Any = None
    # Number of rows of positive weight, where rows are single ones.
    n_rows: int = 0
    # Names of members that gain most from more rows, where rows are many.
    essential: Any = ()
    # Names of members that run last, as long as that may improve what is kept.
    open_ended: Any = ()
    # Members that are not run, combinations of their parameters, and why.
    skipped: Any = None
    # An EncodedTable; None if members are fitted to X itself.
    table: Any = None
    # Metadata for the ``fit`` of every member, by name.
    fit_params: Any = None
    # Metadata that scikit-learn routes, by their receivers; None without routing.
    routed: Any = None
    candidates: Any = None
    rule: str = "min"
    criterion: Any = None
    # The scorer that compares members of different losses.
    between: ScorerCriterion | None = None
    blend: BlendTask | None = None
    rng: Any = None
    deadline: Deadline | None = None
    report: FitReport | None = None
    # The groups of rows that depend on each other; groups of copies, if there are many.
    groups: Any = None
    copies: Any = None
    runs: Any = None
    late: Any = ()
    # Candidates that a race has ended, as Entrants.
    ended: Any = ()
    # All candidates in order, and Failures of those that have raised an error.
    listed: Any = ()
    failures: Any = field(default_factory=list)
    sample_weight: Any = None
    # For several members: the loss of each by its name, and their common loss or None.
    losses: Any = None
    shared_loss: Any = None
    compared: Any = None
    begun: float = field(default_factory=perf_counter)

    def choose(self):
        """All steps up to the choice among the candidates, or their weights."""
        self.read_data()
        self.list_candidates()
        self.choose_criterion()
        self.share_splits()
        with names_encoder(self.owner, self.passed_X):
            self.run()
        self.compare()

    def read_data(self):
        """Check targets and weights, encode X, and list the members that take it."""
        owner = self.owner
        self.passed_X, self.passed_y = self.X, self.y
        self.is_collection = is_collection(self.X)
        self.has_rows = not (self.is_collection or isinstance(self.X, RowSummary))
        self.is_portfolio = owner.estimator is None or isinstance(owner.estimator, list)
        if owner.time_limit is not None:
            self.deadline = Deadline(owner.time_limit)
        self.passed_params, self.params = self.params, {}
        for name, value in self.passed_params.items():
            value = value if self.is_collection else on_host(value)
            if value is not None:
                self.params[name] = value
        if self.has_rows:
            check_has_rows(self.X)
        if not self.is_collection:
            self.X, self.y = frame_of_arrow(self.X), target_array(self.y)
        is_default, skipped = owner.estimator is None, {}
        if is_default:
            task = task_of(self.X, self.y) if is_auto(owner.task) else owner.task
            self.of_classes = task == "classification"
        else:
            self.members = owner._members()
            if self.is_portfolio:
                owner._check_names(next(zip(*self.members)))
            check_members(self.members, owner)
            self.of_classes = is_classifier(self.members[0][1])
        self.read_weights()
        weights = self.params.get("sample_weight")
        if is_default or not (owner.encoder is None or is_auto(owner.encoder)):
            self.table = EncodedTable.of(
                self.X, self.y, owner.encoder, is_default, weights
            )
        if is_default:
            defaults, skipped = default_members(
                owner, task, self.X, self.y, self.table, weights
            )
            self.members = [(member.name, member.estimator) for member in defaults]
            self.open_ended = {one.name for one in defaults if one.is_open_ended}
            if self.has_rows and self.n_rows >= FEWEST_ROWS:
                self.essential = {one.name for one in defaults if one.is_essential}
        self.skipped = []
        for name, why in skipped.items():
            self.skipped.append((name, {}, why))
        self.rule = owner.rule
        if is_auto(self.rule):
            may_blend = owner.estimator is None and owner.criterion in ("auto", "cv")
            self.rule = "blend" if may_blend and self.has_rows else "min"
        may_try = is_default and self.rule == "blend" and not owner._is_trial
        if may_try and self.n_rows >= FEWEST_ROWS:
            weights = weights_in_trial(self)
            for member in defaults:
                is_essential = member.name in self.essential
                if not is_essential and weights[member.name] < LEAST_WEIGHT:
                    self.members.remove((member.name, member.estimator))
                    self.skipped.append((member.name, {}, WITHOUT_WEIGHT))
        if self.rule == "blend" and len(self.members) == 1:
            self.rule = "min"  # a single member is kept as it is
        if self.rule == "blend" and not self.has_rows:
            which = "a RowSummary does not have"
            if self.is_collection:
                which = "stay on their workers with Dask input"
            raise ValueError(
                "rule='blend' needs held-out predictions of single rows, which "
                f"{which}: use rule='min' or rule='one_se'."
            )
        if self.is_collection:
            self.X, self.y, self.params = read_once(
                self.members, owner.cv, self.X, self.y, self.params
            )
            self.is_collection = is_collection(self.X)  # or a summary now

    def read_weights(self):
        """Check the targets, and weights of rows, times those of their classes.

        From here on rows of weight zero are copies of another row, which nobody reads.
        Weights of collections, and of a summary, are checked block by block.
        """
        params, class_weight = self.params, self.owner.class_weight
        if self.has_rows and self.y is not None:
            check_target(self.y, self.of_classes)
            self.n_rows = len(self.y)  # X may be no table, which members refuse
            if "sample_weight" in params:
                weights = validated_weights(params["sample_weight"], self.n_rows)
                params["sample_weight"] = weights
        if class_weight is not None:
            check_weighs_classes(self.of_classes, self.y)
            params["sample_weight"] = weighed_by_class(
                class_weight, self.y, params.get("sample_weight")
            )
        if self.has_rows and "sample_weight" in params:
            check_consistent_length(self.X, self.y)
            weights = params["sample_weight"]
            if not weights.any():
                raise ValueError(
                    "sample_weight is zero on all rows: at least one non-zero weight "
                    "is needed."
                )
            if self.owner.estimator is None:
                # Penalties of the default members are for weights of about one. Not to
                # the last bit, which would depend on the units: trees choose by it
                # among equal splits.
                weights = np.round(weights / weights[weights > 0].mean(), 12)
            params["sample_weight"], self.n_rows = weights, np.count_nonzero(weights)
            self.X, self.y = with_stand_ins(weights, self.X, self.y)

    def list_candidates(self):
        """Make an estimator of every member and combination of its parameters."""
        owner, candidates = self.owner, []
        weights, weighed = self.params.get("sample_weight"), owner._weighed_methods()
        if get_config()["enable_metadata_routing"]:
            routed = dict(self.params)
            if owner.class_weight is not None:
                # Weights of classes are for all members; rows may have some of their
                # own, which are routed.
                weighed = {*weighed, "fit"}
                if self.passed_params.get("sample_weight") is None:
                    del routed["sample_weight"]
            self.routed = process_routing(owner, "fit", **routed)
        names, self.fit_params = next(zip(*self.members)), {}
        grids = {}
        if owner.param_grid is not None:
            # Also of those that do not run.
            all_names = *names, *(name for name, *_ in self.skipped)
            grids = combinations(owner, all_names if self.is_portfolio else names[0])
        for name, member in self.members:
            params = self.params
            if self.routed is not None:
                params = dict(self.routed[owner._receiver(name)]["fit"])
                if owner.class_weight is not None:
                    params["sample_weight"] = weights
            self.fit_params[name] = params
            for combination in grids.get(name, [{}]):
                candidates.append(candidate_of(name, member, combination))
                request_weights(candidates[-1].estimator, weighed)
        if owner.cv is not None:
            give_folds(candidates, owner.cv, type(owner).__name__)
        for name, _, estimator, *_ in candidates if self.rule == "blend" else ():
            if isinstance(estimator, Staged):
                check_has_no_offset(name, estimator, self.fit_params[name])
        self.candidates, self.listed = [], []
        for group, candidate in enumerate(candidates):
            candidate = candidate._replace(X=self.X, group=group)
            if self.table is not None:
                candidate = self.table.encoded(candidate)
            name, params, estimator, X, *_ = candidate
            invalid = attempt(check_parameters, estimator)
            if isinstance(invalid, Failed):
                self.listed.append(candidate)
                self.failures.append(Failure(candidate, invalid))
                continue
            weights = self.fit_params[name].get("sample_weight")
            # Values of automatic parameters are compared as combinations are.
            for values in estimator._left_to_compare(X, self.y, weights):
                compared = candidate
                if values:
                    compared = candidate_of(name, estimator, values)
                    compared = candidate._replace(
                        params={**params, **values}, estimator=compared.estimator
                    )
                self.listed.append(compared)
                self.candidates.append(compared)
        self.check_some_are_left()
        if owner.class_weight is not None:
            check_members_are_weighed_once(self.candidates)
        if len(self.members) > 1 or self.is_collection:
            self.losses, self.shared_loss = member_losses(self.candidates, self.y)
        if self.is_collection:
            check_collections(owner, self.losses, self.shared_loss)
        weights = self.fit_params[self.candidates[0].member].get("sample_weight")
        self.sample_weight, self.rng = weights, check_random_state(owner.random_state)
        if self.is_portfolio:
            share_folds(self.listed)
            share_seed(self.candidates, self.rng)
        elif owner.random_state is not None:
            # Draws of the corrected score are those of a model that has its own seed.
            share_seed(self.candidates, check_random_state(owner.random_state))

    def leave_out(self, failures):
        """Go on without candidates that have failed; raise an error if none is left."""
        failed = {id(failure.candidate) for failure in failures}
        self.failures += failures
        self.candidates = [c for c in self.candidates if id(c) not in failed]

    def check_some_are_left(self):
        """Raise the error of the first candidate if all have failed."""
        if not self.candidates:
            raise_first(self.failures, self.listed)

    def choose_criterion(self):
        """The criterion for the iterates of all candidates, and the task of a blend."""
        owner, name, given = self.owner, self.owner.criterion, []
        if self.params.get("groups") is not None:
            given.append("groups")
        if owner.cv is not None:
            given.append("cv")
        is_of_table = name in tuple(ESTIMATES)
        if given and is_of_table and name != "cv":
            raise ValueError(
                f"criterion={name!r} would ignore {' and '.join(given)}: "
                "use criterion='cv'."
            )
        if isinstance(self.X, RowSummary) and name != "auto" and not is_of_table:
            raise ValueError(
                "With a RowSummary the criterion must be 'auto' or one of "
                f"{', '.join(map(repr, ESTIMATES))}: a scorer needs all held-out rows."
            )
        if is_of_table and len(self.members) > 1 and self.shared_loss is None:
            scorer = usual_scorer(self.candidates[0].estimator)
            raise ValueError(
                f"Members have different losses ({listed_losses(self.losses)}), which "
                "cannot be compared: use criterion='auto', or a scorer, such as "
                f"criterion={scorer!r}."
            )
        if is_of_table:
            estimate = ESTIMATES[name]
        elif given or self.is_portfolio or owner.search == "race":
            estimate = ESTIMATES["cv"]
        else:
            estimate = automatic(self.candidates, self.y)
        if is_of_table or name == "auto":
            for candidate in self.candidates:
                if isinstance(candidate.estimator, Staged):
                    candidate.estimator._check_loss_chooses()
            self.criterion = PathCriterion(
                estimate.name, estimate, self.y, stage=estimate.stage
            )
        else:
            routed = {} if self.routed is None else self.routed["criterion"]["score"]
            self.criterion = ScorerCriterion.of(
                name, estimate, self.candidates, self.X, self.y, routed
            )
        losses = self.losses or ()
        if is_auto(name) and len(losses) > 1 and self.shared_loss is None:
            # Scores have the weights of the rows, as losses do.
            weights = self.sample_weight
            scorer_params = {} if weights is None else {"sample_weight": weights}
            self.between = ScorerCriterion.of(
                usual_scorer(self.candidates[0].estimator),
                ESTIMATES["cv"],
                self.candidates,
                self.X,
                self.y,
                scorer_params,
            )
        if self.rule == "blend":
            self.blend = BlendTask.of(
                self.candidates,
                self.criterion,
                self.y,
                self.sample_weight,
                self.losses,
                self.shared_loss,
            )
        if owner.verbose:
            skipped = {member: why for member, _, why in self.skipped}
            self.report = FitReport(
                owner, self.candidates, self.criterion, skipped, self.score_at
            )

    def score_at(self, candidate, run, t):
        """The score by which members are compared, of an iterate: name and value."""
        if self.blend is not None and self.blend.mixture is LogLosses:
            blended = [candidate], [run], self.criterion, index_of_least
            return LOG_LOSS, Blending(self.blend, *blended).score[0]
        if self.between is not None:
            return self.between.name, self.between.path(run.estimator, [t])[0]
        name = self.criterion.name
        if isinstance(self.criterion, PathCriterion):
            name = loss_name(run.estimator)
        return name, run.path[t]

    def share_splits(self):
        """Switch the criterion's estimate on; draw splits and share work once."""
        owner, estimate, folds = self.owner, self.criterion.estimate, ESTIMATES["cv"]
        # The cv that every candidate has a copy of.
        origins, cv = [], folds.setting(self.members[0][1])
        for name, params, estimator, X, *_ in self.candidates:
            origin = owner.cv
            if origin is None and self.is_portfolio:
                origin = folds.setting(estimator)
            elif origin is None:
                origin = params.get("cv", cv)
            origins.append(origin)
            weights = self.fit_params[name].get("sample_weight")
            prepare(estimator, estimate, params, X, self.y, weights)
            # Members of several are compared on the rows that all have held out; in a
            # trial their models on all rows are not used.
            chosen_by_path = isinstance(self.criterion, PathCriterion)
            if isinstance(estimator, Staged) and owner._is_trial:
                estimator._growth_of_model = "first"
            elif isinstance(estimator, Staged) and not self.is_portfolio:
                estimator._growth_of_model = "best" if chosen_by_path else "all"
        # Folds of a collection are always the same; a summary has its folds.
        if self.has_rows:
            draws = self.fit_params[self.members[0][0]]
            passed = self.passed_X, target_array(self.passed_y)
            self.groups, failures = draw_once(self.candidates, origins, *passed, draws)
            self.leave_out(failures)
            self.check_some_are_left()
        if len(self.candidates) > 1:
            share_work(self.candidates, self.y, self.fit_params)

    def run(self):
        """Run all candidates, each with its part of the callbacks' tree."""
        owner, late = self.owner, []
        if owner.search == "race":
            self.candidates, ended = race(self)
            for entrant in ended:
                if entrant.failed is not None:
                    of_all = [Failure(c, entrant.failed) for c in entrant.candidates]
                    self.leave_out(of_all)
                    continue
                left_out = self.skipped if entrant.laps else late
                for name, params, *_ in entrant.candidates:
                    left_out.append((name, params, entrant.ended))
            self.ended = [e for e in ended if e.laps and e.failed is None]
            self.check_some_are_left()
        groups, calls = [], []
        for _, group in groupby(self.candidates, attrgetter("group")):
            groups.append(list(group))
        stages = Stages(self.criterion, owner.patience, self.deadline)
        prices, n_groups = [None] * len(groups), len(groups)
        # Before a deadline all runs may be cut, those that take long are the last; in a
        # trial they have few stages.
        judges = is_auto(owner.patience) and isinstance(self.criterion, PathCriterion)
        judges = judges and self.has_rows and not owner._is_trial
        last, order = [], range(n_groups)
        if self.deadline is not None:
            prices = prices_of(groups, self.y)
            order = in_time_order(groups, prices, self.essential)
        elif judges:
            last = [i for i in order if groups[i][0].member in self.open_ended]
            order = [*(i for i in order if i not in last), *last]
        for index in order:
            first, estimators = groups[index][0], []
            for candidate in groups[index]:
                estimators.append(candidate.estimator)
            data = first.X, self.y, self.fit_params[first.member]
            calls.append((estimators, *data, prices[index]))
        fits = [None] * n_groups

        def waves():
            n_first = n_groups - len(last)
            yield calls[:n_first]
            if last:
                ended_runs = [self.ended_runs(groups, fits, index) for index in last]
                yield [(*c, runs) for c, runs in zip(calls[n_first:], ended_runs)]

        if len(groups) == 1 and self.deadline is None and not has_callbacks(owner):
            ended = [stages.run_group(*calls[0])]
        else:
            # Every run of a collection has all of its workers; one alone needs no
            # process.
            n_jobs = 1 if self.is_collection or len(groups) == 1 else owner.n_jobs
            data = {"X": self.X, "y": self.y, "metadata": self.params or None}
            ended = run_side_by_side(
                owner, stages.run_group, waves(), n_groups, data, n_jobs, self.deadline
            )
        for index, fits_of_group in zip(order, ended, strict=True):
            fits[index] = fits_of_group
            if self.report is not None:
                self.report.add(groups[index], fits_of_group)
        self.take_results(chain.from_iterable(fits))
        if self.deadline is not None:
            self.candidates, self.runs, self.late = split_by_time(
                self.candidates, self.runs, owner.time_limit
            )
            self.late = [*late, *self.late]
            self.skipped += self.late
        if (self.late or self.ended or self.failures) and self.losses:
            # Those of the members that are left.
            losses = member_losses(self.candidates, self.y)
            self.losses, self.shared_loss = losses
        for run in self.runs:
            # The ``cv`` that the estimator was given; the splits take much memory.
            drawn = ESTIMATES["cv"].setting(run.estimator)
            if isinstance(drawn, DrawnSplits):
                run.estimator.set_params(cv=drawn.cv)

    def ended_runs(self, groups, fits, index):
        """What has been run, beside which a group of one candidate is; None if nothing.

        ``fits`` has the results of groups, None for those that have not been run.
        Without a blend they are compared where they have the same loss.
        """
        candidate, candidates, runs = groups[index][0], [], []
        for group, fits_of_group in zip(groups, fits):
            for one, fit in zip(group, fits_of_group or ()):
                is_alike = self.losses[one.member] == self.losses[candidate.member]
                may_compare = self.blend is not None or is_alike
                if not isinstance(fit, Failed) and may_compare:
                    candidates.append(one._replace(X=None))
                    runs.append(fit)
        if not runs:
            return None
        comparison = Comparison
        if self.blend is not None:
            comparison = partial(Blending, self.blend)
        candidate = candidate._replace(X=None)
        return EndedRuns(candidates, runs, candidate, self.criterion, comparison)

    def take_results(self, results):
        """Keep the candidates that have been run, and leave out those that failed."""
        results, failures = list(results), []
        for candidate, result in zip(self.candidates, results, strict=True):
            if isinstance(result, Failed):
                failures.append(Failure(candidate, result))
        self.leave_out(failures)
        self.check_some_are_left()
        self.runs = [result for result in results if not isinstance(result, Failed)]

    def compare(self):
        """Choose an iterate from every run, and the best of these or their weights."""
        if self.groups is None and self.y is not None and not self.is_collection:
            X, y = on_host(self.X if self.table is None else self.table.X), self.y
            if 0 < self.n_rows < len(y):
                counted = np.flatnonzero(self.params["sample_weight"])
                X, y = _safe_indexing(X, counted), y[counted]
            self.groups = self.copies = groups_of_copies(X, y)
            if self.copies is not None and len(y) < len(self.y):
                self.groups = np.full(len(self.y), -1)  # of rows that nobody reads
                self.groups[counted] = self.copies
        criterion = replace(self.criterion, groups=self.groups, deadline=self.deadline)
        # Members that are left may have one loss.
        between = self.between if self.shared_loss is None else None
        if self.is_portfolio:
            # On the rows that all runs have held out.
            common = criterion.on_common_rows(self.runs)
            if common is not criterion:
                criterion = common
                self.take_results(
                    [attempt(run.on_rows_of, common) for run in self.runs]
                )
                between = between and between.on_common_rows(self.runs)
        # A blend is of the best iterates.
        rule = RULES.get(self.rule, index_of_least)
        arguments = self.candidates, self.runs, criterion, rule, between
        if self.blend is None:
            self.compared = Comparison(*arguments)
        else:
            self.compared = self.blend.blending(self.blend, *arguments)
        self.compared.ended = self.ended

    def fitted_attributes(self):
        """The models kept, and the results of all runs, as attributes by name."""
        compared, table, criterion = self.compared, self.table, self.criterion
        results = compared.results(self.listed, self.failures, self.skipped)
        best = self.candidates[compared.index].member
        iteration = compared.choices[compared.index].iteration
        fitted, members = {}, {}
        for name in compared.kept:
            index = compared.best_indices[name]
            estimator = self.runs[index].estimator
            member = chosen_iterate(estimator, compared.choices[index].iteration)
            if is_foreign(self.passed_X):
                member = on_device_of(self.passed_X, self.passed_y, member)
            fitted[name] = members[name] = member
            if table is not None:
                view = self.candidates[index].view
                fitted[name] = table.with_view(view, member)
                members[name] = table.with_encoder(view, member)
        # The member of the largest weight, unless several have one.
        kept = members[best]
        if np.count_nonzero(list(compared.weights.values())) > 1:
            kept = compared.blend(fitted)
            if table is not None:
                kept = table.with_encoder(None, kept)
        run, params = self.runs[compared.index], self.candidates[compared.index].params
        X = self.X if table is None else table.X
        with threads_for(shape_of(X)):
            try:
                corrected = compared.corrected_score(self.rng)
            except Uncorrected as reason:
                corrected = str(reason)
        # Members whose paths are shown in the loss of the best one.
        alike = list(self.losses or [best])
        if self.losses and self.shared_loss is None:
            alike = compared.alike(self.losses)
        predictions = averages = None
        if self.has_rows:
            predictions, rows = compared.held_out_predictions()
        if predictions is not None:
            # Means where a row was held out several times, NaN where it never was.
            predictions = np.asarray(predictions, dtype=np.float64)
            n_times = np.bincount(rows, minlength=_num_samples(self.X))
            sums = np.zeros((len(n_times), *predictions.shape[1:]))
            np.add.at(sums, rows, predictions)
            with np.errstate(invalid="ignore"):
                averages = (sums.T / n_times).T
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
            "task_": "classification" if self.of_classes else "regression",
            "path_": compared.paths[best],
            "member_paths_": compared.paths,
            "results_": results,
            **compared.tables(self.listed, self.failures),
            "_alike": alike,
            "_path_error": compared.path_errors[best],
            "_corrected": corrected,
            "_held_out_prediction": averages,
        }

    def advise(self):
        """Warn if another call is likely to do better, and report the result."""
        compared, owner = self.compared, self.owner
        warn_of_failures(self.failures, len(self.listed))
        limited = warn_of_limits(compared, owner.estimator is None)
        if owner.estimator is not None:  # the default models are not the user's
            warn_of_constants(compared, self.y, limited)
        if self.copies is not None:
            folds = ESTIMATES["cv"].setting(self.runs[compared.index].estimator)
            name = self.criterion.estimate.name
            if name == "loo" or (name == "cv" and folds is None):
                warn_of_copies(self.copies)
        if self.deadline is not None:
            warn_of_time(owner.time_limit, self.candidates, self.runs, self.late)
        if self.report is not None:
            self.report.end(compared, perf_counter() - self.begun)
