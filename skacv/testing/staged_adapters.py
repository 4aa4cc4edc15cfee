"""Whether an estimator is fitted in stages as it would be fitted by hand."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold

from ..staged import Staged
from ..staged.adapter import response_of
from ..staged.adapters import staged_adapter_of
from .assertions import require, require_same

ADVICE = (
    "Its fits must be the same every time (set random_state), and another fit, or "
    "partial_fit, must go on with the last one."
)


def check_staged_adapter(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    rtol: float = 0.0,
    random_state: int = 0,
) -> None:
    """Check that the stages of an estimator are fits with fewer stages.

    The predictions of every stage, by the model on all rows and for the rows held out
    of each fold, are those of separate fits to the same rows. A run that is grown in
    parts, or pickled, has the same stages, and the estimator itself stays as it is.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier that :class:`skacv.Staged` can fit in stages, with few
        of them, such as 5: it has ``warm_start`` or ``partial_fit``, and ``max_iter``,
        or an adapter of its own. It must predict with its last stage, and not choose
        one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        At least 20 rows. None: 60 rows of 4 standard normal numbers.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        None: positive numbers, or three classes with names.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, which must reach the fit of every fold. None: ``fit`` is
        passed no weights.
    rtol : float, default=0.0
        Relative difference up to which numbers count as equal, for estimators whose
        fits go on with other roundings.
    random_state : int, default=0
        Seed of the data that are not passed.

    Raises
    ------
    AssertionError
        If something is wrong. The error says what.
    ValueError
        If rows have several labels.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from skacv.testing import check_staged_adapter
    >>> check_staged_adapter(GradientBoostingRegressor(n_estimators=4, random_state=0))
    """
    rng = np.random.default_rng(random_state)
    name = type(estimator).__name__
    X = rng.standard_normal((60, 4)) if X is None else X
    if y is None:
        y = _targets_of(estimator, X, rng)
    y = np.asarray(y)
    if y.ndim > 1 and is_classifier(estimator):
        raise ValueError("check_staged_adapter takes one label for each row.")
    require(
        staged_adapter_of(estimator) is not None,
        f"{name} cannot be fitted in stages: it has neither an adapter nor max_iter "
        "with warm_start or partial_fit.",
    )
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    weights = {key: np.asarray(value, dtype=float) for key, value in weights.items()}
    before = set(vars(estimator)), repr(estimator.get_params())
    model = Staged(estimator, cv=KFold(2)).fit(X, y, **weights)
    require(
        (set(vars(estimator)), repr(estimator.get_params())) == before,
        f"{name} is changed when it is fitted in stages: its clones share parts of it.",
    )
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    stages = dict(stages_by_hand(estimator, model.n_iter_, X, y, **weights))
    _require_stages(name, model, stages, X, rtol)
    _require_params(name, estimator, model)
    if is_classifier(estimator):
        require_same(
            model.classes_, np.unique(y), f"The classes of {name} are not those of y."
        )
    place = 0
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        own = {key: value[fitted] for key, value in weights.items()}
        rows = slice(place, place + len(judged))
        by_hand = stages_by_hand(estimator, model.n_iter_, X[fitted], y[fitted], **own)
        for t, grown in by_hand:
            require_same(
                model.cv_prediction_path_[t][rows],
                getattr(grown, response_of(grown))(X[judged]),
                f"Stage {t} of {name} in a fold does not predict as a separate fit to "
                f"the rows of the fold. {ADVICE}",
                rtol,
            )
        place += len(judged)
    require(
        model.cv_prediction_path_.shape[:2] == (model.n_iter_ + 1, place),
        f"Held-out predictions of {name} must be those of the constant and of every "
        "stage, for every held-out row.",
    )
    _require_growth(name, model, X, y, weights, rtol)
    again = pickle.loads(pickle.dumps(model))
    require_same(
        again.predict(X),
        model.predict(X),
        f"{name} predicts something else after it has been pickled.",
    )


def _targets_of(estimator, X, rng):
    """Positive numbers, or three classes with names, that depend on the columns."""
    signal = X[:, 0] + X[:, 1] * X[:, -1] + 0.3 * rng.standard_normal(len(X))
    if not is_classifier(estimator):
        return np.abs(signal) + 0.1
    edges = np.quantile(signal, [1 / 3, 2 / 3])
    return np.array(["low", "mid", "top"])[np.digitize(signal, edges)]


def stages_by_hand(estimator, n_stages, X, y, **weights):
    """Every stage with its number, as a user has it without skacv.

    Each is a separate fit, or a copy after as many calls of ``partial_fit``.
    """
    if not hasattr(estimator, "partial_fit"):
        count = staged_adapter_of(estimator).count
        for t in range(1, n_stages + 1):
            grown = clone(estimator).set_params(**{count: t})
            yield t, grown.fit(X, y, **weights)
        return
    grown = clone(estimator)
    if is_classifier(estimator):
        weights = {**weights, "classes": np.unique(y)}
    for t in range(1, n_stages + 1):
        yield t, deepcopy(grown.partial_fit(X, y, **weights))


def _require_stages(name, model, stages, X, rtol):
    """Every stage of the model predicts as a fit with so many."""
    staged = list(model.staged_predict(X))
    require(
        len(staged) == len(model.recorded_iterations()) == model.n_iter_,
        f"{name} must keep each of its {model.n_iter_} stages, got {len(staged)}.",
    )
    for t, grown in stages.items():
        stopped = model.at_iteration(t)
        response = response_of(grown)
        answers = getattr(grown, response)(X)
        # Probabilities that round to the same number do not say which class it is.
        is_clear = np.ones(len(answers), dtype=bool)
        if is_classifier(grown) and answers.ndim == 2:
            largest = np.sort(answers, axis=1)[:, -2:]
            is_clear = largest[:, 0] < largest[:, 1]
        for found, expected in (
            (staged[t - 1][is_clear], grown.predict(X)[is_clear]),
            (stopped.predict(X), grown.predict(X)),
            (getattr(stopped, response)(X), answers),
        ):
            require_same(
                found,
                expected,
                f"Stage {t} of {name} does not predict as a separate fit with {t} "
                f"stages. {ADVICE}",
                rtol,
            )
    require_same(
        model.predict(X)[is_clear],
        staged[-1][is_clear],
        f"{name} predicts something else after its stages have been looked at: they "
        "must not change the model that they are stages of.",
    )


def _require_params(name, estimator, model):
    """A stage has the parameters of the estimator, and its own number of stages."""
    t = max(1, model.n_iter_ // 2)
    adapter = staged_adapter_of(estimator)
    stage = model.at_iteration(t).estimator_
    found, n_stages = stage.get_params(deep=False), stage.get_params()[adapter.count]
    asked = estimator.get_params(deep=False)
    for key in asked.keys() - {adapter.count, "estimator", *adapter.early_stopping}:
        require(
            found[key] is asked[key] or found[key] == asked[key],
            f"A stage of {name} must have its parameters: {key} is {found[key]!r} in "
            f"the place of {asked[key]!r}.",
        )
    require(
        n_stages == t,
        f"Stage {t} of {name} must have {adapter.count}={t}, got {n_stages!r}.",
    )


def _require_growth(name, model, X, y, weights, rtol):
    """A run that is grown in parts has the stages of the run at once."""
    parts = clone(model)
    run, n_stages, is_over = parts.begin(X, y, **weights), 0, False
    while not is_over:
        n_stages += 1 + n_stages // 2
        is_over = run.go_on(n_stages)
        parts.take(run.record())
        require(
            parts.n_iter_ == n_stages or is_over,
            f"{name} has {parts.n_iter_} stages where it was grown to {n_stages}.",
        )
        require(
            len(parts.cv_path_) == len(parts.cv_prediction_path_) == parts.n_iter_ + 1,
            f"Paths of {name} must have an entry for the constant and for every stage.",
        )
    sentence = f"{name} grown in parts is not what it is at once. {ADVICE}"
    for path in ("cv_path_", "cv_se_path_", "cv_fold_path_", "cv_prediction_path_"):
        require_same(getattr(parts, path), getattr(model, path), sentence, rtol)
    staged = zip(parts.staged_predict(X), model.staged_predict(X), strict=True)
    for found, expected in staged:
        require_same(found, expected, sentence, rtol)
