"""Estimators that forget earlier stages, of which copies are kept."""

import pickle
from copy import copy, deepcopy
from functools import cached_property

import numpy as np
from sklearn.base import is_classifier, is_regressor

from .._estimator.run.recording import RecordsTrajectory
from ..optim.blocks import MEMORY_BYTES
from .adapter import PATIENCE_IN_PASSES, StagedAdapter, response_of


class SnapshotAdapter(StagedAdapter):
    """Estimators that forget earlier stages: copies are kept."""

    count = "max_iter"
    keeps_all = False
    unit = "passes"
    # The attribute, besides ``max_iter``, of such estimators; the method of one stage.
    needs = ""
    method = ""
    patience = PATIENCE_IN_PASSES

    def __init__(self, estimator):
        super().__init__(estimator)
        self.copies = {}  # by stage

    @classmethod
    def adapts(cls, estimator):
        return (
            hasattr(estimator, cls.count)
            and hasattr(estimator, cls.needs)
            and (is_classifier(estimator) or is_regressor(estimator))
            and not isinstance(estimator, RecordsTrajectory)
        )

    @property
    def n_stages(self):
        return max(self.copies, default=0)

    def recorded_stages(self):
        return np.array(sorted(self.copies))

    @cached_property
    def n_bytes(self):
        """Size of a pickled copy."""
        return len(pickle.dumps(self.copies[self.n_stages]))

    def n_kept(self, n_models):
        if not self.copies:  # the first one shows how much memory a copy takes
            return 1
        # The best and the last stage are always kept.
        return max(2, MEMORY_BYTES // (n_models * self.n_bytes))

    def keep(self, stages):
        thinned = copy(self)
        thinned.copies = {t: self.copies[t] for t in stages}
        return thinned

    def at(self, t):
        return copy(self.copies[t]).set_params(**{self.count: t})

    def grow(self, n_stages, X, y, params):
        if self.failure is not None:
            return
        for t in range(self.n_stages, n_stages):
            try:
                self.fit_stage(X, y, params)
            except Exception as error:
                if not self.copies:
                    raise
                # Such as weights that are not finite: earlier stages are as good.
                self.failure = error
                return
            self.copies[t + 1] = deepcopy(self.estimator)

    def fit_stage(self, X, y, params):
        """One more stage of the estimator."""
        getattr(self.estimator, self.method)(X, y, **params)

    def predictions(self, X, first, last, former_sums=None):
        missing = set(range(first + 1, last + 1)) - self.copies.keys()
        if missing:
            raise ValueError(
                f"{type(self.estimator).__name__} needs too much memory for copies of "
                f"all stages: {len(missing)} of those requested were not kept."
            )
        response = response_of(self.copies[last])
        stages = [self.copies[t] for t in range(first + 1, last + 1)]
        return np.stack([getattr(stage, response)(X) for stage in stages]), None
