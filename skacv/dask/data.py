"""From rows in Dask collections to a problem on workers, and back."""

from dataclasses import dataclass, replace
from operator import add

import dask
import numpy as np
from dask import delayed
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from .._compat import class_weights
from .._estimator.collections import is_collection
from .._estimator.data.checks import NAMES, check_size, check_target, validate_target
from .._estimator.data.labels import check_class_weights, classes_of, targets_of
from .._estimator.data.standardized import AS_PASSED, Standardized
from .._estimator.data.training_data import (
    ColumnData,
    EncodedTarget,
    Samples,
    column_data,
)
from ..optim.blocks import MEMORY_BYTES, n_per_block
from ..optim.losses import LogLink, Loss
from ..risk.held_out_rows import LeaveOutRule
from .block_sums import add_moments, block_moments, squares_of
from .folds import LabelCounts, number_folds
from .problem import (
    FitsOnWorkers,
    Means,
    ProblemOnWorkers,
    RepresentedDesign,
    Spreads,
    fold_fits,
)
from .rows import RowGroups, delay_rows

# Rows that show how large the columns are.
SAMPLED_ROWS = 500


@dataclass(frozen=True)
class DataOnWorkers(ColumnData):
    """Rows on workers as the algorithm uses them, and back to the user's scale.

    ``observed`` is the problem of a few of the rows, in memory; ``fits`` are the run,
    and a fit without each fold of ``cv``; ``coder`` maps y, as it was passed, to
    targets, and back. Shapes: fold_weights (n_folds,), with the sum 1.
    """

    fits: FitsOnWorkers
    fold_weights: np.ndarray
    coder: "TargetCoder | ClassCoder"

    # Coefficients are in double precision for rows of any.
    dtype = np.dtype(np.float64)

    @property
    def sample_weights(self):
        """None: weights of single rows are on the workers."""
        return None


def data_of(estimator, spec, X, y, sample_weight):
    """Collections as :class:`DataOnWorkers`, the problem of a linear model."""
    groups = RowGroups(X, y, sample_weight)
    if groups.n_rows < 2:
        raise ValueError(f"At least two rows are needed, got {groups.n_rows}.")
    encode = _encode_classes if is_classifier(estimator) else _encode_targets
    coder, labels, loss, names = encode(estimator, groups)
    folds = number_folds(estimator.cv, labels, groups.sizes)
    groups = groups.map(_encode_block, coder, folds)
    n_folds = 0 if folds is None else folds.n_folds
    moments = groups.sum(block_moments, n_folds, combine=add_moments)
    _check_moments(moments, loss, n_folds)
    names, columns, spreads = {**_column_names(groups), **names}, AS_PASSED, None
    if estimator.standardize:
        columns, spreads = _standardize(
            groups, moments, estimator.fit_intercept, n_folds
        )
        groups = groups.map(
            lambda block, columns: block._replace(X=columns.apply(block.X)), columns
        )
        moments = groups.sum(block_moments, n_folds, combine=add_moments)
    sample = _sample(estimator, groups, coder, loss, names, columns)
    return _on_workers(spec, groups, moments, n_folds, coder, sample, spreads)


def _standardize(groups, moments, has_intercept, n_folds):
    """``Standardized`` columns of the run, and their ``Spreads`` if there are folds."""
    mean = moments.X.sum(axis=1) / moments.weight.sum()
    squares = groups.sum(squares_of, mean, n_folds, combine=add)
    variance = squares.sum(axis=1) / moments.weight.sum()
    centers = has_intercept and not sparse.issparse(groups.take(np.array([0])).X)
    is_constant = moments.least[0] == moments.largest[0]
    scale = np.sqrt(np.where(is_constant, 1.0, variance))
    columns = Standardized(mean * centers, scale, bool(centers))
    if not n_folds:
        return columns, None
    # The sums over all rows but those of each fold.
    weight, X_sum, squares = (
        part.sum(axis=-1, keepdims=True) - part
        for part in (moments.weight, moments.X, squares)
    )
    variance = squares / weight - (X_sum / weight - mean[:, None]) ** 2
    variance = np.maximum(variance, 0) / scale[:, None] ** 2
    return columns, Spreads(columns, (mean - columns.mean) / scale, variance)


def _sample(estimator, groups, coder, loss, names, columns):
    """A few of the rows as data in memory, which show how large the columns are."""
    fitting = n_per_block(8 * groups.n_columns, MEMORY_BYTES)
    n_sampled = max(2, min(SAMPLED_ROWS, fitting))
    rows = np.unique(np.linspace(0, groups.n_rows - 1, n_sampled).astype(int))
    block, weights = groups.take(rows), np.ones(len(rows))
    y = coder.decode(block.y)
    samples = Samples(block.X, y, weights, rows, block.X, names, columns)
    encoded = EncodedTarget(loss, block.y, weights, coder.is_1d, {})
    return column_data(samples, encoded, estimator.fit_intercept)


def _on_workers(spec, groups, moments, n_folds, coder, sample, spreads):
    """The data of all rows, from those of a ``sample`` of them."""
    is_centered, has_constant = sample.is_centered, sample.has_constant
    offset, center = sample.offset, sample.center
    totals = (part.sum(axis=-1, keepdims=True) for part in moments[:3])
    means, folds = Means.of_sums(*totals), Means.of_sums(*moments[:3])
    folds = folds.part(slice(n_folds))
    if is_centered:
        offset, center = means.target.T, means.X
        groups = groups.map(
            lambda block, offset: block._replace(y=block.y - offset), offset
        )
    means, folds = means.shift(offset.T), folds.shift(offset.T)
    weight = float(means.weight[0])
    is_null = moments.largest[0] == (moments.least[0] if is_centered else 0)
    is_null &= is_centered or moments.least[0] == 0
    start = _start(sample.problem, groups, means) if has_constant else None
    problem = ProblemOnWorkers(
        design=RepresentedDesign(groups.n_columns + has_constant),
        target=sample.problem.target,
        row_weights=None,
        loss=sample.problem.loss,
        start=start,
        groups=groups,
        rule=LeaveOutRule(refits_intercept=is_centered, is_sum=spec.strengths.is_sum),
        has_constant=has_constant,
        means=means,
        spreads=spreads,
        target_range=np.stack([moments.least[1], moments.largest[1]]),
        has_columns=bool(has_constant or not is_null.all()),
        largest_weight=float(moments.largest[2][0]) / weight,
    )
    return DataOnWorkers(
        problem=problem,
        y=sample.y,
        total_weight=weight,
        rows=np.empty(0, int),
        n_samples=groups.n_rows,
        is_1d=sample.is_1d,
        names=sample.names,
        offset=offset,
        is_centered=is_centered,
        has_constant=has_constant,
        center=center,
        columns=sample.columns,
        observed=replace(sample.problem, start=start),
        fits=fold_fits(problem, folds),
        fold_weights=folds.weight / weight,
        coder=coder,
    )


def _start(problem, groups, means):
    """Coefficients at which a run begins, as of a problem in memory."""
    loss, start = problem.loss, np.zeros_like(problem.start)
    if isinstance(loss, LogLink):  # it begins near the mean
        target, weights = means.target.T, np.ones((1, 1))
    elif type(loss).null_predictor is Loss.null_predictor:
        return start
    else:
        parts = groups.sum(lambda block: [(block.y, block.weight)], combine=add)
        target, weights = (np.concatenate(part) for part in zip(*parts))
        target, weights = target[weights > 0], weights[weights > 0][:, None]
        weights /= weights.sum()
    start[-1] = loss.null_predictor(target, weights)
    return start


def _column_names(groups):
    """``n_features_in_`` and, where columns have names, ``feature_names_in_``."""
    values, names = [groups.n_columns], groups.feature_names
    if names is not None and all(isinstance(name, str) for name in names):
        values.append(np.array(names, dtype=object))
    return dict(zip(NAMES, values))


def _check_moments(moments, loss, n_folds):
    """Raise if rows have no weight, or targets are invalid for the loss."""
    if not moments.n_positive >= 2:
        raise ValueError(
            "sample_weight must be positive on at least two rows, but is zero on all "
            f"but {moments.n_positive}."
        )
    for fold in range(n_folds):
        for weight, purpose in (
            (moments.weight.sum() - moments.weight[fold], "to fit on"),
            (moments.weight[fold], "to hold out"),
        ):
            if not weight > 0:
                raise ValueError(
                    f"Fold {fold} of cv leaves no row with positive weight {purpose}."
                )
    for name, least, largest in zip("Xy", moments.least, moments.largest):
        check_size(name, least.min(), largest.max())
    loss.check_target(np.stack([moments.least[1], moments.largest[1]]))


# ------------------------------------------------------------------- targets


@dataclass(frozen=True)
class TargetCoder:
    """Numbers as targets; one number for each row if ``is_1d``."""

    is_1d: bool

    def decode(self, target):
        """Targets in the shape of y. Shapes: target (n_rows, n_outputs)."""
        return target[:, 0] if self.is_1d else target

    def encode(self, block):
        """Targets of a block (n_rows, n_outputs), and the weights of its rows."""
        try:
            target = validate_target(block.y, of_classes=False).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Block {block.number} of y is not numbers: {error}"
            ) from error
        return target.reshape(len(target), -1), block.weight


@dataclass(frozen=True, eq=False)
class ClassCoder:
    """Sorted classes as targets. Shapes: classes, class_weight (n_classes,)."""

    classes: np.ndarray
    class_weight: np.ndarray
    loss: object
    is_1d = False

    def decode(self, target):
        """Labels of targets. Shapes: target (n_rows, n_outputs)."""
        if target.shape[1] > 1:
            return self.classes[target.argmax(axis=1)]
        return self.classes[(target[:, 0] == self.loss.labels[1]).astype(int)]

    def encode(self, block):
        """Targets of a block (n_rows, n_outputs), and the weights of its rows."""
        label = np.searchsorted(self.classes, np.ravel(block.y))
        # The label of a row with weight zero may be none of the classes.
        label = np.minimum(label, len(self.classes) - 1)
        target = targets_of(label, len(self.classes), self.loss)
        return target, block.weight * self.class_weight[label]


def _encode_block(block, coder, folds):
    """A block with targets as the loss takes them, with weights and with folds."""
    target, weight = coder.encode(block)
    return block._replace(
        y=target.astype(np.float64, copy=False),
        weight=weight.astype(np.float64, copy=False),
        fold=np.zeros(len(target), np.int32) if folds is None else folds.numbers(block),
    )


def _encode_targets(estimator, groups):
    """The coder of a regressor's targets; no labels; the loss, fitted attributes."""
    shape = groups.target_shape
    if len(shape) > 1 and not estimator._multi_output and shape[1] != 1:
        raise ValueError(
            f"y must be one number for each row, got {shape[1]}: a single target is "
            f"what {type(estimator).__name__} has."
        )
    coder = TargetCoder(is_1d=len(shape) == 1 or not estimator._multi_output)
    parts = [(np.zeros((2, 1)), np.ones(2))]
    if estimator._loss_reads_targets:
        parts = groups.sum(lambda block: [coder.encode(block)], combine=add)
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
    return estimator._loss_of(target, np.ones(len(target)))[0].judge


def _parts(y):
    """Blocks of y, delayed."""
    return delay_rows(y) if is_collection(y) else [y]


def _encode_classes(estimator, groups):
    """The coder of a classifier's labels; their counts, the loss, fitted attributes."""
    if groups.target_shape[1:] not in ((), (1,)):
        raise ValueError(
            f"y must be one label for each row, got {groups.target_shape[1]}."
        )
    labels = join_labels(groups.sum(labels_in, combine=add), groups.n_rows)
    is_class = labels.weight > 0
    values, sums = labels.values[is_class], labels.weight[is_class]
    classes, _ = classes_of(estimator, _as_target(values))
    class_weight = estimator.class_weight
    if class_weight == "balanced":
        class_weight = sums.sum() / (len(sums) * sums)
    else:
        class_weight = class_weights(class_weight, classes, classes, np.ones(len(sums)))
    check_class_weights(class_weight, classes)
    loss = estimator._class_loss(len(classes))
    coder = ClassCoder(classes, class_weight, loss)
    return coder, labels, loss, {"classes_": classes}


def _as_target(labels):
    """Labels several times, so that scikit-learn does not warn of too many classes."""
    return np.repeat(labels, 3)


def labels_in(block):
    """Labels in a block: values, first rows, counts, weights; in a list to be added."""
    y = np.ravel(block.y)
    check_target(y, of_classes=True)
    values, first, label, counts = np.unique(
        y, return_index=True, return_inverse=True, return_counts=True
    )
    check_classification_targets(_as_target(values))
    weight = np.bincount(label, block.weight, len(values))
    return [(values, block.first + first, counts, weight)]


def join_labels(parts, n_rows):
    """The labels of all blocks, in their order, as :class:`LabelCounts`."""
    values = np.unique(np.concatenate([values_k for values_k, *_ in parts]))
    first = np.full(len(values), n_rows)
    counts = np.zeros((len(parts), len(values)), int)
    weight = np.zeros(len(values))
    for k, (values_k, first_k, counts_k, weight_k) in enumerate(parts):
        index = np.searchsorted(values, values_k)
        first[index] = np.minimum(first[index], first_k)
        counts[k, index] = counts_k
        weight[index] += weight_k
    return LabelCounts(values, first, counts, weight)
