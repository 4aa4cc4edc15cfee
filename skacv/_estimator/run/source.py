"""The rows of a fit: arrays in memory, a summary of rows, or collections on workers.

:func:`source_of` asks once what X is; a :class:`Source` answers all that depends on it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._compat import is_foreign, on_host
from ...optim.run import LiveRun
from ..collections import import_dask_layer, is_collection
from ..data.checks import shape_of
from ..data.row_summary import RowSummary
from ..data.training_data import EncodedTarget, Samples, are_equal
from ..devices import devices_of
from ..estimates.folds import list_folds
from ..estimates.left_out import check_loo
from .plan import sees_moments_alone
from .summary_data import (
    check_estimates,
    check_outputs,
    n_folds_asked,
    n_folds_of,
    n_sampled_asked,
    read_summary,
)

# Rows of Dask collections with more columns stay on their workers: their moments would
# take longer than a few hundred updates.
MAX_COLUMNS_OF_COLLECTIONS = 2000


def source_of(spec, X, y, sample_weight, offset=None):
    """The source of a fit, not validated yet."""
    passed = X, y, sample_weight
    if type(X) is np.ndarray:
        return ArraySource(*passed, X.shape, passed_offset=offset)
    if offset is not None and (is_collection(X) or isinstance(X, RowSummary)):
        what = "a RowSummary" if isinstance(X, RowSummary) else "Dask input"
        raise ValueError(
            f"offset is not available with {what}: change y and sample_weight before, "
            "such as to counts / exposure with weights of exposure."
        )
    if is_collection(X) and not spec.is_dual:
        # A collection may not know its shape.
        if takes_moments_of(spec, X):
            return CollectionSummarySource(*passed)
        return import_dask_layer("fit").DaskSource(*passed)
    if isinstance(X, RowSummary):
        return SummarySource(*passed)
    shape = shape_of(X)
    return ArraySource(*passed, shape, is_foreign=is_foreign(X), passed_offset=offset)


def takes_moments_of(spec, X):
    """Whether the moments of a collection suffice, and are not too large."""
    n_columns = X.shape[1] if len(X.shape) == 2 else np.nan
    return n_columns <= MAX_COLUMNS_OF_COLLECTIONS and spec.is_of_moments


@dataclass(eq=False)
class Source:
    """The rows of a fit, by a subclass for each kind of X."""

    # ``validate(model, spec)`` comes first. ``problem(model, task, params)`` returns
    # the data of the run, the folds as rows of these, and the group of every sample or
    # None.

    X: Any
    y: Any
    sample_weight: Any
    shape: tuple = ()
    loss: Any = None
    # Once validated, what two sources of the same rows have in common: any objects with
    # an equality, and arrays.
    token: Any = None
    arrays: tuple = ()
    is_foreign: bool = False  # X is of another namespace: fitted arrays are where it is
    # As passed, and once validated the RowOffsets; None: there are none.
    passed_offset: Any = None
    offset: Any = None

    live_type: ClassVar = LiveRun

    @property
    def passed(self):
        """X, y and sample_weight, for callbacks."""
        return self.X, self.y, self.sample_weight

    def is_same(self, source):
        """Whether another validated source has the same rows."""
        if type(self) is not type(source):
            return False
        if self.token != source.token:
            return False
        return all(map(are_equal, self.arrays, source.arrays))

    def devices_of(self, model):
        """Where fitted arrays of a model are, or None for NumPy."""
        return devices_of(model, self.X, self.y) if self.is_foreign else None

    def side_runs(self, data):
        """Fits that the data bring with them, side by side with the run; or None."""
        return None

    def finish(self, finished):
        """A FinishedRun, with what is known of its estimates."""
        return finished

    def warn(self, model, finished):
        """Warn about a run."""
        model._warn_of(finished)


@dataclass(eq=False)
class ArraySource(Source):
    """Arrays in memory, or on a device."""

    samples: Samples | None = None
    encoded: EncodedTarget | None = None

    def validate(self, model, spec):
        rows = self.X, self.y, self.sample_weight
        samples, encoded = model._encode_samples(*rows, self.passed_offset)
        self.samples, self.encoded, self.loss = samples, encoded, encoded.loss
        self.offset, self.passed_offset = samples.offset, None
        self.arrays = samples.rows, samples.y, encoded.weights, samples.passed

    @property
    def passed(self):
        return self.X, self.y, on_host(self.sample_weight)

    def problem(self, model, task, params):
        if model.loo is not False:
            check_loo(model.loo, len(self.samples.rows))
        folds, groups = [], None
        if model.cv is not None or params:
            y = model._labels_to_split_by(on_host(self.y))
            folds, groups = list_folds(model, self.X, y, self.samples, params)
        data, folds = model._data_of(task, self.samples, self.encoded, folds)
        return data, folds, groups


@dataclass(eq=False)
class SummarySource(Source):
    """A RowSummary: its sampled rows, and pseudo-rows for all others."""

    def validate(self, model, spec):
        name, summary = type(model).__name__, self.X
        if not spec.takes_summaries:
            raise ValueError(
                f"A RowSummary works with the squared error only, but {name} needs "
                "the rows: fit it to arrays."
            )
        check_is_fitted(summary)
        if self.y is not None or self.sample_weight is not None:
            raise ValueError(
                "A RowSummary contains targets and weights: pass no y and no "
                "sample_weight."
            )
        if summary._n_rows < 2:
            raise ValueError(
                f"The summary has {summary._n_rows} row(s) with positive weight, "
                "while a minimum of 2 is required."
            )
        update = spec.solver.update(summary._n_rows)
        if not sees_moments_alone(update):
            raise ValueError(
                "A RowSummary can only be used with gradient steps on all rows, but "
                f"this {name} uses others ({type(update).__name__}): use another "
                "solver, or fit to arrays."
            )
        if model.keep_data:
            raise ValueError("keep_data=True needs the rows: fit to arrays.")
        check_outputs(model, summary._n_targets)
        # Rows may be added to the summary later.
        self.token = summary, summary.n_samples_seen_
        self.loss, _ = model._loss_of(None, None)

    def problem(self, model, task, params):
        if params:
            raise TypeError(
                f"fit() got unexpected arguments: {', '.join(sorted(params))}: a "
                "summary has its own folds."
            )
        check_estimates(model, task.estimates, self.X)
        n_folds = n_folds_of(model.cv, self.X)
        return *read_summary(self.X, self.loss, model, n_folds), None


@dataclass(eq=False)
class CollectionSummarySource(SummarySource):
    """A collection of which the moments suffice: it is summarised first."""

    def validate(self, model, spec):
        sizes = n_folds_asked(model), n_sampled_asked(model)
        rows = self.X, self.y, self.sample_weight
        self.X = import_dask_layer("summary").summarise(*rows, *sizes)
        self.y = self.sample_weight = None
        super().validate(model, spec)
