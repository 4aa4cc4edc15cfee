"""Progress of a fit: scikit-learn's callbacks, and printed lines."""

from ..._compat import callback_context, has_callbacks, with_callbacks
from ..estimates.readers import ESTIMATES


@with_callbacks
def advance(model, run, n_updates=None):
    """Go on with a run, followed by callbacks and printed lines of the model.

    ``n_updates`` are in total, None to the end. Returned is whether it is complete.
    """
    progress = run.progress_of(model, n_updates)
    if progress is None:
        return run.go_on(n_updates)
    is_complete = run.go_on(n_updates, progress)
    progress.finish(run.record())
    return is_complete


class FitProgress:
    """Reports every update of a run to callbacks, and prints some."""

    # ``reconstruct(coef)`` returns the attributes of an estimator that can predict.

    def __init__(
        self, estimator, verbose, n_planned, n_total, X, y, sample_weight, reconstruct
    ):
        self.estimator, self.verbose = estimator, verbose
        self.n_total = n_total
        self.reconstruct = reconstruct
        self.every = max(1, n_total // 10)
        self.context = None
        if has_callbacks(estimator):
            metadata = (
                None if sample_weight is None else {"sample_weight": sample_weight}
            )
            self.data = {"X": X, "y": y, "metadata": metadata}
            context = callback_context(estimator, n_planned)
            self.context = context.call_on_fit_task_begin(
                estimator=estimator, **self.data
            )

    def __call__(self, t, coef, objective):
        """After update ``t``; true if a callback asks to stop."""
        if self.verbose and (t % self.every == 0 or t == self.n_total):
            self._print(f"iteration {t} of {self.n_total}, objective {objective:.6g}")
        return self.report_step(coef)

    def report_step(self, coef):
        """Report an update to callbacks; true if one of them asks to stop."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name="update")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.reconstruct(coef),
            **self.data,
        )

    def _print(self, line):
        print(f"[{type(self.estimator).__name__}] {line}")

    def report(self, estimates):
        """Print the estimates of the run, by name."""
        if not self.verbose:
            return
        for name, estimate in ESTIMATES.items():
            if name in estimates:
                path = estimates[name].path
                self._print(
                    f"after {len(path) - 1} of {self.n_total}, {estimate.label} "
                    f"{path[-1]:.6g}, least {path.min():.6g} at {path.argmin()}"
                )

    def finish(self, record):
        """Report the end of the run, by its record."""
        self.report(record.estimates)
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: {**record.names, "record_": record},
                **self.data,
            )
