"""Estimators made of members: the choice of members, and metadata for them."""

from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import ClassifierTags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import Composition, check_names
from .._estimator.delegation import routed
from .._estimator.estimates.readers import ESTIMATES
from ..staged import recorded
from .criteria import scorer_of
from .members import (
    candidate_of,
    check_members,
    combinations,
    named,
    tags_of,
)
from .portfolios import PORTFOLIOS, Table, task_of, that_take, warn_of_columns


class ComposedOfMembers(Composition):
    """One estimator, a list of named ones, or the portfolio of a task."""

    _parts = "estimator"

    def _members(self):
        """Name and estimator of all that run; by default, if these are numbers.

        Those that are fitted in stages are wrapped.
        """
        if self.estimator is None:
            return PORTFOLIOS[self._task()]()
        if isinstance(self.estimator, list):
            return [(name, recorded(each)) for name, each in named(self.estimator)]
        # What runs alone has all threads.
        n_jobs = self.n_jobs if self.param_grid is None else None
        return [(type(self.estimator).__name__, recorded(self.estimator, n_jobs))]

    def _task(self):
        """The task, numbers where that is left to fit."""
        if self.task != "auto":
            return self.task
        return vars(self).get("task_", "regression")

    def _is_portfolio(self):
        return self.estimator is None or isinstance(self.estimator, list)

    def _members_for(self, X, y):
        """Those that run on these data, checked, and why others do not.

        Returns
        -------
        members : list of (str, estimator)
        left_out : dict of str to str
        """
        if self.estimator is None:
            members, left_out = self._default_for(X, y)
        else:
            members, left_out = self._members(), {}
        if self._is_portfolio():
            check_names(self, [name for name, _ in members])
        check_members(members, self)
        return members, left_out

    def _default_for(self, X, y):
        """Members of the default portfolio that can run on these data."""
        task = task_of(X, y) if self.task == "auto" else self.task
        table = Table.of(X, y)
        is_of_table = self.criterion in tuple(ESTIMATES)
        needed = ESTIMATES[self.criterion] if is_of_table else None
        members, left_out = that_take(PORTFOLIOS[task](table), table, needed)
        warn_of_columns(left_out)
        return members, left_out

    def _candidates(self, members, X, y, fit_params):
        """An estimator of every member and combination, its parameters checked.

        What a member leaves to us is compared as combinations are.
        """
        names = [name for name, _ in members]
        if self._is_portfolio():
            compared = combinations(self.param_grid, names)
        else:
            compared = {names[0]: ParameterGrid(self.param_grid or {})}
        candidates = [
            candidate_of(name, member, combination)
            for name, member in members
            for combination in compared[name]
        ]
        self._give_folds(candidates)
        return [
            candidate_of(
                each.member, each.estimator, {**each.params, **values}
            )._replace(group=group)
            for group, each in enumerate(candidates)
            for values in each.estimator._left_to_compare(
                X, y, fit_params[each.member].get("sample_weight")
            )
        ]

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
        for each in candidates:
            ESTIMATES["cv"].check_offered(each.estimator, "cv")
            if ESTIMATES["cv"].is_on(each.estimator):
                raise ValueError(
                    f"cv is given twice, to {type(self).__name__} and to its estimator "
                    f"{each.member!r}: give it to one of them."
                )
            each.estimator.set_params(cv=cv)

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
        if self.estimator is None and self.task == "auto" and "task_" not in vars(self):
            # It may become one. Cross-validation then splits by classes where y has
            # some, and numbers as they come.
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags
