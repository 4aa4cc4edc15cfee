"""Members of a comparison: names, parameters, folds; what they compute and share.

Splits are drawn once, for all candidates and all stages of their runs. Splits drawn
anew would compare candidates on other rows, and the step, which is stable on all folds,
would change in the middle of a run.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)

from .._compat import Composition, _num_samples, request_of, validate_parameters
from .._estimator.collections import is_collection, on_workers
from .._estimator.data.row_summary import RowSummary
from .._estimator.delegation import class_of, request_weights
from .._estimator.estimates.folds import (
    ShuffledFolds,
    folds_of,
    row_numbers,
    splitter_of,
)
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import (
    RecordsTrajectory,
    check_records_trajectory,
)
from .._estimator.parameters import is_auto, is_off
from .._estimator.run.source import takes_moments_of
from .._estimator.run.summary_data import n_folds_asked, n_sampled_asked
from .._names import did_you_mean
from .._warnings import warn
from ..staged import Staged
from ..staged.estimator import recorded
from ..staged.run import cloned, last_of
from .criteria import scorer_of
from .failures import Failed, Failure, attempt
from .portfolios import PORTFOLIOS

KINDS = {"regression": "regressor", "classification": "classifier"}


class Candidate(NamedTuple):
    """A member with one combination of its parameters, for one run."""

    member: str
    params: dict
    estimator: object
    # The table that it is fitted to; None before it is known.
    X: object = None
    # Candidates of a group differ only in automatic parameters.
    group: int = 0
    # The transformer that makes X from the codes of an encoder, or from a sparse X.
    view: object = None


def check_members(members, owner):
    """Raise if members are not of one kind, or do not record their trajectories.

    ``members`` are pairs of a name and an estimator.
    """
    owner_name, kinds = type(owner).__name__, {}
    is_of_list = isinstance(owner.estimator, list)
    for name, member in members:
        if isinstance(member, ComposedOfMembers):
            which = f"The member {name!r}" if is_of_list else "The 'estimator'"
            raise ValueError(
                f"{which} of {owner_name} is a {type(member).__name__}, which stops "
                "itself: fit it directly, or list models as members, such as "
                "[('lasso', TrajectoryLasso('path')), ('trees', "
                "HistGradientBoostingRegressor())]."
            )
        if not isinstance(member, RecordsTrajectory):
            check_records_trajectory(member, owner_name, name if is_of_list else None)
        kinds[name] = get_tags(member).estimator_type
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


def check_collections(stopping, losses, shared_loss):
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
    if stopping.criterion not in offered:
        raise ValueError(
            f"criterion={stopping.criterion!r} needs single rows, which stay on their "
            "workers with Dask input: set criterion='cv', or 'loo' with loo=100."
        )


def member_losses(candidates, y):
    """The loss of every member on its table, by name, and that of all, or None."""
    last, losses = {}, {}
    for candidate in candidates:
        last[candidate.member] = candidate
    for name, candidate in last.items():
        losses[name] = candidate.estimator._loss_on(candidate.X, y)
    first, *rest = losses.values()
    return losses, first if rest.count(first) == len(rest) else None


def usual_scorer(estimator):
    """The name of the scorer that compares members with different losses."""
    return "accuracy" if is_classifier(estimator) else "r2"


def listed_losses(losses):
    """The members and their losses, for errors."""
    return ", ".join(
        f"{name!r}: {getattr(loss, 'name', 'another loss')}"
        for name, loss in losses.items()
    )


def combinations(owner, names):
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
    estimator._price(1, 1, 1)


def candidate_of(name, member, combination):
    """A clone of a member with a combination of parameters."""
    estimator = clone(member)
    estimator.set_params(**clone(combination, safe=False))
    return Candidate(name, combination, estimator)


def give_folds(candidates, cv, owner_name):
    """Let the ``cv`` of a stopping estimator be that of all its candidates.

    ValueError is raised if one has no folds, or has its own.
    """
    is_iterable = not (isinstance(cv, Integral) or hasattr(cv, "split"))
    cv = list(cv) if is_iterable else cv
    for member, _, estimator, *_ in candidates:
        ESTIMATES["cv"].check_offered(estimator, "cv")
        if ESTIMATES["cv"].is_on(estimator):
            raise ValueError(
                f"cv is set twice, in {owner_name} and in its estimator {member!r}: "
                "set only one."
            )
        estimator.set_params(cv=cv)


def share_folds(candidates):
    """Give candidates the same folds.

    ValueError is raised if members ask for different folds.
    """
    settings, given = [], []
    for candidate in candidates:
        setting = ESTIMATES["cv"].setting(candidate.estimator)
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
            candidate.estimator.set_params(cv=given[0])


def share_seed(candidates, rng):
    """Give candidates without a ``random_state`` the same: they draw the same rows."""
    seed = rng.randint(np.iinfo(np.int32).max)
    for candidate in candidates:
        seeds = {}
        # Seeds of a forest inside Staged, and of the steps of a pipeline, too.
        for name, value in candidate.estimator.get_params().items():
            if value is None and name.rpartition("__")[2] == "random_state":
                seeds[name] = seed
        candidate.estimator.set_params(**seeds)


def prepare(estimator, estimate, combination, X, y, sample_weight=None):
    """Make the estimator compute what the criterion needs, and nothing else.

    ``combination`` is that of ``param_grid``, for errors to name. ValueError is raised
    if the estimator cannot compute the estimate, or has switched it off.
    """
    needing = f"criterion={estimate.name!r}"
    estimate.check_offered(estimator, needing)
    setting = estimate.setting(estimator)
    if setting is False:
        among = f" (candidate {combination} of param_grid)" if combination else ""
        raise ValueError(
            f"{needing} needs {estimate.path}, which {class_of(estimator)} does "
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
    """A splitter that has drawn, in the place of the one that would draw again."""

    # The int, splitter or iterable that it stands for.
    cv: object
    # Training rows and held-out rows of every fold.
    splits: list
    # The group of every sample, if groups have been passed to it.
    groups: object = None

    def __sklearn_clone__(self):
        """This object, which does not change: a copy would take memory."""
        return self

    def split(self, X, y=None, **params):
        """The splits that have been drawn, whatever is passed."""
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, **params):
        """Number of splits."""
        return len(self.splits)

    def with_groups(self):
        """This splitter: groups have had their part when the splits were drawn."""
        return self

    def get_metadata_routing(self):
        """Metadata routing of the splitter that it stands for."""
        return get_routing_for_object(check_cv(self.cv))


def draw_once(candidates, origins, X, y, fit_params):
    """Give the same splits to all candidates that have the same ``cv``.

    ``origins`` has the ``cv`` that every candidate has a copy of, X are the rows as the
    user has them, and ``fit_params`` are passed to the ``fit`` of candidates. Returned
    are groups, or None if none are passed to the splitters, and Failures of candidates
    that cannot have their folds.

    Shapes: groups (n_samples,).
    """
    routes, drawn = get_config()["enable_metadata_routing"], {}
    params, weights = {}, fit_params.get("sample_weight")
    groups, failures = None, []
    for key, value in fit_params.items():
        if key == "groups" or (routes and key != "sample_weight"):
            params[key] = value

    def draw(candidate, origin):
        estimator = candidate.estimator
        try:
            splitter, split_params, groups = splitter_of(estimator, y, params)
            splits = list(splitter.split(X, y, **split_params))
            rows = np.arange(_num_samples(X))
        except (TypeError, ValueError):
            # Bad data have an error of their own.
            estimator._check_data(candidate.X, y, weights)
            raise
        if is_classifier(estimator):
            splits = of_several_classes(splits, y, weights)
        # Errors and warnings of folds are those of all runs.
        folds_of(splits, rows if weights is None else np.where(weights > 0, rows, -1))
        return DrawnSplits(origin, splits, groups)

    for candidate, origin in zip(candidates, origins):
        if not ESTIMATES["cv"].is_on(candidate.estimator):
            continue
        if id(origin) not in drawn:
            drawn[id(origin)] = attempt(draw, candidate, origin)
        splits = drawn[id(origin)]
        if isinstance(splits, Failed):
            failures.append(Failure(candidate, splits))
            continue
        groups = splits.groups if groups is None else groups
        candidate.estimator.set_params(cv=splits)
    return groups, failures


def of_several_classes(splits, y, sample_weight):
    """The splits whose training rows have several classes, with a warning of others.

    A model of rows of one class says nothing of any candidate. If all rows of another
    class are held out by such folds, these stay: all of them would be judged by rows of
    one class otherwise.
    """
    y = np.asarray(y)
    if y.size > len(y):  # several labels in a row
        return splits
    counts = np.ones(len(y), bool) if sample_weight is None else sample_weight > 0
    label = np.full(len(y), -1)  # of rows that do not count
    label[counts] = np.unique(y[counts].ravel(), return_inverse=True)[1]
    if label.max() < 1:  # there are no others, which is not because of the folds
        return splits

    def classes_of(number, rows):
        rows = row_numbers(rows, len(y), f"Fold {number} of cv")
        return set(label[rows].tolist()) - {-1}

    kept, single, held_out_classes = [], [], set()
    for number, (fitted, held_out) in enumerate(splits):
        if len(classes_of(number, fitted)) == 1:
            single.append(number)
        else:
            kept.append((fitted, held_out))
            held_out_classes |= classes_of(number, held_out)
    if not single:
        return splits
    stay = len(held_out_classes) < 2
    names = f"Fold {single[0]}"
    if len(single) > 1:
        names = f"Folds {', '.join(map(str, single))}"
    outcome = "left out"
    if stay:
        outcome = (
            "used nevertheless, since the other folds would hold out rows of one class "
            "only"
        )
    warn(
        f"{names} of cv would be fitted to rows of one class, which says little about "
        f"a classifier: {outcome}. Use a splitter whose training rows contain all "
        "classes, such as StratifiedKFold, or TimeSeriesSplit with fewer splits.",
        UserWarning,
    )
    return splits if stay else kept


def share_work(candidates, y, fit_params):
    """Let candidates of a member that are fitted to the same table share work.

    ``fit_params`` has the metadata for the ``fit`` of every member.
    """
    together = {}
    for candidate in candidates:
        key = candidate.member, id(candidate.X)
        together.setdefault(key, []).append(candidate)
    for alike in together.values():
        name, _, estimator, X, *_ = alike[0]
        weights = fit_params[name].get("sample_weight")
        estimators = [candidate.estimator for candidate in alike]
        # What fails here fails in the runs, which do without.
        attempt(estimator._share_work, estimators, X, y, weights)


def read_once(members, cv, X, y, params):
    """The summary of a collection, where its moments are enough for all members.

    Returned are X, y and the other parameters of fit; or a summary, None, and these
    parameters without weights, which the summary has.
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
    names = "estimator_type", "regressor_tags", "classifier_tags"
    for name in (*names, "target_tags", "input_tags"):
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
    # Whether this fit, on a sample of rows, is to find which default members to run.
    _is_trial = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this object and of its estimators.

        Parameters
        ----------
        **params : dict
            Those of a single estimator are ``estimator__parameter``, those of
            estimators in a list ``name__parameter``.

        Returns
        -------
        self : object
        """
        try:
            return super().set_params(**params)
        except ValueError as error:
            # Those of an estimator, or of a step of a pipeline, without the prefix.
            for name in sorted(params.keys() - self.get_params().keys()):
                if f"estimator__{name}" in self.get_params():
                    error.add_note(
                        f"{name!r} is a parameter of the estimator inside of "
                        f"{type(self).__name__}: write 'estimator__{name}'."
                    )
            raise

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
            return [(name, member) for name, member, *_ in PORTFOLIOS[task]()]
        if isinstance(self.estimator, list):
            pairs, n_jobs = self.estimator, None
        else:
            pairs = [(type(self.estimator).__name__, self.estimator)]
            # An estimator that runs alone has all threads.
            n_jobs = self.n_jobs if self.param_grid is None else None
        members, are_pairs = [], bool(pairs)
        for pair in pairs:
            is_pair = isinstance(pair, tuple) and len(pair) == 2
            if not (is_pair and isinstance(pair[0], str)):
                are_pairs = False
                break
            name, member = pair
            if not isinstance(member, RecordsTrajectory):
                member = recorded(member, n_jobs)
            members.append((name, member))
        if not are_pairs:
            raise ValueError(
                "'estimator' as a list must contain at least one pair of a name (a "
                f"string) and an estimator, got {pairs!r}."
            )
        return members

    def _weighed_methods(self):
        """Methods of which members get weights if they do not say whether they do.

        These are all of default members, which nobody else can ask, and otherwise those
        of which this object requests weights.
        """
        methods = []
        for method in ("fit", "score"):
            request = request_of(self, method)
            if request or (request is None and self.estimator is None):
                methods.append(method)
        return methods

    def _receiver(self, name):
        """The name of a member in metadata routing."""
        is_portfolio = self.estimator is None or isinstance(self.estimator, list)
        return name if is_portfolio else "estimator"

    def get_metadata_routing(self) -> Any:
        """Metadata routing of this object.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="score", callee="score")
        router = MetadataRouter(owner=self)
        own_requests = request_of(self, "fit"), request_of(self, "score")
        if self.estimator is None or any(isinstance(r, str) for r in own_requests):
            router.add_self_request(self)
        members = self._members()
        if self.estimator is None and self.task == "auto":  # any that fit may take
            members = [
                (name, member)
                for portfolio in PORTFOLIOS.values()
                for name, member, *_ in portfolio()
            ]
        for name, member in members:
            member = clone(member)
            request_weights(member, self._weighed_methods())
            if self.cv is not None:
                member.set_params(cv=self.cv)
            router.add(method_mapping=mapping, **{self._receiver(name): member})
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
