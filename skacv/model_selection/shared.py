"""What candidates share while they run: an estimate, splits, distances.

Splits are drawn once, for all candidates and all stages of their runs. Splits drawn
anew would compare candidates on other rows, and the step, which is stable on all folds,
would change in the middle of a run.
"""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from .._compat import _num_samples
from .._estimator.data.checks import target_array
from .._estimator.data.row_summary import RowSummary
from .._estimator.delegation import class_of
from .._estimator.estimates.folds import folds_of, row_numbers, splitter_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from .._warnings import warn
from .candidates import drop_left_out
from .failures import Failed, attempt


@contextmanager
def shared_work(owner, data, candidates, criteria):
    """While candidates run: the estimate of the criterion, splits and distances.

    Yielded are the groups of rows that splitters have got, or None. Afterwards models
    have the ``cv`` again that they were given: splits take much memory.
    """
    left, groups = drop_left_out(candidates), None
    origins = cv_of_all(owner, data, left)
    for candidate in left:
        switch_on(criteria.of_iterates.estimate, candidate, data.y)
    # Folds of a collection are always the same; a summary has its folds.
    if data.has_rows:
        params = candidates[0].fit_params
        passed = data.passed_X, target_array(data.passed_y)
        groups = draw_once(left, origins, *passed, params)
    left = drop_left_out(candidates)
    if len(left) > 1:
        share_distances(left, data.y)
    yield groups
    for candidate in candidates:
        candidate.shared = {}
        give_back_cv(candidate.model)
        if candidate.run is not None:
            give_back_cv(candidate.run.estimator)


def cv_of_all(owner, data, candidates):
    """The ``cv`` that every candidate has a copy of: equal objects draw once."""
    folds, origins = ESTIMATES["cv"], []
    cv = folds.setting(data.members[0][1])
    for candidate in candidates:
        origin = owner.cv
        if origin is None and data.is_portfolio:
            origin = folds.setting(candidate.model)
        elif origin is None:
            origin = candidate.params.get("cv", cv)
        origins.append(origin)
    return origins


def switch_on(estimate, candidate, y):
    """Make the model compute what the criterion needs, and nothing else.

    ValueError is raised if the model cannot compute the estimate, or has switched it
    off.
    """
    estimator, X, sample_weight = candidate.model, candidate.X, candidate.sample_weight
    needing = f"criterion={estimate.name!r}"
    estimate.check_offered(estimator, needing)
    setting = estimate.setting(estimator)
    if setting is False:
        combination, among = candidate.params, ""
        if combination:
            among = f" (candidate {combination} of param_grid)"
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

    def split(self, X, y=None, groups=None, **params):
        """The splits that have been drawn, whatever is passed."""
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, groups=None, **params):
        """Number of splits."""
        return len(self.splits)

    @property
    def is_default(self):
        """Whether nobody asks for these folds: any unseen rows judge as well."""
        is_default = self.cv is None or getattr(self.cv, "is_default", False)
        return is_default and self.groups is None

    def with_groups(self):
        """This splitter: groups have had their part when the splits were drawn."""
        return self

    def get_metadata_routing(self):
        """Metadata routing of the splitter that it stands for."""
        return get_routing_for_object(check_cv(self.cv))


def draw_once(candidates, origins, X, y, fit_params):
    """Give the same splits to all candidates that have the same ``cv``.

    ``origins`` has the ``cv`` that every candidate has a copy of, X are the rows as the
    user has them, and ``fit_params`` are passed to the ``fit`` of candidates. Those
    that cannot have their folds are left out. Returned are groups, or None if none are
    passed to the splitters.

    Shapes: groups (n_samples,).
    """
    routes, drawn = get_config()["enable_metadata_routing"], {}
    params, weights = {}, fit_params.get("sample_weight")
    groups = None
    for key, value in fit_params.items():
        if key == "groups" or (routes and key != "sample_weight"):
            params[key] = value

    def draw(candidate, origin):
        model = candidate.model
        try:
            splitter, split_params, groups = splitter_of(model, y, params)
            splits = list(splitter.split(X, y, **split_params))
            rows = np.arange(_num_samples(X))
        except (TypeError, ValueError):
            # Bad data have an error of their own.
            terms_of(model).check_data(candidate.X, y, weights)
            raise
        if is_classifier(model):
            splits = drop_folds_of_one_class(splits, y, weights)
        # Errors and warnings of folds are those of all runs.
        folds_of(splits, rows if weights is None else np.where(weights > 0, rows, -1))
        return DrawnSplits(origin, splits, groups)

    for candidate, origin in zip(candidates, origins):
        if not ESTIMATES["cv"].is_on(candidate.model):
            continue
        if id(origin) not in drawn:
            drawn[id(origin)] = attempt(draw, candidate, origin)
        splits = drawn[id(origin)]
        if isinstance(splits, Failed):
            candidate.leave_out(splits)
            continue
        groups = splits.groups if groups is None else groups
        candidate.model.set_params(cv=splits)
    return groups


def give_back_cv(model):
    """Give a model its ``cv`` again in the place of splits drawn from it."""
    drawn = ESTIMATES["cv"].setting(model)
    if isinstance(drawn, DrawnSplits):
        model.set_params(cv=drawn.cv)


def drop_folds_of_one_class(splits, y, sample_weight):
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


def share_distances(candidates, y):
    """Let candidates of a member that are fitted to the same table share work."""
    together = {}
    for candidate in candidates:
        key = candidate.member, id(candidate.X)
        together.setdefault(key, []).append(candidate)
    for alike in together.values():
        first, models = alike[0], [candidate.model for candidate in alike]
        # What fails here fails in the runs, which do without.
        shared = attempt(
            terms_of(first.model).share_work, models, first.X, y, first.sample_weight
        )
        for candidate in alike:
            candidate.shared = {} if isinstance(shared, Failed) else shared
