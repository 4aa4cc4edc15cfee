"""Members of a comparison: their names and kinds, and metadata that reach them."""

from copy import copy
from itertools import chain
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import Composition, request_for_offset, request_of
from .._estimator.delegation import request_weights
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import is_auto
from .._estimator.run.recording import (
    RecordsTrajectory,
    check_records_trajectory,
)
from ..optim.losses import SquaredError
from ..staged.estimator import as_staged
from ..staged.fits import clone_estimator
from ..staged.once import as_member
from ..staged.query_losses import parse_measure
from .criteria import scorer_of
from .defaults.portfolio import PORTFOLIOS, list_all_forms

KINDS = {"regression": "regressor", "classification": "classifier"}


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
        copied.estimator = clone_estimator(self.estimator)
        return copied

    def _members(self):
        """Name and estimator of all that run; by default, if these are numbers.

        Those that are fitted in stages are wrapped.
        """
        if self.estimator is None:
            task = self.task
            if task == "auto":
                task = vars(self).get("task_", "regression")
            portfolio = PORTFOLIOS[task](loss=self._default_loss())
            return [(name, member) for name, member, *_ in portfolio]
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
                member = as_staged(member, n_jobs)
            composed = isinstance(member, ComposedOfMembers)  # which is refused
            if isinstance(self.estimator, list) and not composed:
                member = as_member(member)
            members.append((name, member))
        if not are_pairs:
            raise ValueError(
                "'estimator' as a list must contain at least one pair of a name (a "
                f"string) and an estimator, got {pairs!r}."
            )
        return members

    def _default_loss(self):
        """The loss of default members for regression."""
        return SquaredError()

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
        else:
            router.add_self_request(request_for_offset(self))
        if self.estimator is None:  # any that fit may run
            tasks = PORTFOLIOS if is_auto(self.task) else [self.task]
            loss = self._default_loss()
            members = chain.from_iterable(list_all_forms(task, loss) for task in tasks)
        else:
            members = self._members()
        for name, member in members:
            member = clone(member)
            request_weights(member, self._weighed_methods())
            if self.cv is not None:
                member.set_params(cv=self.cv)
            router.add(method_mapping=mapping, **{self._receiver(name): member})
        is_own = self.criterion in ("auto", "cox", *ESTIMATES)
        if not is_own and parse_measure(self.criterion) is None:
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
