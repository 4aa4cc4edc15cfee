"""A model and its folds, grown side by side, with held-out predictions of every stage.

A :class:`StagedRun` has a :class:`~.fits.StagedFit` for the model and for each fold, or
in the place of these an :class:`~.bag.OutOfBag`. An
:class:`~.evaluation.Evaluation` has their predictions, and the losses of these.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.parallel import Parallel, delayed

from .._compat import has_callbacks
from .._estimator.data.checks import names_infinite_columns
from .._estimator.run.progress import FitProgress
from .._warnings import warn
from ..records.held_out import HeldOut
from ..records.paths import Stages
from ..records.record import Record
from ..records.run import Run, check_has_begun, check_is_whole, check_n_updates
from .adapter import StagedAdapter
from .bag import OutOfBag
from .data import warn_of_settings
from .evaluation import Evaluation
from .fits import FormerFits, StagedFit
from .left_out import LeftOutRows

# A run has diverged on all rows if it fits them badly at so many last stages: those of
# stochastic gradients, or with linear leaves, may do so for a while.
FEWEST_LOST = 5


@dataclass(eq=False)
class StagedRun(Run):
    """A run of a model and its folds, which can be continued."""

    # It adapts a clone of the estimator, which is not fitted.
    adapter: StagedAdapter
    n_jobs: int | None
    verbose: int
    # X, y and weights as they were passed.
    passed: tuple
    # A single column as a vector.
    y: object
    # The fit of the model to all rows, and those of the folds. Those of a former run
    # may have more stages than this one.
    main: StagedFit
    folds: list
    # Other folds that former runs have grown: their rows, and their fits.
    others: list
    # Where members of the model hold out the rows of folds; None otherwise.
    bag: OutOfBag | None
    # On the training rows, and on the held-out rows; None if there are none.
    training: Evaluation
    evaluation: Evaluation | None
    # The parameter of ``fit`` that is added to the sums of stages, or None.
    offset: str | None
    # A TargetInfo of the data.
    info: object
    # Makes one fit of several, which predicts their mean; None: the model is alone.
    mean_of: object = None
    # How far the model grows: as far as the folds ("all"), to their "best" stage, or
    # to the "first" one.
    growth_of_model: str = "all"
    # Rows to leave out one by one of the only stage; None: none.
    left_out: LeftOutRows | None = None
    # Stages that have been evaluated, and those of the model.
    n_stages: int = 0
    n_of_main: int = 0
    # The stage at which a callback has ended the run, or None.
    ended_at: int | None = None
    # The record of the stages so far: one of a booster is a copy of it.
    _record: Record | None = None
    # False once an error has left it half grown.
    is_whole: bool = True

    def go_on(self, n_updates=None, progress=None):
        check_n_updates(n_updates)
        check_is_whole(self.is_whole)
        # Where several calls warn, those of the last one are shown.
        warn_of_settings(self.adapter, self)
        n_planned = self.adapter.n_planned()
        n_stages = self.adapter.n_next(n_updates or n_planned)
        with names_infinite_columns(self.passed[0]):
            if progress is None:
                may_grow = self._grow_to(n_stages)
            else:
                may_grow = self._grow_step_by_step(n_stages, progress)
        return not may_grow or self.n_recorded == n_planned

    @property
    def n_recorded(self):
        """Number of stages that the record has."""
        return self.n_stages if self.ended_at is None else self.ended_at

    def progress_of(self, model, n_updates=None):
        if not (self.verbose or has_callbacks(model)):
            return None
        n_planned = self.adapter.n_planned()
        n_stages = self.adapter.n_next(n_updates or n_planned)
        n_new = n_stages - self.n_stages
        return FitProgress(
            model, self.verbose, n_new, n_planned, *self.passed, self._attributes_at
        )

    def _attributes_at(self, t):
        """Fitted attributes of the first ``t`` stages, for callbacks."""
        record = replace(self._record_of(self.n_stages), estimates={})
        return {**self.info.names, "record_": record.at(t)}

    def _grow_step_by_step(self, n_stages, progress):
        """Grow all a few stages at a time; whether there may be more.

        ``progress`` reports to callbacks, and prints a line whenever stages are added.
        """
        while self.n_stages < n_stages:
            n_former = self.n_stages
            may_grow = self._grow_to(min(n_stages, n_former + progress.every))
            recorded = self.main.stages.recorded_stages()
            is_new = (recorded > n_former) & (recorded <= self.n_stages)
            for t in recorded[is_new]:
                if progress.report_step(t):
                    self.ended_at = int(t)
                    return False
            if not may_grow:
                return False
            if self.n_stages < n_stages:
                progress.report(self.estimates(self.n_stages))
        return True

    def _grow_to(self, n_stages):
        """Grow all to ``n_stages`` stages; whether there may be more.

        The model grows to the best of their stages so far, if that is enough.
        """
        n_models = 1 + len(self.folds)
        while self.n_stages < n_stages:
            # Where stages take memory, all but the best and the last are freed.
            n_kept = self.main.stages.n_kept(n_models)
            n_recorded = len(self.main.stages.recorded_stages()) if self.n_stages else 0
            if n_recorded >= n_kept:
                best = {self.evaluation.best(self.n_stages)} if self.folds else set()
                for model in self.main, *self.folds:
                    model.stages = model.stages.keep(sorted(best | {self.n_stages}))
                n_recorded = len(self.main.stages.recorded_stages())
            n_next = min(n_stages, self.n_stages + max(1, n_kept - n_recorded))
            n_of_main = n_next if self.growth_of_model == "all" else 1
            if self.growth_of_model == "best" and self.n_stages:
                n_of_main = self.evaluation.best(self.n_stages)
            self._grow(n_of_main, n_next)
            if self.n_stages < n_next:
                return False
        return True

    def end(self):
        """The last record, with the model at its best stage if that is all it needs.

        What only further stages need, training rows for example, is left out of it.
        """
        if self.growth_of_model == "best":
            best = self.evaluation.best(self.n_stages)
            self._grow(best, self.n_stages)
        self._end_where_rows_are_lost()
        record = self.record()
        held_out = record.estimates.get("cv")
        if held_out is None:
            return record
        path = held_out.prediction.drop_training_rows()
        return record.with_estimates({"cv": replace(held_out, prediction=path)})

    def hand_over(self):
        # Stages that have been forgotten cannot be evaluated on other folds.
        if not (self.adapter.keeps_all and self.is_whole):
            return None
        self.is_whole, folds = False, self.others
        if self.folds:
            folds = [*folds, *zip(self.evaluation.splits, self.folds)]
        return FormerFits(self.main, folds)

    def _grow(self, n_of_main, n_of_folds):
        """Grow the model and the folds side by side, and evaluate their stages."""
        self._record = None
        grows, growing = n_of_main > self.n_of_main, []
        self.is_whole = False
        if grows:
            growing.append((self.main, n_of_main))
        if n_of_folds > self.n_stages:
            growing += [(fold, n_of_folds) for fold in self.folds]
        with warnings.catch_warnings():
            # A staged run stops on purpose, and weights of classes are of the same rows
            # at every stage.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "class_weight presets")
            # Libraries release Python's lock while they compute.
            grown = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(fit.grow)(n) for fit, n in growing
            )
        if grows:
            self.main, *grown = grown
            self.n_of_main = min(n_of_main, self.main.stages.n_stages)
            self.training.read([self.main], self.n_of_main)
        self.folds = grown or self.folds
        self.n_stages = self.n_of_main
        if self.growth_of_model != "all" and self.n_of_main >= n_of_main:
            n_of_longest = max(fold.stages.n_stages for fold in self.folds)
            self.n_stages = min(n_of_folds, n_of_longest)
        self._end_at_failure()
        if self.evaluation is not None:
            held_out = self.folds if self.bag is None else [self.bag]
            self.evaluation.read(held_out, self.n_stages)
        self._end_at_divergence()
        self.is_whole = True

    def _end_at_failure(self):
        """End before the first stage at which the model or a fold has failed."""
        failed = []
        for number, fit in enumerate((self.main, *self.folds)):
            if fit.stages.failure is not None:
                failed.append((fit.stages.n_stages, number, fit.stages))
        if not failed:
            return
        n_stages, number, stages = min(failed, key=lambda of_fit: of_fit[:2])
        self.n_stages = min(self.n_stages, n_stages)
        rows = f"without the rows of fold {number}" if number else "on all rows"
        warn(
            f"{type(stages.estimator).__name__} failed {rows}; the stages before are "
            f"kept ({stages.unit}: {n_stages}). {type(stages.failure).__name__}: "
            f"{stages.failure}",
            FitFailedWarning,
        )

    def _end_at_divergence(self):
        """End after the last stage whose mean losses are finite, if one has some."""
        n_stages, stages = self.n_stages, self.main.stages
        of_main = min(n_stages, self.n_of_main)
        if (n_finite := self.training.n_finite(of_main)) < of_main:
            n_stages = n_finite
        if self.evaluation is not None:
            n_stages = min(n_stages, self.evaluation.n_finite(n_stages))
        if n_stages < self.n_stages:
            self.n_stages = n_stages
            warn(
                f"{type(stages.estimator).__name__} diverges: its losses are no "
                f"longer finite; the stages before are kept ({stages.unit}: "
                f"{n_stages}). A smaller learning rate or standardised columns may "
                "help.",
                ConvergenceWarning,
            )

    def _end_where_rows_are_lost(self):
        """End before the model fits its rows worse than folds predict what they lack.

        Folds say nothing of a model that has diverged where they have not: gradient
        boosting without a bound on the values of leaves does so with rare classes.
        """
        n_stages, stages = min(self.n_stages, self.n_of_main), self.main.stages
        if self.evaluation is None or not n_stages:
            return
        fitted, _ = self.training.path_and_error(n_stages)
        held_out, error = self.evaluation.path_and_error(n_stages)
        # Few folds may have a small spread by chance, so that a tenth of what was
        # gained on the training rows is allowed as well.
        gained = fitted[0] - np.nanmin(fitted)
        are_lost = fitted > held_out + 4 * error + 0.1 * gained
        if n_stages < FEWEST_LOST or not are_lost[-FEWEST_LOST:].all():
            return
        self.n_stages = self.n_of_main = max(1, int(np.argmax(are_lost)) - 1)
        if self.ended_at is not None:
            self.ended_at = min(self.ended_at, self.n_stages)
        self._record = None
        warn(
            f"{type(stages.estimator).__name__} diverges on all rows, though not in "
            "the folds: it fits them worse than folds predict those that they lack; "
            f"the stages before are kept ({stages.unit}: {self.n_stages}). A smaller "
            "learning rate or more regularisation, such as l2_regularization of "
            "HistGradientBoosting, may help.",
            ConvergenceWarning,
        )

    def model(self):
        """What predicts, without rows: the fit to all rows, or the mean of all fits."""
        fits = []
        for fit in (self.main, *(self.folds if self.mean_of else ())):
            without = fit.drop_training_rows()
            fits.append(replace(without, held_out=None, offset=None))
        return self.mean_of(fits) if self.mean_of else fits[0]

    def record(self):
        check_is_whole(self.is_whole)
        check_has_begun(self.n_stages > 0)
        if self._record is None:
            self._record = self._record_of(self.n_recorded)
        return self._record

    def _record_of(self, n_stages):
        """The Record of ``n_stages`` stages; the model uses its own."""
        n_of_main, model = min(n_stages, self.n_of_main), self.model()
        train_path = np.full(n_stages + 1, np.nan)
        train_path[: n_of_main + 1], _ = self.training.path_and_error(n_of_main)
        more = {"info": self.info, "offset": self.offset}
        return Record(
            iterates=Stages(model, n_stages),
            iteration=n_of_main,
            iterate=model.at(n_of_main),
            n_iter=n_stages,
            loss=self.info.loss,
            classes=self.info.classes,
            train_path=train_path,
            estimates=self.estimates(n_stages),
            weights=self.training.weights,
            groups=self.evaluation and self.evaluation.groups,
            more=more,
            names=self.info.names,
        )

    def estimates(self, n_stages):
        """The estimates of ``n_stages`` stages by name: of folds, of rows left out."""
        estimates, evaluation = {}, self.evaluation
        if self.left_out is not None:
            estimates["loo"] = self.left_out.estimate(self.main)
        if evaluation is not None:
            path, se_path = evaluation.path_and_error(n_stages)
            by_fold = np.concatenate(evaluation.losses)[: n_stages + 1]
            estimates["cv"] = HeldOut(
                path=path,
                se_path=se_path,
                indices=evaluation.held_out,
                target=np.asarray(self.y)[evaluation.rows],
                prediction=evaluation.path.first(n_stages + 1),
                more={"fold_path": by_fold},
            )
        return estimates
