"""Rows left out one by one of an estimator that is fitted once, without refits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from .._compat import _safe_indexing
from .._estimator.estimates.held_out import row_losses
from ..converged.approximate_loo import approximate_loo
from ..records.held_out import HeldOut
from ..risk.held_out_rows import mean_with_error
from .adapter import response_of
from .fits import last_of
from .losses import WrongLabel


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """The rows of a fit, each of which is left out once by ``approximate_loo``.

    Shapes: target (n_samples, n_outputs), weights (n_samples,).
    """

    # As the estimator takes them, and the weights of its fit, or None.
    X: Any
    y: Any
    sample_weight: np.ndarray | None
    # Targets and weights in the loss, which has the weights of classes.
    loss: Any
    target: np.ndarray
    weights: np.ndarray
    # The rows that are fitted, and left out.
    rows: np.ndarray

    @classmethod
    def of(cls, data):
        """Those of the FitData of a run."""
        sample_weight = data.of_fit.last.get("sample_weight")
        of_fit, loss = (data.X, data.y, sample_weight), data.info.loss
        rows = np.flatnonzero(data.is_fitted)
        return cls(*of_fit, loss, data.target, data.weights, rows)

    def estimate(self, fit):
        """The HeldOut of a constant and of a StagedFit of one stage, without each row.

        The constant is the mean of the other rows, as that of folds is.
        """
        rows, fitted = self.rows, fit.at(1)
        of_rows = (
            None if part is None else _safe_indexing(part, rows)
            for part in (self.X, self.y, self.sample_weight)
        )
        X, y, sample_weight = of_rows
        check_leaves_one_out(fitted, X)
        without = approximate_loo(fitted, X, y, sample_weight=sample_weight).predictions
        if response_of(last_of(fitted)) == "predict_proba":
            without = probabilities_of(without)
        target, weights = self.target[rows], self.weights[rows]
        constant = np.zeros_like(target)
        if self.loss != WrongLabel():
            weighted = weights[:, None] * target
            others = (weights.sum() - weights)[:, None]
            constant = (weighted.sum(axis=0) - weighted) / others
        path = np.stack([constant.reshape(without.shape), without])
        losses = row_losses(self.loss, target, path, weights)
        means, errors = mean_with_error(losses, weights)
        return HeldOut(means, errors, rows, np.asarray(y), path)


def check_leaves_one_out(fitted, X):
    """Raise if leave-one-out of a fitted estimator would be that of another model.

    ``X`` are the rows that it was fitted to.
    """
    last = last_of(fitted)
    is_logistic = isinstance(last, LogisticRegression)
    if response_of(last) == "predict_proba" and not is_logistic:
        raise ValueError(
            f"{type(last).__name__} calibrates its probabilities, and leave-one-out "
            "without refits has its decisions alone: leave the calibration out "
            "(probability=False), or use criterion='cv'."
        )
    for name, step in fitted.steps[:-1] if isinstance(fitted, Pipeline) else ():
        if not hasattr(step, "transform"):
            continue
        try:  # not all that read y have a tag that says so
            clone(step).fit(X)
        except Exception as error:
            raise ValueError(
                f"The step {name!r} ({type(step).__name__}) of the pipeline is fitted "
                "to y, and leave-one-out without refits leaves it as it is: use "
                "criterion='cv', which fits it in every fold."
            ) from error
        X = step.transform(X)


def probabilities_of(decisions):
    """Probabilities of classes of logistic regression, (n_rows, n_classes)."""
    if decisions.ndim == 1:
        return np.stack([expit(-decisions), expit(decisions)], axis=1)
    return softmax(decisions, axis=1)
