"""Comparison of runs that keeps a weighted mean: ``rule="blend"``."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.base import is_classifier

from .._estimator.collections import is_collection
from .._estimator.data.row_summary import RowSummary
from .._estimator.estimates.fitted_state import MOST_RESIDUALS
from .._estimator.estimates.held_out import HeldOutLosses
from ..optim.losses import SquaredError
from ..risk.averages import units_of
from ..risk.intervals import HeldOutResiduals
from ..risk.prediction_sets import HeldOutScores
from ..staged.estimator import offset_of
from ..staged.losses import LogLoss
from .blend import BlendedClassifier, BlendedRegressor, BlendRows
from .comparison import BETTER, Comparison, averaged_by_row, loss_name
from .criteria import PathCriterion
from .members import are_alike, listed_losses, member_losses
from .mixtures import LogLosses, MeanLosses, SquaredErrors, greedy_weights
from .optimism import corrected_blend

LOG_LOSS = LogLoss().name
# Estimates with predictions of single rows, by runs that have never seen them.
HELD_OUT = ("cv", "loo")
NEEDED = "rule='blend' needs held-out predictions of single rows, which"


def check_rows(X):
    """Raise if there are no held-out rows on which members can be blended."""
    advice = "take rule='min' or rule='one_se'."
    if isinstance(X, RowSummary):
        raise ValueError(f"{NEEDED} a RowSummary does not have: {advice}")
    if is_collection(X):
        raise ValueError(f"{NEEDED} stay on their workers with Dask input: {advice}")


def check_offsets(members, fit_params):
    """Raise if held-out predictions of a member have offsets, which predict leaves out.

    Parameters
    ----------
    members : list of (str, estimator)
    fit_params : dict of str to dict
        What ``fit`` of every member is passed.
    """
    for name, member in members:
        offset = offset_of(member, fit_params[name])
        if offset is not None:
            raise ValueError(
                f"rule='blend' averages what predict gives, without {offset}, which "
                f"fit passes to the member {name!r}: take rule='min', or leave "
                f"{offset} out."
            )


@dataclass(frozen=True, eq=False)
class BlendTask:
    """What is blended, known before any run.

    Attributes
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : ndarray of shape (n_samples,)
    kind : type
        The class of the blend.
    loss : Loss or None
        Loss of regression targets; None for classes.
    mixture : type or None
        Class that finds the weights: SquaredErrors, MeanLosses or LogLosses; None for
        scorers.
    """

    y: np.ndarray
    sample_weight: np.ndarray
    kind: type
    loss: object
    mixture: type | None = None

    @classmethod
    def of(cls, candidates, criterion, y, weights):
        """The task of some candidates of several members.

        Parameters
        ----------
        criterion : PathCriterion or ScorerCriterion
        weights : array-like of shape (n_samples,) or None
            Weights of the rows in fit.

        Raises
        ------
        ValueError
            If the candidates cannot be blended.
        """
        of_classes = is_classifier(candidates[0].estimator)
        for candidate in candidates if of_classes else ():
            if not hasattr(candidate.estimator, "predict_proba"):
                raise ValueError(
                    "rule='blend' averages the probabilities of classifiers, and the "
                    f"member {candidate.member!r} "
                    f"({type(candidate.estimator).__name__}) has no predict_proba: "
                    "leave it out, or take rule='min'."
                )
        losses = member_losses(candidates, y)  # bad data raise an error here
        common = next(iter(losses.values()))
        if not (are_alike(losses) and hasattr(common, "reported")):
            common = None
        y = np.asarray(y, dtype=None if of_classes else np.float64)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights)
        if of_classes:
            task = cls(y, weights, BlendedClassifier, None, LogLosses)
        else:
            task = cls(y, weights, BlendedRegressor, common or SquaredError())
        if not isinstance(criterion, PathCriterion):
            return replace(task, mixture=None)
        if criterion.name not in HELD_OUT:
            raise ValueError(
                f"{NEEDED} criterion={criterion.name!r} does not provide: use "
                "criterion='cv' or 'loo'."
            )
        if of_classes:
            return task
        if common is None:
            raise ValueError(
                "rule='blend' needs members with the same loss, but their losses are "
                f"{listed_losses(losses)}: use members with the same loss, or a "
                "scorer, such as criterion='r2'."
            )
        mixture = SquaredErrors if common.is_quadratic else MeanLosses
        return replace(task, mixture=mixture)

    def compared(self, *args):
        """The blend of runs, from the arguments of :class:`Comparison`."""
        blending = ScoredBlending if self.mixture is None else Blending
        return blending(self, *args)


class Blending(Comparison):
    """Candidates that have been run, and the weights of the best of every member.

    Attributes
    ----------
    used : dict of str to int
        The index of the best combination of every member that has a score.
    samples : ndarray of int, shape (n_rows,)
        The rows that all runs have held out, as often as they have been held out.
    target : ndarray of shape (n_rows, n_targets)
    row_weights : ndarray of shape (n_rows,)
    """

    def __init__(self, task, candidates, runs, criterion, rule, between=None):
        super().__init__(candidates, runs, criterion, rule, between)
        self.task, self.least_index, self.kept = task, self.index, self.best_indices
        self.used = {
            name: index
            for name, index in self.best_indices.items()
            if index == self.least_index or not np.isnan(self.choices[index].score)
        }
        # Rows that all runs have held out, as indices in each of them: in every run in
        # the same order, and a row that was held out several times in the order of the
        # splits, which all runs share.
        self._orders = []
        for index in range(len(runs)):
            rows = np.hstack(self._indices(index))
            kept = np.arange(len(rows))
            if criterion.samples is not None:
                kept = kept[np.isin(rows, criterion.samples)]
            self._orders.append(kept[np.argsort(rows[kept], kind="stable")])
        rows = np.hstack(self._indices(self.least_index))
        self.samples = rows[self._orders[self.least_index]]
        self.target = task.y[self.samples].reshape(len(self.samples), -1)
        self.row_weights = self._weights_of_rows()
        used_weights, self.score = self._weights_and_score()
        self.weights = dict.fromkeys(self.best_indices, 0.0)
        self.weights |= zip(self.used, map(float, used_weights))
        self.index = self.best_indices[max(self.weights, key=self.weights.get)]

    def _indices(self, index):
        """The rows that a run has held out, fold by fold."""
        return getattr(self.runs[index].estimator, self.criterion.estimate.indices)

    def _weights_of_rows(self):
        """Weights of the held-out rows: those that members have, if these are equal.

        Members may also weigh classes.
        """
        losses = [self.held_out_losses[index] for index in self.used.values()]
        if all(losses_k is not None for losses_k in losses):
            weights = [
                losses_k.weights[np.argsort(losses_k.rows, kind="stable")]
                for losses_k in losses
            ]
            if all(np.allclose(weights_k, weights[0]) for weights_k in weights):
                return weights[0]
        return self.task.sample_weight[self.samples].astype(np.float64)

    def _weights_and_score(self):
        """Weights of the members used; the held-out loss of the blend and its error."""
        # The scale of a fitted loss may depend on weights of rows.
        fitted = self.runs[self.least_index].estimator
        self._mixture = self.task.mixture(getattr(fitted, "_loss", self.task.loss))
        parts = [self._part(k, self.choices[k].iteration) for k in self.used.values()]
        parts = np.stack(parts, axis=2)  # (n_rows, n_targets, n_members)
        weights = self._mixture.weights(parts, self.target, self.row_weights)
        losses = self._mixture.losses(parts @ weights, self.target)
        averages = self._averages(1, lambda iterates: losses[None])
        return weights, tuple(float(values[0]) for values in averages)

    def _held_out_by(self, index, t, rows=slice(None)):
        """An estimator that predicts these rows, or some, by iterate t of a run."""
        estimator = self.runs[index].estimator
        path = getattr(estimator, self.criterion.estimate.predictions)
        predictions = path[t][self._orders[index][rows]]
        return estimator._held_out_estimator(predictions, t)

    def _part(self, index, t):
        """The part of one run that the mixture combines."""
        return self._mixture.part(self._held_out_by(index, t), self.target)

    def _averages(self, n_iterates, losses_at):
        """Mean losses of the rows that all runs have held out, and standard errors."""
        indices = self._indices(self.least_index)  # folds are those of any run
        folds = np.repeat(np.arange(len(indices)), [np.size(fold) for fold in indices])
        folds = folds[self._orders[self.least_index]]
        losses = HeldOutLosses(
            self.samples, folds, self.row_weights, n_iterates, losses_at
        )
        return losses.averages(self.criterion.groups)

    def _is_converted(self, index):
        """Whether a candidate of classes stops by another loss than the log loss.

        It is shown in the log loss nevertheless, by which members are blended.
        """
        is_log_loss = loss_name(self.runs[index].estimator) == LOG_LOSS
        return self.task.mixture is LogLosses and not is_log_loss

    def _log_losses(self, index, iterates):
        """The held-out log loss of some iterates of a run, and its standard error.

        Shapes: returned (n_iterates,).
        """

        def losses_at(block):
            parts = (self._part(index, t) for t in iterates[block])
            return np.stack([self._mixture.losses(part, self.target) for part in parts])

        return self._averages(len(iterates), losses_at)

    def shown_path(self, index):
        """The path of a candidate, the log loss of classes; its standard errors."""
        if not self._is_converted(index):
            return super().shown_path(index)
        return self._log_losses(index, range(len(self.runs[index].path)))

    def shown_score(self, index):
        """The loss that results show of a choice, for classes the log loss."""
        if not self._is_converted(index):
            return super().shown_score(index)
        averages = self._log_losses(index, [self.choices[index].iteration])
        return LOG_LOSS, *(float(values[0]) for values in averages)

    def compared_by(self, index, shown):
        """The metric that members are blended by, and its value for a choice."""
        metric, score, error = shown
        return metric, BETTER[self.criterion.sign], score, error

    def fold_scores(self):
        """Scores of every candidate fold by fold, where all stop by the log loss."""
        if any(map(self._is_converted, range(len(self.runs)))):
            return None
        return super().fold_scores()

    def held_out_prediction(self, n_samples):
        """What the blend predicts for the rows that all members have held out."""
        held_out = self._blend_of_held_out(self.weights)
        return averaged_by_row(held_out, self.samples, n_samples)

    def alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept."""
        if self.task.mixture is LogLosses:
            return list(losses)
        return super().alike(losses)

    def blend(self, members):
        """The blend of fitted members, several of which have a positive weight."""
        return self.task.kind.of_fitted(members, self.weights, self._held_out())

    def _held_out(self):
        """The held-out rows, for prediction intervals or sets.

        There are none for rows with several labels each.
        """
        loss = self.task.loss
        if loss is None and self.target.shape[1] > 1:
            return None
        units = units_of(self.samples, self.criterion.groups)
        blend = self._blend_of_held_out(self.weights)
        if loss is None:
            labels = np.searchsorted(blend.classes_, self.target[:, 0])
            rows = HeldOutScores.of(blend.predict_proba(None), labels, units)
        else:
            predictions = blend.predict(None)
            residuals = self.task.y[self.samples].reshape(predictions.shape)
            residuals = (residuals - predictions) / loss.spread(predictions)
            rows = HeldOutResiduals(residuals, predictions, units)
        rows = rows.at_most(MOST_RESIDUALS)
        return BlendRows(self.criterion.estimate.name, rows, loss)

    def _blend_of_held_out(self, weights, rows=slice(None)):
        """A blend that predicts the held-out rows, or some of them, for any X."""
        members = {
            name: self._held_out_by(index, self.choices[index].iteration, rows)
            for name, index in self.used.items()
        }
        return self.task.kind.of_fitted(members, weights)

    def corrected_score(self, rng):
        """The loss of blending in this way, on rows not used for it, by the bootstrap.

        Returns
        -------
        score, standard_error : float

        Raises
        ------
        Uncorrected
            If the losses of single rows are not known, or too many, or if there is no
            time.
        """

        def blended(parts, times):
            """Losses of rows, blended by how often each of them was drawn."""
            drawn = times > 0
            rows = (self.row_weights * times)[drawn]
            weights = self._mixture.weights(parts[drawn], self.target[drawn], rows)
            return self._mixture.losses(parts @ weights, self.target)

        return corrected_blend(
            self._recorded(self.used),
            self.samples,
            self.row_weights,
            part=self._part,
            blended=blended,
            rule=self.rule,
            rng=rng,
            groups=self.criterion.groups,
            deadline=self.criterion.deadline,
        )


class ScoredBlending(Blending):
    """Blending by a scorer: weights are those of a greedy selection."""

    def _weights_and_score(self):
        score = self.criterion.scorer_on(self.samples)

        def losses_of_weights(combinations):
            blends = (dict(zip(self.used, weights)) for weights in combinations)
            return [
                self.criterion.sign * score(self._blend_of_held_out(weights))
                for weights in blends
            ]

        deadline = self.criterion.deadline
        weights = greedy_weights(losses_of_weights, len(self.used), deadline)
        by_name = dict.fromkeys(self.best_indices, 0.0)
        by_name |= zip(self.used, map(float, weights))
        blend_of = partial(self._blend_of_held_out, by_name)
        error = self.criterion.jackknife(blend_of, self.samples)
        return weights, (float(score(blend_of())), error)
