"""SHAP values of a blend: weights times those of its members."""

import re
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._estimator.delegation import take_transformers
from ..model_selection.early_stopping import TrajectoryEarlyStoppingCV
from ..staged import Staged
from ..staged.adapter import staged_adapter_of

# A column of X by its number, in the names of columns that are made of it.
TOKEN = re.compile("\0([0-9]+)\0")


def blend_shap_values(
    model: Any,
    X: Any,
    contributions: dict[str, ArrayLike] | None = None,
    *,
    background: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """SHAP values of a blend, exactly, from those of its members.

    The prediction of a blend is the weighted mean of the predictions of its members.
    Shapley values are linear in what they explain, so those of the blend are the same
    mean of the members' values [1]_, without any further evaluation of the model.

    LightGBM, XGBoost and CatBoost export exact values of their trees, which are read
    here, and a linear member has the values coef * (x - mean of the background).
    Values of other members come from an explainer, such as ``shap.TreeExplainer`` for
    the trees of scikit-learn.

    Parameters
    ----------
    model : TrajectoryEarlyStoppingCV
        It is fitted, with ``rule="blend"`` or another rule.
    X : array-like of shape (n_samples, n_features)
        The rows to explain, in the columns of ``fit``.
    contributions : dict of str to array-like, default=None
        Values of members by name, of shape (n_samples, n_features + 1): of every column
        of X, and last the base value, as ``pred_contrib=True`` of LightGBM gives them.
        With several targets, and for the probabilities of classifiers, (n_samples,
        n_outputs, n_features + 1). They add up to the member's prediction. For
        classifiers those of all members with weight are needed.
    background : array-like of shape (n_rows, n_features), default=None
        Rows, such as those of ``fit``, whose mean a linear member is compared with.

    Returns
    -------
    values : ndarray of shape (n_samples, n_features)
        By how much each column moves the prediction of the blend; (n_samples,
        n_outputs, n_features) where there are several outputs.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The base value. With the sum of the values it is the prediction of the blend.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If it is no stopping estimator.
    ValueError
        If values of a member with weight are missing, have another shape, or do not
        add up to its predictions, as those of log odds or of a log link do not.

    Notes
    -----
    Values of one member answer one question. Those of trees, as their libraries export
    them, compare with the training rows in the same branches, those of a linear model
    with the mean of the background. Their mean adds up to the prediction exactly; it is
    the Shapley value of a single game if all members are explained by the same one, as
    by ``shap.TreeExplainer(trees, background)`` and a linear member here.

    Of classifiers the blend is linear in probabilities, and so are its values. Log odds
    of a mean are no mean of log odds: export values of probabilities.

    Values of encoded columns are added up by the column of X that they are made of. For
    a linear member this is exact; of trees on one-hot columns the sum is the usual one,
    not the Shapley value of the whole column.

    References
    ----------
    .. [1] Lundberg and Lee (2017), "A unified approach to interpreting model
           predictions", arXiv:1705.07874.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
    >>> from skacv.inspection import blend_shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> members = [("lasso", TrajectoryLasso("path")), ("ridge", IterativeRidge(0.0))]
    >>> blend = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0)
    >>> blend = blend.fit(X, y)
    >>> values, base_values = blend_shap_values(blend, X, background=X)
    >>> largest = abs(values).mean(axis=0).argsort()[::-1]
    >>> X.columns[largest[:2]].tolist()
    ['bmi', 's5']
    >>> bool(abs(base_values + values.sum(axis=1) - blend.predict(X)).max() < 1e-6)
    True
    """
    if not isinstance(model, TrajectoryEarlyStoppingCV):
        raise TypeError(
            "model must be a TrajectoryEarlyStoppingCV, SelfStoppingRegressor or "
            f"SelfStoppingClassifier, got {type(model).__name__}."
        )
    check_is_fitted(model)
    given, weights = dict(contributions or {}), {}
    for name, weight in model.weights_.items():
        if weight > 0:
            weights[name] = weight
    if unknown := given.keys() - model.weights_.keys():
        raise ValueError(
            f"contributions have no members {sorted(unknown)}: those of the model are "
            f"{list(model.weights_)}."
        )
    predict = "predict_proba" if is_classifier(model) else "predict"
    total = 0.0
    for name, weight in weights.items():
        member = model.members_[name]
        if name in given:
            values = np.asarray(given[name], dtype=np.float64)
        elif is_classifier(model):
            raise ValueError(
                f"contributions lack the member {name!r}: the blend is linear in "
                "probabilities, and libraries export log odds. Pass values of its "
                "probabilities, such as those of shap.TreeExplainer(trees, background, "
                'model_output="probability").'
            )
        else:
            values = contributions_of(name, member, X, background)
        predictions = np.asarray(getattr(member, predict)(X), dtype=np.float64)
        check_adds_up(name, values, predictions, model.n_features_in_)
        total = total + float(weight) * values
    return total[..., :-1], total[..., -1]


def check_adds_up(name, values, predictions, n_features):
    """Raise unless values are those of a member's predictions, column by column."""
    shape = (*predictions.shape, n_features + 1)
    if values.shape != shape:
        raise ValueError(
            f"contributions of {name!r} must have the shape {shape}: a value for every "
            f"column of X, and the base value last; got {values.shape}. Add up values "
            "of encoded columns by the column of X."
        )
    # Libraries have single precision.
    tolerance = 1e-3 * np.std(predictions) + 1e-5 * np.abs(predictions).max()
    sums = values.sum(axis=-1)
    row = np.argmax(np.abs(sums - predictions).reshape(len(sums), -1).max(axis=1))
    if not np.all(np.abs(sums - predictions) <= tolerance):
        raise ValueError(
            f"contributions of {name!r} add up to {sums[row]} in row {row}, where the "
            f"member predicts {predictions[row]}. They must be of what is averaged, "
            "predictions or probabilities, not of log odds or of a logarithm, and of "
            "the same rows and the iterate in use."
        )


def contributions_of(name, member, X, background):
    """Exact values of a linear regressor, or those that a library has of its trees.

    Shapes: returned (n_samples[, n_targets], n_features + 1).
    """
    rows, compared, inner = X, background, member
    columns = [f"\0{index}\0" for index in range(np.shape(X)[1])]
    while isinstance(inner, Pipeline | Staged):
        if isinstance(inner, Staged):
            inner = inner.estimator_
            continue
        for _, step in take_transformers(inner).steps[:-1]:
            rows = step.transform(rows)
            compared = compared if compared is None else step.transform(compared)
            columns = names_of_columns(name, step, columns)
        inner = inner.steps[-1][1]
    adapter = staged_adapter_of(inner)
    try:
        values = None if adapter is None else adapter.shap_values(rows)
    except Exception as error:  # libraries have classes of their own
        raise ValueError(
            f"contributions lack the member {name!r}, and its library exports none for "
            f"this {type(inner).__name__}: pass them from an explainer."
        ) from error
    if values is None and hasattr(inner, "coef_"):
        if compared is None:
            raise ValueError(
                f"The linear member {name!r} is compared with the mean of some rows: "
                "pass background, such as the rows of fit."
            )
        values = linear_values(inner, rows, compared)
    if values is None:
        raise ValueError(
            f"contributions lack the member {name!r} ({type(inner).__name__}), which "
            "has no exact values of its own: pass them from an explainer, such as "
            "those of shap.TreeExplainer for trees."
        )
    of_X = np.zeros((*values.shape[:-1], np.shape(X)[1] + 1))
    places = [int(TOKEN.search(column)[1]) for column in columns]
    np.add.at(of_X, (..., [*places, -1]), values)
    return of_X


def names_of_columns(name, step, columns):
    """Names that a step gives to columns of these names, each of one of them."""
    unnamed = copy(step)
    vars(unnamed).pop("feature_names_in_", None)
    try:
        made = unnamed.get_feature_names_out(columns)
    except (AttributeError, ValueError):
        made = [""]
    if any(len(set(TOKEN.findall(column))) != 1 for column in made):
        raise ValueError(
            f"The step {type(step).__name__} of the member {name!r} does not say which "
            "column of X each of its columns is made of: pass contributions of this "
            "member, by an explainer of its predictions for X."
        )
    return list(made)


def linear_values(fitted, X, background):
    """coef * (x - mean), and the prediction at the mean.

    Shapes: returned (n_samples[, n_targets], n_features + 1).
    """
    X, background = (
        np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
        for Z in (X, background)
    )
    coef, mean = np.asarray(fitted.coef_, dtype=np.float64), background.mean(axis=0)
    values = (X - mean)[:, None] * np.atleast_2d(coef)
    base = np.broadcast_to(
        fitted.intercept_ + np.atleast_2d(coef) @ mean, values.shape[:2]
    )
    values = np.concatenate([values, base[..., None]], axis=-1)
    return values if coef.ndim > 1 else values[:, 0]
