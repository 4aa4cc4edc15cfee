"""The terms of the runs of kernel machines: what they compare, share and cost."""

from .._compat import is_foreign
from .._estimator.collections import is_collection
from .._estimator.data.checks import shape_of
from .._estimator.estimates.left_out import FEWEST_ROWS
from .._estimator.estimates.terms import Price
from .._estimator.parameters import is_auto
from .._estimator.run.terms import FitTerms
from ..optim.kernel_matrix import KernelMatrix
from .data import kernel_rows
from .kernels import SquaredDistance
from .scales import MOST_ROWS, SharedDistances, kernels_and_gammas

# Seconds for an entry of the kernel matrix, before the run and in a pass; and for scale
# and preconditioner on any number of rows.
SECONDS_TO_START, SECONDS_OF_PASS, SECONDS_AT_LEAST = 2e-8, 1e-9, 0.5


class KernelTerms(FitTerms):
    """The terms of runs on a kernel matrix, or on functions of centres."""

    def price(self, n_rows, n_columns, n_outputs):
        size = self.model._spec().solver.centers_on(n_rows) or n_rows
        start = SECONDS_AT_LEAST + SECONDS_TO_START * n_rows * size
        update = SECONDS_OF_PASS * n_outputs * size**2
        return Price(start, update, self.model.max_iter)

    def patience(self, record=None):
        """None: a kernel machine stops its run by its own ``patience``."""
        return None

    def leaves_one_out_cheaply(self, X, y):
        shape, spec = shape_of(X), self.model._spec()
        if len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        has_momentum = spec.solver.name_on(shape[0]) == "nesterov"
        has_centers = spec.solver.centers_on(shape[0]) is not None
        is_exact = has_centers or spec.solver.decomposes(shape[0]) or not has_momentum
        return spec.is_quadratic and is_exact

    def values_to_compare(self, X, y, sample_weight=None):
        """The kernels and values of gamma to compare, if automatic, for few rows."""
        # Choosing gamma on the rows that evaluate the run would make the estimate
        # optimistic, most of all with few rows.
        model = self.model
        # Kernels that follow X are those with a scale.
        if not (is_auto(model.gamma) and model._follows_X) or is_collection(X):
            return [{}]
        if sample_weight is None and shape_of(X)[0] > MOST_ROWS:
            return [{}]
        samples, _ = model._encode_samples(X, y, sample_weight)
        if len(samples.y) > MOST_ROWS:
            return [{}]
        scaled = model._standardize_samples(samples)
        compared = {"gamma"} | ({"kernel"} if model.kernel == "auto" else set())
        return [
            {name: value for name, value in pair.items() if name in compared}
            for pair in kernels_and_gammas(model.kernel, scaled)
        ]

    @staticmethod
    def share_work(models, X, y, sample_weight=None):
        """Distances that runs on the same rows share, if they fit in memory."""
        # On a device distances take little time.
        models = [model for model in models if model._takes_distances(X)]
        if len(models) < 2 or is_foreign(X):
            return {}
        if len({model.standardize for model in models}) > 1:
            return {}
        samples, _ = models[0]._encode_samples(X, y, sample_weight)
        samples = models[0]._standardize_samples(samples)
        rows = kernel_rows(samples.columns.apply(samples.passed))
        budget = min(model._budget() for model in models)
        # The distances and the kernel matrix of one model are kept at a time.
        distances = KernelMatrix(
            SquaredDistance(), rows, rows.dtype, budget / 2, models[0]._map
        )
        if distances.values is None:  # they exceed the budget
            return {}
        return {"distances": SharedDistances(distances.values)}
