"""Comparison of runs that keeps a weighted mean: ``rule="blend"``."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from sklearn.base import is_classifier

from .._estimator.collections import is_collection
from .._estimator.data.row_summary import RowSummary
from .._estimator.estimates.fitted_state import MOST_RESIDUALS
from .._estimator.estimates.held_out_losses import HeldOutLosses
from ..optim.losses import SquaredError
from ..risk.averages import units_of
from ..risk.intervals import HeldOutResiduals
from ..risk.prediction_sets import HeldOutScores
from ..staged.estimator import offset_of
from ..staged.losses import LogLoss
from .blend import BlendedClassifier, BlendedRegressor, HeldOut
from .comparison import BETTER, Comparison, averaged_by_row, loss_name
from .criteria import PathCriterion
from .members import are_alike, losses_of, named_losses
from .mixtures import LogLosses, MeanLosses, SquaredErrors, greedy_weights
from .optimism import corrected_blend

LOG_LOSS = LogLoss().name
# Estimates with predictions of single rows, by runs that have never seen them.
HELD_OUT = ("cv", "loo")
NEEDED = "rule='blend' needs held-out predictions of single rows, which"


def check_rows(X):
    """Raise if there are no held-out rows on which members can be blended."""
    others = "take rule='min' or rule='one_se'."
    if isinstance(X, RowSummary):
        raise ValueError(f"{NEEDED} a RowSummary does not have: {others}")
    if is_collection(X):
        raise ValueError(f"{NEEDED} stay on their workers with Dask input: {others}")


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


def blending_of(candidates, criterion, y, weights):
    """The function that blends some candidates after their runs.

    Parameters
    ----------
    candidates : list of Candidate
        Candidates of several members.
    criterion : PathCriterion or ScorerCriterion
    weights : array-like of shape (n_samples,) or None
        Weights of the rows in fit.

    Returns
    -------
    callable
        With the parameters of :class:`Comparison`.

    Raises
    ------
    ValueError
        If the candidates cannot be blended.
    """
    of_classes = is_classifier(candidates[0].estimator)
    if of_classes:
        _check_probabilities(candidates)
    losses = losses_of(candidates, y)  # what is wrong with the data is said there
    common = _common_loss(losses)
    y = np.asarray(y, dtype=None if of_classes else np.float64)
    settings = {
        "y": y,
        "sample_weight": np.ones(len(y)) if weights is None else np.asarray(weights),
        "kind": BlendedClassifier if of_classes else BlendedRegressor,
        "loss": None if of_classes else common or SquaredError(),
    }
    if not isinstance(criterion, PathCriterion):
        return partial(ScoredBlending, **settings)
    if criterion.name not in HELD_OUT:
        raise ValueError(
            f"{NEEDED} criterion={criterion.name!r} does not provide: use "
            "criterion='cv' or 'loo'."
        )
    if of_classes:
        return partial(Blending, mixture=LogLosses, **settings)
    if common is None:
        raise ValueError(
            "rule='blend' needs members with the same loss, but their losses are "
            f"{named_losses(losses)}: use members with the same loss, or a scorer, "
            "such as criterion='r2'."
        )
    mixture = SquaredErrors if common.is_quadratic else MeanLosses
    return partial(Blending, mixture=mixture, **settings)


def _common_loss(losses):
    """The loss of predictions that all members share, or None."""
    loss = next(iter(losses.values()))
    return loss if are_alike(losses) and hasattr(loss, "reported") else None


def _check_probabilities(candidates):
    """Raise if a member is not a classifier with probabilities."""
    for each in candidates:
        if not hasattr(each.estimator, "predict_proba"):
            raise ValueError(
                "rule='blend' averages the probabilities of classifiers, and the "
                f"member {each.member!r} ({type(each.estimator).__name__}) has no "
                "predict_proba: leave it out, or take rule='min'."
            )


@dataclass(frozen=True, eq=False)
class Blending(Comparison):
    """Candidates that have been run, and the weights of the best of every member.

    Attributes
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : ndarray of shape (n_samples,)
    kind : type
        The class of the blend.
    loss : Loss or None
        Loss of regression targets.
    mixture : type or None
        Class that finds the weights: SquaredErrors, MeanLosses or LogLosses; None for
        scorers.
    """

    y: np.ndarray = None
    sample_weight: np.ndarray = None
    kind: type = None
    loss: object = None
    mixture: type = None

    @cached_property
    def _used(self):
        """The place of the best combination of every member that has a score."""
        least = self._least_place  # there is none where no member has one
        return {
            name: place
            for name, place in self.best_places().items()
            if place == least or not np.isnan(self.choices[place].score)
        }

    def _indices(self, place):
        """The rows that a run has held out, fold by fold."""
        return getattr(self.runs[place].estimator, self.criterion.estimate.indices)

    @cached_property
    def _orders(self):
        """The rows that all runs have held out, as places in each of them.

        Row by row, in every run the same: a row that was held out several times is
        there in the order of the splits, which all runs share.
        """
        orders = []
        for place in range(len(self.runs)):
            rows, samples = np.hstack(self._indices(place)), self.criterion.samples
            is_there = slice(None) if samples is None else np.isin(rows, samples)
            kept = np.arange(len(rows))[is_there]
            orders.append(kept[np.argsort(rows[kept], kind="stable")])
        return orders

    @cached_property
    def _samples(self):
        """The samples of these rows."""
        place = self._least_place
        return np.hstack(self._indices(place))[self._orders[place]]

    @cached_property
    def _target(self):
        return self.y[self._samples].reshape(len(self._samples), -1)

    @cached_property
    def _row_weights(self):
        """Weights of the held-out rows: those that members have, if these are equal.

        Members may also weigh classes.
        """
        estimators = [self.runs[place].estimator for place in self._used.values()]
        losses = [self.criterion.losses(each) for each in estimators]
        if all(each is not None for each in losses):
            found = [
                each.weights[np.argsort(each.rows, kind="stable")] for each in losses
            ]
            if all(np.allclose(each, found[0]) for each in found):
                return found[0]
        return self.sample_weight[self._samples].astype(np.float64)

    @cached_property
    def _mixture(self):
        # The scale of a fitted loss may depend on weights of rows.
        fitted = self.runs[self._least_place].estimator
        return self.mixture(getattr(fitted, "_loss", self.loss))

    def _held_out_by(self, place, t, some=slice(None)):
        """An estimator that predicts these rows, or some, by iterate t of a run."""
        estimator = self.runs[place].estimator
        path = getattr(estimator, self.criterion.estimate.predictions)
        found = path[t][self._orders[place][some]]
        return estimator._held_out_estimator(found, t)

    def _part(self, place, t):
        """The part of one run that the mixture combines."""
        return self._mixture.part(self._held_out_by(place, t), self._target)

    @cached_property
    def _chosen_parts(self):
        """Those of the choices of all members, (n_rows, n_targets, n_members)."""
        choices = [(p, self.choices[p].iteration) for p in self._used.values()]
        return np.stack([self._part(*each) for each in choices], axis=2)

    @cached_property
    def _found(self):
        """The weights of members that have a score."""
        return self._mixture.weights(
            self._chosen_parts, self._target, self._row_weights
        )

    @cached_property
    def weights(self):
        """The weight of every member.

        Returns
        -------
        dict of str to float
        """
        found = dict(zip(self._used, map(float, self._found)))
        return {name: found.get(name, 0.0) for name in self.best_places()}

    @cached_property
    def _place(self):
        """The place of the candidate of largest weight."""
        return self.best_places()[max(self.weights, key=self.weights.get)]

    @cached_property
    def score(self):
        """Mean held-out loss of the blend, and its standard error over folds."""
        losses = self._mixture.losses(self._chosen_parts @ self._found, self._target)
        found = self._losses(1, lambda iterates: losses[None])
        return tuple(float(each[0]) for each in found.averages(self.criterion.groups))

    def _losses(self, n_iterates, losses_of):
        """Losses of the rows that all runs have held out."""
        indices = self._indices(self._least_place)  # folds are those of any run
        folds = np.repeat(np.arange(len(indices)), [np.size(each) for each in indices])
        folds = folds[self._orders[self._least_place]]
        return HeldOutLosses(
            self._samples, folds, self._row_weights, n_iterates, losses_of
        )

    def _is_converted(self, place):
        """Whether a candidate of classes stops by another loss than the log loss.

        It is shown in the log loss nevertheless, by which members are blended.
        """
        is_own = loss_name(self.runs[place].estimator) == LOG_LOSS
        return self.mixture is LogLosses and not is_own

    def _log_losses(self, place, iterates):
        """The held-out log loss of some iterates of a run, and its standard error.

        Shapes: returned (n_iterates,).
        """

        def losses_of(some):
            parts = (self._part(place, t) for t in iterates[some])
            return np.stack(
                [self._mixture.losses(part, self._target) for part in parts]
            )

        found = self._losses(len(iterates), losses_of)
        return found.averages(self.criterion.groups)

    def shown_path(self, place):
        """The path of a candidate, the log loss of classes; its standard errors."""
        if not self._is_converted(place):
            return super().shown_path(place)
        return self._log_losses(place, range(len(self.runs[place].path)))

    def shown_score(self, place):
        """The loss that results show of a choice, for classes the log loss."""
        if not self._is_converted(place):
            return super().shown_score(place)
        found = self._log_losses(place, [self.choices[place].iteration])
        return LOG_LOSS, *(float(each[0]) for each in found)

    def compared_by(self, place):
        """The metric that members are blended by, and its value for a choice."""
        metric, score, error = self.shown_score(place)
        return metric, BETTER[self.criterion.sign], score, error

    def _is_compared_by_folds(self, place):
        is_own = not self._is_converted(place)
        return is_own and super()._is_compared_by_folds(place)

    def held_out_prediction(self, n_samples):
        """What the blend predicts for the rows that all members have held out."""
        held_out = self._blend_of_held_out(self.weights)
        return averaged_by_row(held_out, self._samples, n_samples)

    def alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept."""
        return list(losses) if self.mixture is LogLosses else super().alike(losses)

    def members(self):
        """Every member, at its chosen iterate."""
        return {
            name: self._kept_of(place) for name, place in self.best_places().items()
        }

    def blend(self, members):
        """The blend of members, several of which have a positive weight.

        Parameters
        ----------
        members : dict of str to estimator
            Fitted, at their chosen iterates.
        """
        return self.kind.of_fitted(members, self.weights, self._held_out())

    def _held_out(self):
        """The held-out rows, for prediction intervals or sets.

        There are none for rows with several labels each.
        """
        if self.loss is None and self._target.shape[1] > 1:
            return None
        units = units_of(self._samples, self.criterion.groups)
        blend = self._blend_of_held_out(self.weights)
        if self.loss is None:
            labels = np.searchsorted(blend.classes_, self._target[:, 0])
            rows = HeldOutScores.of(blend.predict_proba(None), labels, units)
        else:
            predictions = blend.predict(None)
            residuals = self.y[self._samples].reshape(predictions.shape) - predictions
            residuals = residuals / self.loss.spread(predictions)
            rows = HeldOutResiduals(residuals, predictions, units)
        rows = rows.at_most(MOST_RESIDUALS)
        return HeldOut(self.criterion.estimate.name, rows, self.loss)

    def _blend_of_held_out(self, weights, some=slice(None)):
        """A blend that predicts the held-out rows, or some of them, for any X."""
        members = {
            name: self._held_out_by(place, self.choices[place].iteration, some)
            for name, place in self._used.items()
        }
        return self.kind.of_fitted(members, weights)

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
        recorded = self._recorded(self._used)

        def blended(parts, times):
            """Losses of rows, blended by how often each of them was drawn."""
            drawn = times > 0
            rows = (self._row_weights * times)[drawn]
            weights = self._mixture.weights(parts[drawn], self._target[drawn], rows)
            return self._mixture.losses(parts @ weights, self._target)

        rows, criterion = (self._samples, self._row_weights), self.criterion
        of_criterion = criterion.groups, criterion.deadline
        return corrected_blend(
            recorded, rows, self._part, blended, self.rule, rng, *of_criterion
        )


class ScoredBlending(Blending):
    """Blending by a scorer: weights are those of a greedy selection."""

    @cached_property
    def _found(self):
        score = self.criterion.scorer_on(self._samples)

        def losses_of(combinations):
            blends = (dict(zip(self._used, weights)) for weights in combinations)
            return [
                self.criterion.sign * score(self._blend_of_held_out(weights))
                for weights in blends
            ]

        return greedy_weights(losses_of, len(self._used), self.criterion.deadline)

    @cached_property
    def score(self):
        """The score of the blend on held-out rows, and its standard error."""
        blend_of = partial(self._blend_of_held_out, self.weights)
        score = self.criterion.scorer_on(self._samples)
        return float(score(blend_of())), self.criterion.jackknife(
            blend_of, self._samples
        )
