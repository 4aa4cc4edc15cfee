"""Progress of a fit: scikit-learn's callbacks, and printed lines."""

from .._compat import callback_context, has_callbacks

PRINTED_LINES = 10


class FitProgress:
    """Reports every update of a run; an instance is the ``progress`` of ``run``.

    Parameters
    ----------
    estimator : estimator being fitted
    n_done, n_planned : int
        Updates recorded before this fit, and how many it may add.
    X, y, sample_weight : as passed to fit
        What callbacks may score.
    reconstruct : callable
        ``reconstruct(coef)`` gives the attributes of an estimator that can
        predict, as if fit had stopped there.
    """

    def __init__(self, estimator, n_done, n_planned, X, y, sample_weight, reconstruct):
        self.estimator = estimator
        self.n_total = n_done + n_planned
        self.reconstruct = reconstruct
        self.every = max(1, n_planned // PRINTED_LINES)
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
        if self.estimator.verbose and (t % self.every == 0 or t == self.n_total):
            name = type(self.estimator).__name__
            print(
                f"[{name}] iteration {t} of {self.n_total}, objective {objective:.6g}"
            )
        if self.context is None:
            return False
        task = self.context.subcontext(task_name="update")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.reconstruct(coef),
            **self.data,
        )

    def finish(self, coef):
        """After the run, with its last coefficients."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self.reconstruct(coef),
                **self.data,
            )
