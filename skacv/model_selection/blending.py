"""Comparison of runs that keeps a weighted mean: ``rule="blend"``."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._estimator.delegation import class_of
from .._estimator.estimates.fitted_state import MOST_RESIDUALS, loss_name
from .._estimator.estimates.held_out import HeldOutLosses
from .._estimator.estimates.held_out_predictor import HeldOutPredictor
from ..optim.losses import SquaredError
from ..risk.held_out_rows import HeldOutResiduals, units_of
from ..risk.prediction_sets import HeldOutScores
from ..staged.losses import LogLoss
from .blend import BlendedClassifier, BlendedRegressor, BlendRows
from .comparison import Comparison
from .criteria import PathCriterion, list_losses
from .failures import attempt, score_or_nan
from .mixtures import LogLosses, MeanLosses, SquaredErrors, greedy_weights
from .optimism import (
    Corrected,
    Draws,
    check_time,
    choose_in_draws,
    mean_over_rest,
    possible_gain,
    strata_of_rows,
)

LOG_LOSS = LogLoss().name
# Bootstrap draws of held-out rows over which weights are averaged: from 2000 rows on
# fewer, in proportion, for they hardly differ. The mean of a weight is rarely zero, and
# a member of a smaller weight is not worth its time in ``predict``.
DRAWS_OF_WEIGHTS, ROWS_OF_DRAWS, LEAST_MEAN_WEIGHT = 25, 2000, 0.05
# Blends of parts of the rows, of which the corrected score is the mean loss on the
# others: as many as there are time for, with draws of weights in each.
BLENDS_OF_SCORE = 50
# Estimates with predictions of single rows, by runs that have never seen them.
HELD_OUT = ("cv", "loo")


@dataclass(frozen=True, eq=False)
class BlendTask:
    """What is blended, known before any run."""

    y: np.ndarray
    sample_weight: np.ndarray
    # The class of the blend.
    kind: type
    # Loss of regression targets; None for classes.
    loss: Any
    # The subclass of Blending that finds the weights, and what it combines.
    blending: type
    mixture: type | None = None
    # Whether weights are means over draws of held-out rows, or those of all rows.
    is_averaged: bool = True
    # The RowOffsets for which y and weights stand, or None.
    offset: Any = None

    @classmethod
    def of(cls, rule, candidates, criterion, y, weights, losses, shared, offset=None):
        """The task of candidates, or ValueError if there is none.

        ``rule`` says whether members are combined or iterates. ``weights`` are those of
        the rows in fit, (n_samples,), or None; ``losses`` has the loss of every member,
        and ``shared`` is that of all, or None.
        """
        of_classes = is_classifier(candidates[0].model)
        for candidate in candidates if of_classes else ():
            if not hasattr(candidate.model, "predict_proba"):
                raise ValueError(
                    f"rule={rule!r} averages class probabilities, but the member "
                    f"{candidate.member!r} ({class_of(candidate.model)}) has no "
                    "predict_proba: leave it out, or use rule='min'."
                )
        y = np.asarray(y, dtype=None if of_classes else np.float64)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights)
        common = shared if hasattr(shared, "reported") else None
        kind, loss = BlendedRegressor, common or SquaredError()
        if of_classes:
            kind, loss = BlendedClassifier, None
        if not isinstance(criterion, PathCriterion):
            return cls(y, weights, kind, loss, ScoredBlending)
        if rule == "blend" and criterion.name not in HELD_OUT:
            raise ValueError(
                "rule='blend' needs held-out predictions of single rows, which "
                f"criterion={criterion.name!r} does not provide: use criterion='cv' or "
                "'loo'."
            )
        if rule == "average":
            # A mean is shown in the loss of the path that it improves on.
            for name, own in losses.items() if of_classes else ():
                if getattr(own, "name", None) != LOG_LOSS:
                    raise ValueError(
                        "rule='average' mixes probabilities by their log loss, but the "
                        f"member {name!r} stops by another, the {own.name}: use "
                        "criterion='neg_log_loss', or rule='min'."
                    )
        if of_classes:
            return cls(y, weights, kind, loss, LogLossBlending, LogLosses)
        if common is None:
            raise ValueError(
                f"rule={rule!r} needs members with the same loss, but their losses are "
                f"{list_losses(losses)}: use members with the same loss, or a "
                "scorer, such as criterion='r2'."
            )
        mixture = SquaredErrors if common.is_quadratic else MeanLosses
        return cls(y, weights, kind, loss, Blending, mixture, offset=offset)


class Blending(Comparison):
    """Runs side by side, and the weights of the best of every member."""

    between = None  # members are compared by the loss of the blend

    def __init__(self, task, chosen, criterion, rule, between=None):
        super().__init__(chosen, criterion, rule, between)
        self.task, self.kept = task, list(self.best_indices)
        # Rows that all runs have held out, as indices in each of them: in every run in
        # the same order, and a row that was held out several times in the order of the
        # splits, which all runs share. ``samples`` and ``folds`` are the numbers of
        # these rows, and of the folds that have held them out, (n_rows,).
        self._orders = []
        for index, one in enumerate(chosen):
            rows_of_folds = criterion.estimate.of(one.estimator).indices
            rows = np.hstack(rows_of_folds)
            kept = np.arange(len(rows))
            if criterion.samples is not None:
                kept = kept[np.isin(rows, criterion.samples)]
            order = kept[np.argsort(rows[kept], kind="stable")]
            self._orders.append(order)
            if index == self.least_index:
                sizes = list(map(np.size, rows_of_folds))
                self.folds = np.repeat(np.arange(len(sizes)), sizes)[order]
                self.samples = rows[order]
        # The index of the best combination of every member that has a score.
        self.used, weights = {}, []
        for name, index in self.best_indices.items():
            one = chosen[index]
            if index == self.least_index or not np.isnan(one.choice.score):
                self.used[name] = index
                losses = self.criterion.losses(one.estimator)
                if losses is not None:
                    order = np.argsort(losses.rows, kind="stable")
                    weights.append(losses.weights[order])
        self.target = task.y[self.samples].reshape(len(self.samples), -1)
        # Weights that members have, if they are equal: these may weigh classes.
        row_weights = task.sample_weight[self.samples].astype(np.float64)
        if len(weights) == len(self.used) and np.allclose(weights, weights[0]):
            row_weights = weights[0]
        self.row_weights = row_weights
        # The scale of a fitted loss may depend on weights of rows.
        loss = chosen[self.least_index].estimator.record_.loss or task.loss
        self._mixture = task.mixture and task.mixture(loss)
        used_weights, self.score = self._weights_and_score()
        weights = dict.fromkeys(self.best_indices, 0.0)
        self.weights = weights | dict(zip(self.used, map(float, used_weights)))
        self.index = self.best_indices[max(self.weights, key=self.weights.get)]
        self.part_weights, self.parts = self.weights, {}
        for name, index in self.best_indices.items():
            self.parts[name] = index, chosen[index].iteration
        # Predictions of the blend for the rows that all members have held out.
        blend = self._blend_of_held_out(self.weights)
        predict = blend.predict if task.loss is not None else blend.predict_proba
        self.predictions = predict(None)

    def _weights_and_score(self):
        """Weights of the members used; the held-out loss of the blend and its error."""
        parts = self._parts()
        weights = self._mean_weights(parts)
        losses = self._mixture.losses(parts @ weights, self.target)[None]
        (score,), (error,) = self._averages(1, losses.__getitem__)
        return weights, (float(score), float(error))

    def _mean_weights(self, parts, rows=slice(None)):
        """The mean of the weights that bootstrap draws of held-out rows find.

        Weights of few rows are noise to a large part, which the mean is not (Breiman
        1996, "Bagging predictors"). Rows of a group are drawn together. ``rows``
        are some of the rows.

        Shapes: parts (n_rows, n_targets, n_members), returned (n_members,).
        """
        parts, target, row_weights = (
            parts[rows],
            self.target[rows],
            self.row_weights[rows],
        )
        units = units_of(self.samples[rows], self.criterion.groups)
        n_units, rng = units.max() + 1, np.random.RandomState(0)
        n_draws = int(DRAWS_OF_WEIGHTS * min(1.0, ROWS_OF_DRAWS / n_units))
        deadline = self.criterion.deadline
        has_time = deadline is None or not deadline.is_over()
        if n_draws < 2 or not (self.task.is_averaged and has_time):
            return self._mixture.weights(parts, target, row_weights)
        weights = []
        for _ in range(n_draws):
            times = np.bincount(rng.randint(n_units, size=n_units), minlength=n_units)
            times = times[units]
            drawn = times > 0
            weights.append(
                self._mixture.weights(
                    parts[drawn], target[drawn], (row_weights * times)[drawn]
                )
            )
        mean = np.mean(weights, axis=0)
        mean[mean < min(LEAST_MEAN_WEIGHT, mean.max())] = 0.0
        return mean / mean.sum()

    def _held_out_predictor(self, index, t, rows=slice(None)):
        """The predictor of these rows, or of some, by iterate t of a run."""
        estimator = self.chosen[index].estimator
        path = self.criterion.estimate.of(estimator).prediction
        predictions = path[t][self._orders[index][rows]]
        return HeldOutPredictor.from_model(estimator, predictions, t)

    def _part(self, index, t):
        """The part of one run that the mixture combines."""
        return self._mixture.part(self._held_out_predictor(index, t), self.target)

    def _parts(self):
        """The parts of the members used, (n_rows, n_targets, n_members)."""
        parts = []
        for index in self.used.values():
            parts.append(self._part(index, self.chosen[index].iteration))
        return np.stack(parts, axis=2)

    def _averages(self, n_iterates, losses_at):
        """Mean losses of the rows that all runs have held out, and standard errors."""
        losses = HeldOutLosses(
            self.samples, self.folds, self.row_weights, n_iterates, losses_at
        )
        return losses.averages(self.criterion.groups)

    def _blend_of_held_out(self, weights, rows=slice(None)):
        """A blend that predicts the held-out rows, or some of them, for any X."""
        members = {}
        for name, index in self.used.items():
            t = self.chosen[index].iteration
            members[name] = self._held_out_predictor(index, t, rows)
        return self.task.kind.of_fitted(members, weights)

    def held_out_predictions(self):
        """Predictions of the blend for rows that all members have held out; these."""
        return self.predictions, self.samples

    def blend(self, members):
        """The blend of fitted members, several of which have a positive weight.

        It has held-out rows for prediction intervals or sets, unless rows have several
        labels each.
        """
        loss, kind = self.task.loss, self.task.kind
        if loss is None and self.target.shape[1] > 1:
            return kind.of_fitted(members, self.weights)
        units = units_of(self.samples, self.criterion.groups)
        if loss is None:
            classes = self.chosen[self.index].estimator.classes_
            labels = np.searchsorted(classes, self.target[:, 0])
            rows = HeldOutScores.of(self.predictions, labels, units)
        else:
            y, predictions = self._on_scale_of_y()
            residuals = (y - predictions) / loss.spread(predictions)
            rows = HeldOutResiduals(residuals, predictions, units)
        method = self.criterion.estimate.name
        if method not in HELD_OUT:  # the memory matrix
            return kind.of_fitted(members, self.weights)
        held_out = BlendRows(method, rows.at_most(MOST_RESIDUALS), loss)
        return kind.of_fitted(members, self.weights, held_out)

    def _on_scale_of_y(self):
        """Targets of the held-out rows, and predictions of the blend for them."""
        y, predictions, offset = self.task.y, self.predictions, self.task.offset
        if offset is not None:
            y = offset.target
            of_rows = offset.values[self.samples]
            of_rows = of_rows.reshape(-1, *[1] * (predictions.ndim - 1))
            predictions = self.task.loss.with_offset(predictions, of_rows)
        return y[self.samples].reshape(predictions.shape), predictions

    def corrected_score(self, rng, ended=()):
        """The loss of blending in this way, on rows not used for it, as Corrected.

        Every draw chooses the iterate of each member again, and then their weights in
        the same way, as means over draws of its rows: weights of a single draw may
        leave out a member that the mean keeps, and few rows then cost much more. NaN
        if no draw leaves rows out, as where all are of one group. The possible gain is
        that of the member of the largest weight.
        """
        members, draws = self._recorded_losses(self.used), self._draws(rng)
        for recorded in members.values():
            for number, candidate in enumerate(recorded):
                if candidate.index == self.index:
                    best = candidate.keep_sums(draws, self.criterion.deadline)
                    recorded[number] = best
        counts = draws.without_parts[:BLENDS_OF_SCORE]
        labels, n_members = draws.group_of[self.samples], len(members)
        # The scores of the blend, and of every member alone.
        losses = np.empty((1 + n_members, *counts.shape))
        parts = self._parts_of_draws(members.values(), draws.group_of, counts)
        for draw, (count, blended) in enumerate(zip(counts, parts)):
            weights = self._mean_weights(blended, np.flatnonzero(count[labels]))
            alone = np.moveaxis(blended, 2, 0)
            for number, part in enumerate((blended @ weights, *alone)):
                row_losses = self._mixture.losses(part, self.target)
                row_losses = row_losses * self.row_weights
                losses[number, draw] = np.bincount(labels, row_losses, counts.shape[1])
        weights = np.bincount(labels, self.row_weights, counts.shape[1])
        weights = np.broadcast_to(weights, counts.shape)
        gain = possible_gain(best, self.chosen[self.index].iteration, draws)
        score, *of_members = [mean_over_rest(one, weights, counts) for one in losses]
        of_members = dict(zip(members, [mean for mean, _ in of_members]))
        return Corrected(*score, gain, of_members)

    def losses_in_draws(self, draws, counts):
        """Losses where draws find the weights of these iterates, and weights of rows.

        Both are summed over the rows of every group; a row weighs one in the mean.
        Shapes: counts, returned (n_draws, n_groups).
        """
        labels, n_groups = draws.group_of[self.samples], counts.shape[1]
        row_weights = self.row_weights / self.row_weights.mean()
        parts, losses = self._parts(), np.empty(counts.shape)
        for draw, count in enumerate(counts):
            if self.criterion.deadline is not None:
                check_time(self.criterion.deadline)
            weights = self._mean_weights(parts, np.flatnonzero(count[labels]))
            row_losses = self._mixture.losses(parts @ weights, self.target)
            losses[draw] = np.bincount(labels, row_losses * row_weights, n_groups)
        weights = np.bincount(labels, row_weights, n_groups)
        return losses, np.broadcast_to(weights, counts.shape)

    def largest_weights(self, rng):
        """By name, the largest weights that members may have, over bootstrap draws.

        They are the mean weight, and its standard error more.
        """
        members, draws = self._recorded_losses(self.used), self._draws(rng)
        counts, weights = draws.resampled, []
        parts = self._parts_of_draws(members.values(), draws.group_of, counts)
        for count, blended in zip(counts, parts):
            times = count[draws.group_of[self.samples]]
            drawn = times > 0
            weights.append(
                self._mixture.weights(
                    blended[drawn],
                    self.target[drawn],
                    (self.row_weights * times)[drawn],
                )
            )
        largest = np.mean(weights, axis=0) + np.std(weights, axis=0)
        return dict(zip(self.used, largest.tolist()))

    def _draws(self, rng):
        classes = strata_of_rows(self.chosen[0].estimator, self.task.y)
        rows, groups = self.samples, self.criterion.groups
        return Draws.of(rows, self.row_weights, rng, groups, classes)

    def _parts_of_draws(self, members, group_of, counts):
        """The parts to combine of the iterates that every draw chooses.

        Shapes: counts (n_draws, n_groups); yielded (n_rows, n_targets, n_members).
        """
        deadline, chosen = self.criterion.deadline, []
        for recorded in members:
            of_draws = recorded, self.rule, group_of, counts, deadline
            chosen.append(choose_in_draws(*of_draws).choices)
        parts = {}
        # In the order of the iterates, which are computed in blocks.
        for index, t in np.unique(np.concatenate(chosen), axis=0).tolist():
            parts[index, t] = self._part(index, t)
        for draw in range(len(counts)):
            if deadline is not None:
                check_time(deadline)
            yield np.stack([parts[tuple(choices[draw])] for choices in chosen], axis=-1)


class LogLossBlending(Blending):
    """Blending of classes: all members are shown in the log loss of probabilities.

    Some may stop by another loss, such as a kernel machine by the squared error.
    """

    def __init__(self, task, chosen, criterion, rule, between=None):
        super().__init__(task, chosen, criterion, rule, between)
        # Runs that are shown in another loss than theirs.
        self._converted = [
            index
            for index, one in enumerate(chosen)
            if loss_name(one.estimator) != LOG_LOSS
        ]
        self._have_same_loss = between is None and not self._converted

    def shown(self, index):
        if index not in self._converted:
            return super().shown(index)
        averages = self._log_losses(index, [self.chosen[index].iteration])
        return LOG_LOSS, *(float(values[0]) for values in averages)

    def shown_paths(self):
        paths, errors = super().shown_paths()
        for name, index in self.best_indices.items():
            if index in self._converted:
                averages = self._log_losses(index, range(len(paths[name])))
                paths[name], errors[name] = averages
        return paths, errors

    def _log_losses(self, index, iterates):
        """The held-out log loss of some iterates of a run, and its standard error.

        Shapes: returned (n_iterates,), (n_iterates,).
        """

        def losses_at(block):
            parts = (self._part(index, t) for t in iterates[block])
            return np.stack([self._mixture.losses(part, self.target) for part in parts])

        return self._averages(len(iterates), losses_at)

    def fold_scores(self):
        """Scores of every candidate fold by fold, where all stop by the same loss."""
        return super().fold_scores() if self._have_same_loss else None

    def list_alike(self, losses):
        """All members: their paths are shown in the log loss."""
        return list(losses)


class ScoredBlending(Blending):
    """Blending by a scorer: weights are those of a greedy selection."""

    def _weights_and_score(self):
        score = self.criterion.bind_scorer(self.samples)

        def losses_of_weights(combinations):
            blends = (dict(zip(self.used, weights)) for weights in combinations)
            scores = [
                score_or_nan(attempt(score, self._blend_of_held_out(weights)))
                for weights in blends
            ]
            return self.criterion.sign * np.array(scores)

        deadline = self.criterion.deadline
        weights = greedy_weights(losses_of_weights, len(self.used), deadline)
        by_name = dict.fromkeys(self.best_indices, 0.0)
        by_name |= zip(self.used, map(float, weights))
        blend_of = partial(self._blend_of_held_out, by_name)
        error = self.criterion.jackknife(blend_of, self.samples)
        return weights, (float(score(blend_of())), error)
