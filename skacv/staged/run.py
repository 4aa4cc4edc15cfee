"""A model and its folds, grown side by side."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.parallel import Parallel, delayed

from .._compat import _safe_indexing
from .._estimator.estimates.held_out_losses import row_losses
from .._estimator.parameters import are_same
from ..risk.averages import by_unit, error_of_repeats, mean_with_error, units_of
from .growing import StagedFit
from .held_out import HeldOutStages
from .losses import WrongLabel


@dataclass
class Evaluation:
    """The held-out rows of folds, and the losses of stages on them.

    Attributes
    ----------
    splits : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows.
    target : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,)
    classes : ndarray or None
    most_kept : int
        Largest number of predictions kept.
    groups : ndarray of int, shape (n_samples,), or None
        The group of every row, where there are groups.
    path : HeldOutStages or None
        Predictions for the held-out rows; None before the first stage.
    losses : list of ndarray of shape (n, n_folds)
        Mean losses of stages on the held-out rows of each fold.
    row_errors : list of ndarray of shape (n,)
        Standard errors over the rows of the first fold, or over their groups.
    """

    loss: object
    splits: list
    target: np.ndarray
    weights: np.ndarray
    classes: np.ndarray | None
    most_kept: int
    groups: np.ndarray | None = None
    path: HeldOutStages | None = None
    losses: list = field(default_factory=list)
    row_errors: list = field(default_factory=list)

    @property
    def rows(self):
        """The held-out rows, fold after fold."""
        return np.concatenate([held_out for _, held_out in self.splits])

    def read(self, folds, n_stages):
        """Evaluate the new stages."""
        if self.path is None:
            constants = [self._constant(fitted) for fitted, _ in self.splits]
            self.path = HeldOutStages(folds, self.classes, constants, self.most_kept)
            self._evaluate(self.path[:1])
        for predictions in self.path.first_read(n_stages):
            self._evaluate(predictions)

    def _constant(self, fitted):
        """The prediction of a fold without any stage."""
        if self.loss == WrongLabel():
            return np.zeros(self.target.shape[1])
        return np.average(self.target[fitted], axis=0, weights=self.weights[fitted])

    def best(self):
        """The stage of least loss among those evaluated."""
        path = np.concatenate(self.losses) @ self._shares()
        return 1 + np.argmin(np.where(np.isnan(path), np.inf, path)[1:])

    def _shares(self):
        """The weights of the folds."""
        return np.array([self.weights[held_out].sum() for _, held_out in self.splits])

    def _evaluate(self, predictions):
        rows = self.rows
        weights = self.weights[rows]
        losses = row_losses(self.loss, self.target[rows], predictions)
        # Sums are rounded as the layout has it, which the number of stages may not.
        losses = np.ascontiguousarray(losses)
        ends = np.cumsum([len(held_out) for _, held_out in self.splits])[:-1]
        parts = list(zip(np.split(losses, ends, axis=1), np.split(weights, ends)))
        found = [mean_with_error(*part)[0] for part in parts]
        self.losses.append(np.stack(found, axis=1))
        units = units_of(self.splits[0][1], self.groups)
        self.row_errors.append(mean_with_error(*by_unit(*parts[0], units))[1])

    def path_and_error(self, n_stages):
        """The mean loss of every stage, and its standard error."""
        by_fold = np.ascontiguousarray(np.concatenate(self.losses)[: n_stages + 1])
        path, se_path = mean_with_error(by_fold, self._shares())
        if len(self.splits) == 1:  # no spread over folds: that over rows, or groups
            return path, np.concatenate(self.row_errors)[: n_stages + 1]
        return path, se_path * error_of_repeats(self.rows, self.weights[self.rows])

    def attributes(self, y, n_stages):
        """Fitted attributes of cross-validation, for ``n_stages`` stages."""
        path, se_path = self.path_and_error(n_stages)
        return {
            "cv_path_": path,
            "cv_se_path_": se_path,
            "cv_fold_path_": np.concatenate(self.losses)[: n_stages + 1],
            "cv_prediction_path_": self.path.first_stages(n_stages),
            "cv_indices_": [held_out for _, held_out in self.splits],
            "cv_target_": np.asarray(y)[self.rows],
        }


@dataclass
class StagedRun:
    """A run of a model and its folds, which can be continued.

    Attributes
    ----------
    passed : tuple
        X, y and a dict of whatever else ``fit`` was passed, to know them again.
    asked : dict
        Parameters that another call must have to go on.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets; a single column as a vector.
    main : StagedFit
        The model on all rows.
    folds : list of Growing
    training : Evaluation
        Evaluation on the training rows.
    evaluation : Evaluation or None
        None without folds.
    names : dict
        Fitted attributes about the data.
    n_stages : int
        Number of stages.
    """

    passed: tuple
    asked: dict
    y: object
    main: StagedFit
    folds: list
    training: Evaluation
    evaluation: Evaluation | None
    names: dict
    n_stages: int = 0

    @classmethod
    def of(cls, estimator, passed, asked, data, params, training, evaluation, names):
        """A run without stages.

        Parameters
        ----------
        data : (rows, targets)
            X and y as they are fitted to.
        params : FitParams
        """
        X, y = indexable(*data)
        if np.ndim(y) == 2 and np.shape(y)[1] == 1:
            y = column_or_1d(y, warn=True)
        main = StagedFit.of(estimator, X, y, params, X, params.offsets())
        splits = evaluation.splits if evaluation else []
        folds = [
            StagedFit.of(
                estimator,
                _safe_indexing(X, fitted),
                _safe_indexing(y, fitted),
                params.rows(fitted),
                _safe_indexing(X, held_out),
                params.rows(held_out).offsets(),
            )
            for fitted, held_out in splits
        ]
        return cls(passed, asked, y, main, folds, training, evaluation, names)

    def may_go_on(self, X, y, params, asked):
        """Whether the very same objects are passed, with the same parameters."""
        own_X, own_y, own = self.passed
        is_same = own_X is X and own_y is y and own.keys() == params.keys()
        is_same = is_same and all(own[name] is params[name] for name in own)
        return is_same and are_same(self.asked, asked)

    def go_on(self, n_stages, n_jobs):
        """Grow all to ``n_stages`` stages; whether the model has reached them."""
        while self.n_stages < n_stages:
            n_next = min(n_stages, self.n_stages + self._room())
            self._grow(n_next, n_jobs)
            if self.n_stages < n_next:
                return False
        return True

    def _grow(self, n_stages, n_jobs):
        with warnings.catch_warnings():
            # What a run in stages has not converged to is no news, and weights of
            # classes are of the same rows at every stage.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "class_weight presets")
            # Libraries compute beside Python's lock.
            self.main, *self.folds = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(each.grown)(n_stages) for each in (self.main, *self.folds)
            )
        self.n_stages = self.main.stages.n_stages
        self.training.read([self.main], self.n_stages)
        if self.folds:
            self.evaluation.read(self.folds, self.n_stages)

    def _room(self):
        """How many stages there is room for; others than the best and last make it."""
        models = self.main, *self.folds
        n_kept = self.main.stages.n_kept(len(models))
        if not self.n_stages:
            return n_kept
        if len(self.main.stages.recorded()) >= n_kept:
            best = {int(self.evaluation.best())} if self.folds else set()
            kept = sorted(best | {self.n_stages})
            for each in models:
                each.stages = each.stages.keep(kept)
        return max(1, n_kept - len(self.main.stages.recorded()))

    def at(self, t):
        """The model with the first ``t`` stages, as fitted attributes."""
        return {**self.names, **self.main.at(t)}

    def attributes(self, n_stages):
        """All fitted attributes, with ``n_stages`` stages, all in use."""
        found = self.at(n_stages)
        found |= {"n_iter_": n_stages, "_model": self.main.without_rows()}
        found["train_path_"], _ = self.training.path_and_error(n_stages)
        if self.evaluation is not None:
            found |= self.evaluation.attributes(self.y, n_stages)
        return found
