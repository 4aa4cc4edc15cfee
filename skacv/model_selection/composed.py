"""An estimator that is made of members: which they are, and what is passed to them."""

from sklearn import get_config
from sklearn.model_selection import ParameterGrid
from sklearn.utils import ClassifierTags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._compat import Composition, check_names
from .._estimator.readers import ESTIMATES
from .criteria import scorer_of
from .members import (
    candidate_of,
    check_grid,
    check_members,
    combinations,
    named,
    tags_of,
)
from .portfolios import PORTFOLIOS, task_of, that_take


class ComposedOfMembers(Composition):
    """One estimator, a list of named ones, or the portfolio of a task."""

    _parts = "estimator"

    def _members(self):
        """Name and estimator of all that run; by default, if these are numbers."""
        if self.estimator is None:
            return PORTFOLIOS[self._task()]()
        if isinstance(self.estimator, list):
            return named(self.estimator)
        return [(type(self.estimator).__name__, self.estimator)]

    def _task(self):
        """The task, numbers where that is left to fit."""
        if self.task != "auto":
            return self.task
        return vars(self).get("task_", "regression")

    def _is_portfolio(self):
        return self.estimator is None or isinstance(self.estimator, list)

    def _members_for(self, X, y):
        """Those that run on these data, their names and kinds checked."""
        if self.estimator is None:
            members = self._default_for(X, y)
        else:
            members = self._members()
        if self._is_portfolio():
            check_names(self, [name for name, _ in members])
        check_members(members, type(self).__name__)
        return members

    def _default_for(self, X, y):
        """Members of the default portfolio that can run on these data."""
        task = task_of(X, y) if self.task == "auto" else self.task
        members = that_take(PORTFOLIOS[task](), X, y)
        if self.criterion not in tuple(ESTIMATES):
            return members
        offered = ESTIMATES[self.criterion].is_offered_by
        return [pair for pair in members if offered(pair[1])]

    def _candidates(self, members):
        """An estimator of every member and combination, its parameters checked."""
        grid = self.param_grid
        if not self._is_portfolio():
            (name, member), *_ = members
            return [
                candidate_of(name, member, combination)
                for combination in ParameterGrid(grid or {})
            ]
        check_grid(grid, [name for name, _ in members])
        return [
            candidate_of(name, member, combination)
            for name, member in members
            for combination in combinations(grid, name)
        ]

    def _receiver(self, name):
        """What the member of that name is called where metadata are routed."""
        return name if self._is_portfolio() else "estimator"

    def _routed(self, receiver, method, params):
        """What the method of the estimator, or the scorer, is to get of ``params``."""
        if not get_config()["enable_metadata_routing"]:
            return params
        is_scored = method == "score" and receiver != "criterion"
        caller = "score" if is_scored else "fit"
        return process_routing(self, caller, **params)[receiver][method]

    def get_metadata_routing(self):
        """Metadata routing of this object.

        Returns
        -------
        MetadataRouter
        """
        mapping = (
            MethodMapping()
            .add(caller="fit", callee="fit")
            .add(caller="score", callee="score")
        )
        router = MetadataRouter(owner=self)
        members = self._members()
        if self.estimator is None and self.task == "auto":  # any that fit may take
            members = [pair for members in PORTFOLIOS.values() for pair in members()]
        for name, member in members:
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
        if self.estimator is None and self.task == "auto":  # it may become one
            tags.classifier_tags = ClassifierTags()
        return tags
