"""From rows in Dask collections to a problem on workers, and back."""

from dataclasses import dataclass
from operator import add

import dask
import numpy as np
from dask import delayed
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from .._compat import class_weights
from .._estimator.collections import is_collection
from .._estimator.data.checks import NAMES, check_size, check_target, validated_target
from .._estimator.data.standardized import AS_PASSED, Standardized
from .._estimator.data.training_data import (
    ColumnData,
    EncodedTarget,
    Samples,
    column_data,
)
from .._estimator.prediction.decisions import (
    check_class_weights,
    classes_of,
    targets_of,
)
from ..optim.problem import Problem
from ..risk.leave_out_rule import LeaveOutRule
from .block_sums import joined_moments, moments_of, squares_of
from .folds import Labels, folds_of
from .problem import (
    Means,
    ProblemOnWorkers,
    RepresentedDesign,
    Spreads,
    fold_fits,
)
from .rows import RowGroups, delayed_rows

# Rows that show how large the columns are, and entries of X that they may have.
SHOWN_ROWS, SHOWN_ENTRIES = 500, 1 << 24
# A label more often than it is: so few are not warned of as many.
REPEATS = 3


@dataclass(frozen=True)
class DataOnWorkers(ColumnData):
    """Rows on workers as the algorithm uses them, and back to the user's scale.

    Attributes
    ----------
    shown : Problem
        A few of the rows, in memory.
    fits : FitsOnWorkers
        The run, and a fit without each fold of ``cv``.
    fold_weights : ndarray of shape (n_folds,)
        The share of all weights that every fold has.
    coder : TargetCoder or ClassCoder
        From what was passed as y to targets, and back.
    """

    shown: Problem
    fits: object
    fold_weights: np.ndarray
    coder: object

    # Whatever that of the rows is.
    dtype = np.dtype(np.float64)

    @property
    def observed(self):
        return self.shown

    @property
    def sample_weights(self):
        """None: weights of single rows are on the workers."""
        return None


def data_of(estimator, spec, X, y, sample_weight):
    """Collections as the problem of a linear model.

    Parameters
    ----------
    X, y, sample_weight
        As :class:`RowGroups` takes them.

    Returns
    -------
    DataOnWorkers

    Raises
    ------
    ValueError
        If the estimator does not support these data.
    """
    groups = RowGroups(X, y, sample_weight)
    if groups.n_rows < 2:
        raise ValueError(f"At least two rows are needed, got {groups.n_rows}.")
    encoded = _classes if is_classifier(estimator) else _targets
    coder, labels, loss, names = encoded(estimator, groups)
    folds = folds_of(estimator.cv, labels, groups.sizes)
    groups = groups.encoded(_coded, coder, folds)
    n_folds = 0 if folds is None else folds.n_folds
    moments = groups.sum(moments_of, n_folds, combine=joined_moments)
    _check_moments(moments, loss, n_folds)
    names, columns, spreads = {**_names_of(groups), **names}, AS_PASSED, None
    if estimator.standardize:
        columns, spreads = _standardized(
            groups, moments, estimator.fit_intercept, n_folds
        )
        groups = groups.encoded(_on_columns, columns)
        moments = groups.sum(moments_of, n_folds, combine=joined_moments)
    shown = _shown(estimator, groups, coder, loss, names, columns)
    return _on_workers(spec, groups, moments, n_folds, coder, shown, spreads)


def _standardized(groups, moments, has_intercept, n_folds):
    """How the run standardises columns, and how far they spread without each fold.

    Returns
    -------
    Standardized
    Spreads or None
        None where there are no folds.
    """
    mean = moments.X.sum(axis=1) / moments.weight.sum()
    squares = groups.sum(squares_of, mean, n_folds, combine=add)
    variance = squares.sum(axis=1) / moments.weight.sum()
    centers = has_intercept and not sparse.issparse(groups.take(np.array([0])).X)
    is_constant = moments.least[0] == moments.largest[0]
    scale = np.sqrt(np.where(is_constant, 1.0, variance))
    columns = Standardized(mean * centers, scale, bool(centers))
    if not n_folds:
        return columns, None
    weight, of_X, squares = (
        part.sum(axis=-1, keepdims=True) - part
        for part in (moments.weight, moments.X, squares)
    )
    variance = squares / weight - (of_X / weight - mean[:, None]) ** 2
    variance = np.maximum(variance, 0) / scale[:, None] ** 2
    return columns, Spreads(columns, (mean - columns.mean) / scale, variance)


def _on_columns(block, columns):
    """A block with its columns standardised."""
    return block._replace(X=columns.applied(block.X))


def _shown(estimator, groups, coder, loss, names, columns):
    """A few of the rows, as data in memory."""
    n_shown = min(SHOWN_ROWS, max(2, SHOWN_ENTRIES // groups.n_columns))
    rows = np.unique(np.linspace(0, groups.n_rows - 1, n_shown).astype(int))
    block, weights = groups.take(rows), np.ones(len(rows))
    y = coder.decoded(block.y)
    samples = Samples(block.X, y, weights, rows, block.X, names, columns)
    encoded = EncodedTarget(loss, block.y, weights, coder.is_1d, {})
    return column_data(samples, encoded, estimator.fit_intercept)


def _on_workers(spec, groups, moments, n_folds, coder, shown, spreads):
    """The data of all rows, where those of a few rows are ``shown``."""
    is_centered, has_constant = shown.is_centered, shown.has_constant
    loss, offset, center = shown.problem.loss, shown.offset, shown.center
    whole = (part.sum(axis=-1, keepdims=True) for part in moments[:3])
    means, folds = Means.of_sums(*whole), Means.of_sums(*moments[:3])
    folds = folds.part(slice(n_folds))
    if is_centered:
        offset, center = means.target.T, means.X
        groups = groups.encoded(_shifted, offset)
    means, folds = means.shifted(offset.T), folds.shifted(offset.T)
    n_columns, weight = groups.n_columns + has_constant, float(means.weight[0])
    lacks = moments.largest[0] == (moments.least[0] if is_centered else 0)
    lacks &= is_centered or moments.least[0] == 0
    problem = ProblemOnWorkers(
        RepresentedDesign(n_columns),
        np.resize(shown.problem.target, (n_columns, offset.shape[1])),
        np.full((n_columns, 1), 1 / n_columns),
        loss,
        groups=groups,
        refit=LeaveOutRule(refits_intercept=is_centered, is_sum=spec.strengths.is_sum),
        has_constant=has_constant,
        means=means,
        spreads=spreads,
        target_range=np.stack([moments.least[1], moments.largest[1]]),
        has_columns=bool(has_constant or not lacks.all()),
        largest_weight=float(moments.largest[2][0]) / weight,
    )
    of_all_rows = {
        "problem": problem,
        "total_weight": weight,
        "rows": np.empty(0, int),
        "n_samples": groups.n_rows,
        "offset": offset,
        "center": center,
    }
    return DataOnWorkers(
        **{**vars(shown), **of_all_rows},
        shown=shown.problem,
        fits=fold_fits(problem, folds),
        fold_weights=folds.weight / weight,
        coder=coder,
    )


def _names_of(groups):
    """Fitted attributes about the columns, as scikit-learn has them."""
    names = groups.feature_names
    are_named = names is not None and all(isinstance(name, str) for name in names)
    found = (groups.n_columns, np.array(names, dtype=object) if are_named else None)
    return {key: value for key, value in zip(NAMES, found) if value is not None}


def _check_moments(moments, loss, n_folds):
    """Raise if rows have no weight, or targets are invalid for the loss."""
    if not moments.n_positive >= 2:
        raise ValueError(
            "sample_weight must be positive on at least two rows, and is zero on "
            f"all but {moments.n_positive}."
        )
    for fold in range(n_folds):
        for weight, purpose in (
            (moments.weight.sum() - moments.weight[fold], "to fit on"),
            (moments.weight[fold], "to hold out"),
        ):
            if not weight > 0:
                raise ValueError(
                    f"Fold {fold} of cv leaves no row of positive weight {purpose}."
                )
    for name, least, largest in zip("Xy", moments.least, moments.largest):
        check_size(name, least.min(), largest.max())
    loss.check_target(np.stack([moments.least[1], moments.largest[1]]))


# ------------------------------------------------------------------- targets


@dataclass(frozen=True)
class TargetCoder:
    """Numbers as targets.

    Attributes
    ----------
    is_1d : bool
        Whether a row has one number.
    """

    is_1d: bool

    def decoded(self, target):
        """Targets (n_rows, n_outputs) as they were passed."""
        return target[:, 0] if self.is_1d else target

    def encoded(self, block):
        """Targets (n_rows, n_outputs) of a block, and what its rows weigh."""
        try:
            target = validated_target(block.y, of_classes=False).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Block {block.number} of y is not numbers: {error}"
            ) from error
        return target.reshape(len(target), -1), block.weight


@dataclass(frozen=True, eq=False)
class ClassCoder:
    """Classes as targets.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,), sorted
    class_weight : ndarray of shape (n_classes,)
    """

    classes: np.ndarray
    class_weight: np.ndarray
    loss: object
    is_1d = False

    def decoded(self, target):
        """Labels of targets (n_rows, n_outputs)."""
        if target.shape[1] > 1:
            return self.classes[target.argmax(axis=1)]
        return self.classes[(target[:, 0] == self.loss.labels[1]).astype(int)]

    def encoded(self, block):
        """Targets (n_rows, n_outputs) of a block, and what its rows weigh."""
        label = np.searchsorted(self.classes, np.ravel(block.y))
        # The label of a row with weight zero may be none of the classes.
        label = np.minimum(label, len(self.classes) - 1)
        target = targets_of(label, len(self.classes), self.loss)
        return target, block.weight * self.class_weight[label]


def _coded(block, coder, folds):
    """A block with targets as the loss takes them, with weights and with folds."""
    target, weight = coder.encoded(block)
    return block._replace(
        y=target.astype(np.float64, copy=False),
        weight=weight.astype(np.float64, copy=False),
        fold=np.zeros(len(target), np.int32) if folds is None else folds.numbers(block),
    )


def _shifted(block, offset):
    """A block with targets less an offset, (1, n_outputs)."""
    return block._replace(y=block.y - offset)


def _targets(estimator, groups):
    """How the targets of a regressor are coded, and their loss."""
    shape = groups.target_shape
    if len(shape) > 1 and not estimator._multi_output and shape[1] != 1:
        raise ValueError(
            f"y must be one number for each row, got {shape[1]}: a single target is "
            f"what {type(estimator).__name__} has."
        )
    coder = TargetCoder(is_1d=len(shape) == 1 or not estimator._multi_output)
    parts = [(np.zeros((2, 1)), np.ones(2))]
    if estimator._loss_reads_targets:
        parts = groups.sum(_gathered, coder, combine=add)
    target, weights = (np.concatenate(part) for part in zip(*parts))
    loss, names = estimator._loss_of(target[weights > 0], weights[weights > 0])
    return coder, None, loss, names


def loss_on(estimator, y):
    """The loss of rows with these targets."""
    if is_classifier(estimator):
        parts = dask.compute(*map(delayed(np.unique), _parts(y)))
        return estimator._class_loss(len(np.unique(np.concatenate(parts))))
    target = np.zeros((2, 1))
    if estimator._loss_reads_targets:
        target = np.concatenate(dask.compute(*_parts(y))).astype(float)
        target = target.reshape(len(target), -1)
    return estimator._loss_of(target, np.ones(len(target)))[0]


def _parts(y):
    """Blocks of y, delayed."""
    return delayed_rows(y) if is_collection(y) else [y]


def _gathered(block, coder):
    return [coder.encoded(block)]


def _classes(estimator, groups):
    """How the classes of a classifier are coded, and their loss."""
    if groups.target_shape[1:] not in ((), (1,)):
        raise ValueError(
            f"y must be one label for each row, got {groups.target_shape[1]}."
        )
    labels = _joined(groups.sum(_labels_of, combine=add), groups)
    there = labels.weight > 0
    values, sums = labels.values[there], labels.weight[there]
    classes, _ = classes_of(estimator, np.repeat(values, REPEATS))
    class_weight = estimator.class_weight
    if class_weight == "balanced":
        class_weight = sums.sum() / (len(sums) * sums)
    else:
        class_weight = class_weights(class_weight, classes, classes, np.ones(len(sums)))
    check_class_weights(class_weight, classes)
    loss = estimator._class_loss(len(classes))
    coder = ClassCoder(classes, class_weight, loss)
    return coder, labels, loss, {"classes_": classes}


def _labels_of(block):
    """The labels of a block: where each comes first, how often, and what it weighs."""
    y = np.ravel(block.y)
    check_target(y, of_classes=True)
    values, first, label, counts = np.unique(
        y, return_index=True, return_inverse=True, return_counts=True
    )
    check_classification_targets(np.repeat(values, REPEATS))
    weight = np.bincount(label, block.weight, len(values))
    return [(block.number, values, block.first + first, counts, weight)]


def _joined(parts, groups):
    """The labels of all blocks."""
    values = np.unique(np.concatenate([part[1] for part in parts]))
    first = np.full(len(values), groups.n_rows)
    counts, weight = (
        np.zeros((groups.n_blocks, len(values)), int),
        np.zeros(len(values)),
    )
    for number, own, own_first, own_counts, own_weight in parts:
        place = np.searchsorted(values, own)
        first[place] = np.minimum(first[place], own_first)
        counts[number, place] = own_counts
        weight[place] += own_weight
    return Labels(values, first, counts, weight)
