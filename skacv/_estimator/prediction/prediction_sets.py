"""Prediction sets at any iterate, from held-out probabilities of the run."""

from ..._compat import check_in_memory
from ...risk.intervals import checked_coverage
from ...risk.prediction_sets import check_score, sets_around
from ..data.training_data import check_usable
from ..estimates.left_out import held_out_scores
from .prediction_intervals import interval_methods, source_of_predictions


def sets_of(fitted, X, coverage, method):
    """Prediction sets of the iterate in use.

    Shapes: returned (n_samples, n_classes).
    """
    check_usable(fitted)
    if not fitted._gives_sets():
        raise ValueError(
            "Prediction sets need the class of every held-out row, and y has shares of "
            "classes."
        )
    coverage = checked_coverage(coverage)
    check_score(method)
    check_in_memory(X)
    fitted._check_method_kept("auto")
    estimate = interval_methods()[source_of_predictions(fitted)]
    held_out = fitted._kept_residuals(estimate.name)
    if held_out is None:
        held_out = held_out_scores(fitted, estimate.of(fitted))
    return sets_around(fitted.predict_proba(X), held_out, coverage, method)
