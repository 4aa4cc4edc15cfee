"""What ``fit`` is passed besides X and y: for which step, and for which rows."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import _safe_indexing
from .._estimator.data.checks import validated_weights


@dataclass(frozen=True)
class FitParams:
    """Parameters of ``fit``, of the steps before the last and of the last.

    Attributes
    ----------
    before : dict
        For the steps before the last of a pipeline.
    last : dict
        For the last step, or the only estimator.
    n_rows : int or None
        Set by :meth:`checked`.
    offset : str or None
        The parameter of the last step that is added to the sum of its stages.
    of_columns : tuple of str
        Parameters of the last step with a value for every column.
    """

    before: dict
    last: dict
    n_rows: int | None = None
    offset: str | None = None
    of_columns: tuple = ()

    @classmethod
    def of(cls, estimator, kind, params):
        """Those that an estimator is passed, whose last step is of a kind."""
        is_pipeline = isinstance(estimator, Pipeline)
        before, last = _parted(estimator, params) if is_pipeline else ({}, params)
        offset = kind.offset if last.get(kind.offset) is not None else None
        return cls(before, last, None, offset, kind.of_columns)

    def checked(self, n_rows):
        """The same for so many rows.

        Raises
        ------
        ValueError
            If an offset is not a number, or several, for every row, or if weights are
            not numbers, negative, or zero on all rows.
        """
        last = self.last
        if last.get("sample_weight") is not None:
            weights = validated_weights(last["sample_weight"], n_rows)
            if not weights.any():
                raise ValueError("sample_weight is zero on all rows.")
            last = {**last, "sample_weight": weights}
        if self.offset is not None:
            offset = _checked_offset(self.offset, last[self.offset], n_rows)
            last = {**last, self.offset: offset}
        return replace(self, last=last, n_rows=n_rows)

    def rows(self, rows):
        """The same for some rows: what is as long as X is indexed."""
        last = {
            name: value if name in self.of_columns else self._rows_of(value, rows)
            for name, value in self.last.items()
        }
        before = {
            name: self._rows_of(value, rows) for name, value in self.before.items()
        }
        return replace(self, before=before, last=last, n_rows=len(rows))

    def _rows_of(self, value, rows):
        """Some rows of an array or a list, if it is as long as X."""
        if hasattr(value, "__array__") and not hasattr(value, "shape"):
            value = np.asarray(value)
        is_list = isinstance(value, list | tuple)
        length = (len(value),) if is_list else getattr(value, "shape", ())[:1]
        return _safe_indexing(value, rows) if length == (self.n_rows,) else value

    def offsets(self):
        """Offsets of the rows, (n_rows, n_outputs), None without any."""
        if self.offset is None:
            return None
        return self.last[self.offset].reshape(self.n_rows, -1)


def _checked_offset(name, offset, n_rows):
    """An offset as numbers, one or several for every row."""
    shape = np.shape(offset)
    if len(shape) not in (1, 2) or shape[0] != n_rows:
        raise ValueError(
            f"{name} must have shape ({n_rows},), or ({n_rows}, n) with a number for "
            f"each of n outputs or classes, got {shape}."
        )
    return check_array(offset, dtype=np.float64, ensure_2d=False, input_name=name)


def _parted(pipeline, params):
    """Parameters for the steps before the last of a pipeline, and for the last."""
    name, last = pipeline.steps[-1]
    if get_config()["enable_metadata_routing"]:
        before = pipeline[:-1].get_metadata_routing() if len(pipeline) > 1 else None
        own = before.consumes("fit_transform", params) if before else ()
        # By the names that the last step has for them, which may be others.
        fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=pipeline).add(last=last, method_mapping=fit)
        of_last = router.route_params(caller="fit", params=params)["last"].fit
        return {key: params[key] for key in own}, dict(of_last)
    before, of_last = {}, {}
    for key, value in params.items():
        step, separator, own = key.partition("__")
        if separator and step != name:
            before[key] = value
        else:
            of_last[own or key] = value
    return before, of_last
