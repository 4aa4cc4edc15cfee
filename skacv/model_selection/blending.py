"""Comparison of runs that keeps a weighted mean: ``rule="blend"``."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
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
from .blend import (
    AveragedClassifier,
    AveragedRegressor,
    BlendedClassifier,
    BlendedRegressor,
    BlendRows,
)
from .comparison import Comparison, Part
from .criteria import PathCriterion, list_losses
from .failures import attempt, score_or_nan
from .mixtures import LogLosses, MeanLosses, SquaredErrors, greedy_weights
from .optimism import Corrected, check_time, mean_over_rest, possible_gain

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
    def of_members(cls, candidates, criterion, losses, shared, *of_rows):
        """The task of blending members, or ValueError; arguments as of ``_of``."""
        kinds = BlendedRegressor, BlendedClassifier
        task = cls._of(kinds, candidates, criterion, losses, shared, *of_rows)
        if task.mixture is not None and criterion.name not in HELD_OUT:
            raise ValueError(
                "rule='blend' needs held-out predictions of single rows, which "
                f"criterion={criterion.name!r} does not provide: use criterion='cv' or "
                "'loo'."
            )
        return task

    @classmethod
    def of_iterates(cls, candidates, criterion, losses, shared, *of_rows):
        """The task of averaging iterates of one run, or ValueError; as ``_of``.

        Few of many similar iterates have a weight, and which they are says little: a
        mean over draws would keep many.
        """
        kinds = AveragedRegressor, AveragedClassifier
        task = cls._of(kinds, candidates, criterion, losses, shared, *of_rows)
        # A mean is shown in the loss of the path that it improves on.
        for name, own in losses.items() if task.mixture is LogLosses else ():
            if getattr(own, "name", None) != LOG_LOSS:
                raise ValueError(
                    "rule='average' mixes probabilities by their log loss, but the "
                    f"member {name!r} stops by another, the {own.name}: use "
                    "criterion='neg_log_loss', or rule='min'."
                )
        return replace(task, is_averaged=False)

    @classmethod
    def _of(cls, kinds, candidates, criterion, losses, shared, y, weights, offset):
        """The task of candidates, or ValueError if their predictions have no mean.

        ``kinds`` are the classes of a mean of regressors and of classifiers. ``losses``
        has the loss of every member, and ``shared`` is that of all, or None. The others
        are of the rows in fit: ``weights``, (n_samples,), and ``offset`` may be None.
        """
        of_classes = is_classifier(candidates[0].model)
        kind = kinds[of_classes]
        for candidate in candidates if of_classes else ():
            if not hasattr(candidate.model, "predict_proba"):
                raise ValueError(
                    f"rule={kind.name!r} averages class probabilities, but the member "
                    f"{candidate.member!r} ({class_of(candidate.model)}) has no "
                    "predict_proba: leave it out, or use rule='min'."
                )
        y = np.asarray(y, dtype=None if of_classes else np.float64)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights)
        common = shared if hasattr(shared, "reported") else None
        loss = None if of_classes else common or SquaredError()
        if not isinstance(criterion, PathCriterion):
            return cls(y, weights, kind, loss, ScoredBlending)
        if of_classes:
            return cls(y, weights, kind, loss, LogLossBlending, LogLosses)
        if common is None:
            raise ValueError(
                f"rule={kind.name!r} needs members with the same loss, but their "
                f"losses are {list_losses(losses)}: use members with the same loss, or "
                "a scorer, such as criterion='r2'."
            )
        mixture = SquaredErrors if common.is_quadratic else MeanLosses
        return cls(y, weights, kind, loss, Blending, mixture, offset=offset)

    def compare(self, chosen, criterion, rule, between=None):
        """The Blending of chosen runs."""
        return self.blending(self, chosen, criterion, rule, between)


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
        self.parts = {}
        for name, index in self.best_indices.items():
            t = chosen[index].iteration
            self.parts[name] = Part(index, t, self.weights[name])
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
        units = units_of(self.samples[rows], self.criterion.groups)
        n_units, rng = units.max() + 1, np.random.RandomState(0)
        n_draws = int(DRAWS_OF_WEIGHTS * min(1.0, ROWS_OF_DRAWS / n_units))
        deadline, times = self.criterion.deadline, np.zeros(len(self.samples), int)
        has_time = deadline is None or not deadline.is_over()
        if n_draws < 2 or not (self.task.is_averaged and has_time):
            times[rows] = 1
            return self._weights_of(parts, times)
        weights = []
        for _ in range(n_draws):
            drawn = np.bincount(rng.randint(n_units, size=n_units), minlength=n_units)
            times[rows] = drawn[units]
            weights.append(self._weights_of(parts, times))
        mean = np.mean(weights, axis=0)
        mean[mean < min(LEAST_MEAN_WEIGHT, mean.max())] = 0.0
        return mean / mean.sum()

    def _weights_of(self, parts, times):
        """The weights of least loss on rows that count so many ``times``, (n_rows,)."""
        drawn = times > 0
        row_weights = self.row_weights[drawn] * times[drawn]
        return self._mixture.weights(parts[drawn], self.target[drawn], row_weights)

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
        members, best, draws = self._draw_held_out(self.used, rng)
        counts, of_members = draws.without_parts[:BLENDS_OF_SCORE], {}
        choices, parts = self._choose_parts(members, draws, counts)
        blends = self._blend_in_draws(stack_by_draw(parts, choices), draws, counts)
        score = mean_over_rest(*self._sum_losses(blends, draws), counts)
        for name, of_member in choices.items():
            alone = self._sum_losses((parts[choice] for choice in of_member), draws)
            of_members[name], _ = mean_over_rest(*alone, counts)
        gain = possible_gain(best, self.chosen[self.index].iteration, draws)
        return Corrected(*score, gain, of_members)

    def losses_in_draws(self, draws, counts):
        """Losses where draws find the weights of the parts, and weights of rows.

        Both are summed over the rows of every group; a row weighs one in the mean, as
        draws may choose parts of several runs. Shapes: counts, returned (n_draws,
        n_groups).
        """
        blends = self._blend_in_draws(repeat(self._parts()), draws, counts)
        return self._sum_losses(blends, draws, unit=self.row_weights.mean())

    def largest_weights(self, rng):
        """By name, the largest weights that members may have, over bootstrap draws.

        They are the mean weight, and its standard error more.
        """
        members, _, draws = self._draw_held_out(self.used, rng)
        counts, weights = draws.resampled, []
        choices, parts = self._choose_parts(members, draws, counts)
        for count, of_draw in zip(counts, stack_by_draw(parts, choices)):
            check_time(self.criterion.deadline)
            times = count[draws.group_of[self.samples]]
            weights.append(self._weights_of(of_draw, times))
        largest = np.mean(weights, axis=0) + np.std(weights, axis=0)
        return dict(zip(self.used, largest.tolist()))

    def _choose_parts(self, members, draws, counts):
        """The iterates that draws choose of every member, and the parts that they are.

        An iterate is a pair of the index of its run and its number. Returned are lists
        with one for every draw, by the name of the member, and parts by iterate.
        """
        choices, parts = {}, {}
        for name, chosen in self._choose_in_draws(members, draws, counts).items():
            choices[name] = [tuple(choice) for choice in chosen.choices.tolist()]
        # In the order of the iterates, which are computed in blocks.
        for index, t in sorted({*chain.from_iterable(choices.values())}):
            parts[index, t] = self._part(index, t)
        return choices, parts

    def _blend_in_draws(self, parts, draws, counts):
        """The parts of every draw, combined with the weights that its rows find."""
        labels = draws.group_of[self.samples]
        for count, of_draw in zip(counts, parts):
            check_time(self.criterion.deadline)
            weights = self._mean_weights(of_draw, np.flatnonzero(count[labels]))
            yield of_draw @ weights

    def _sum_losses(self, combined, draws, unit=1.0):
        """Losses by the combined parts of every draw, and weights of rows.

        Both are summed over the rows of every group; a row of the weight ``unit``
        counts as one. Shapes: returned (n_draws, n_groups).
        """
        labels, n_groups = draws.group_of[self.samples], draws.resampled.shape[1]
        row_weights, sums = self.row_weights / unit, []
        for of_draw in combined:
            losses = self._mixture.losses(of_draw, self.target)
            sums.append(np.bincount(labels, losses * row_weights, n_groups))
        weights = np.bincount(labels, row_weights, n_groups)
        return np.array(sums), np.broadcast_to(weights, np.shape(sums))


def stack_by_draw(parts, choices):
    """The parts that every draw has chosen, (n_rows, n_targets, n_members) each."""
    for of_draw in zip(*choices.values()):
        yield np.stack([parts[choice] for choice in of_draw], axis=2)


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
