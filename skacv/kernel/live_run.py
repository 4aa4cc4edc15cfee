"""A run that has begun, and can go on."""

from dataclasses import dataclass

from .._estimator.data import Samples
from .paths import fitted_paths, shaped_dual_coef
from .recorder import Recorder
from .run import check_stable, epochs
from .setup import Machine


@dataclass
class LiveRun:
    """Epochs so far, and all that the next ones need.

    Attributes
    ----------
    machine : Machine
    recorder : Recorder
    samples : Samples
    names : dict
        Fitted attributes that are known before the run.
    is_flat : bool
        Whether coefficients have no axis for outputs.
    """

    machine: Machine
    recorder: Recorder
    samples: Samples
    names: dict
    is_flat: bool

    def __post_init__(self):
        plan = self.recorder.plan
        self.has_ended = False
        self._epochs = epochs(
            self.machine.gram,
            self.machine.preconditioner,
            self.machine.schedule,
            plan.columns(),
            plan.n_outputs,
            plan.sees(),
        )

    @property
    def n_epochs(self):
        """Epochs recorded."""
        return self.recorder.n_epochs

    def go_on(self, n_epochs, progress):
        """Further epochs, ``n_epochs`` in all at most, until there are enough.

        Parameters
        ----------
        n_epochs : int
        progress : callable
            Told of every epoch as ``progress(t, dual_coef, train_error)``; a true
            answer ends the run.
        """
        while self.n_epochs < n_epochs and not self.has_ended:
            epoch = next(self._epochs)
            self.has_ended = self.recorder.advance(epoch)
            train = self.recorder.train
            check_stable(train, self.machine.schedule)
            if progress(self.n_epochs, epoch.dual_coef, train[-1]):
                self.has_ended = True
        progress.finish(self.recorder.dual_coef[self.n_epochs])

    def reconstruct(self, dual_coef):
        """Attributes of an estimator that predicts with these coefficients."""
        shaped = shaped_dual_coef(dual_coef, self.machine, self.is_flat)
        return {**self.names, "dual_coef_": shaped}

    def attributes(self):
        """Everything that the run says so far, as fitted attributes."""
        paths = fitted_paths(self.machine, self.recorder, self.samples, self.is_flat)
        return {**self.names, **paths}
