"""Several targets of which rows lack some: each is fitted to the rows that have it.

The oracle is a fit of the target alone, to its rows, with the same folds.
"""

import pickle
from copy import deepcopy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RiskPathDisplay,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from tests.callbacks import StopAtFive, needs_callbacks
from tests.cases import covering

pytestmark = pytest.mark.usefixtures("few_trees")

N, NAMES = 60, ["low", "middle", "high"]
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(N)))
TREES = HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=5, random_state=0)
RIDGE = IterativeRidge(1.0, max_iter=20)


class WithoutWeights(MLPRegressor):
    """Such as networks are that take no weights of rows."""

    def partial_fit(self, X, y):
        return super().partial_fit(X, y)

    def fit(self, X, y):
        return super().fit(X, y)


MODELS = {
    "front door": None,
    "ridge": RIDGE,
    "lasso": TrajectoryLasso("path", max_iter=5),
    "kernel": KernelEigenProRegressor(gamma=0.3, n_components=0, random_state=0),
    "trees": TREES,
    "each output": MultiOutputRegressor(TREES),
    "steps": make_pipeline(StandardScaler(), TREES),
    "blend": [("ridge", RIDGE), ("trees", TREES)],
}
# By weights of some rows, and none of others.
WEIGHTS = np.tile([1.0, 2.0, 0.0, 1.0], N // 4)
PASSED = {
    "nothing": {},
    "weights": {"sample_weight": WEIGHTS},
    "offset": {"offset": np.sin(np.arange(N))},
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N, 4))
    Y = X @ rng.standard_normal((4, 3)) + 0.5 * rng.standard_normal((N, 3))
    Y[rng.random((N, 3)) < 0.3] = np.nan
    Y[7] = np.nan  # a row without any target
    return X, Y


def stopping(estimator, cv=SPLITS, **settings):
    settings = {"random_state": 0, "cv": cv, **settings}
    if estimator is None:
        return SelfStoppingRegressor(**settings)
    rule = "blend" if isinstance(estimator, list) else "min"
    return TrajectoryEarlyStoppingCV(estimator, rule=rule, **settings)


def fit_alone(estimator, X, target, splits, **params):
    """The fit to the rows that have a target, and these, with the same folds."""
    rows = np.flatnonzero(~np.isnan(target))
    number = np.full(N, -1)
    number[rows] = np.arange(len(rows))
    cv = [tuple(number[part][number[part] >= 0] for part in pair) for pair in splits]
    params = {name: values[rows] for name, values in params.items()}
    return stopping(estimator, cv).fit(X[rows], target[rows], **params), rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The chosen stage:UserWarning")
@covering(model=MODELS, passed=PASSED)
def test_a_target_as_if_it_were_alone(model, passed, data):
    X, Y = data
    params = PASSED[passed]
    fitted = stopping(MODELS[model]).fit(X, Y, **params)
    of_rows = {name: value for name, value in params.items() if name == "offset"}
    predictions = fitted.predict(X, **of_rows)
    intervals = fitted.predict_interval(X, **of_rows)
    assert predictions.shape == (N, 3)
    assert intervals.shape == (N, 3, 2)
    scores = []
    for j, one in enumerate(fitted.estimators_):
        alone, rows = fit_alone(MODELS[model], X, Y[:, j], SPLITS, **params)
        close = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-8)
        close(predictions[:, j], alone.predict(X, **of_rows).reshape(N))
        close(intervals[:, j], alone.predict_interval(X, **of_rows).reshape(N, 2))
        held_out = fitted.held_out_prediction_[:, j]
        close(held_out[rows], alone.held_out_prediction_.reshape(len(rows)))
        assert np.isnan(np.delete(held_out, rows)).all()
        close(one.path_, alone.path_)
        close(list(one.weights_.values()), list(alone.weights_.values()))
        assert one.best_iter_ == alone.best_iter_
        close(one.best_score_corrected_, alone.best_score_corrected_)
        scores.append(
            alone.score(X[rows], Y[rows, j], **{k: v[rows] for k, v in params.items()})
        )
    assert fitted.score(X, Y, **params) == pytest.approx(np.mean(scores))
    assert fitted.best_score_ == pytest.approx(
        np.mean([one.best_score_ for one in fitted.estimators_])
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_without_weights(data):
    X, Y = data
    network = WithoutWeights(hidden_layer_sizes=(5,), max_iter=4, random_state=0)
    fitted = stopping(network).fit(X, Y)
    for target, predictions in zip(Y.T, fitted.predict(X).T):
        alone, _ = fit_alone(network, X, target, SPLITS)
        np.testing.assert_allclose(predictions, alone.predict(X))
    with pytest.raises(TypeError, match="sample_weight"):
        stopping(network).fit(X, Y, sample_weight=np.arange(1.0, N + 1))


def test_leave_one_out_by_refits(data):
    X, Y = data
    ridge = IterativeRidge(0.0, max_iter=6, step_size=0.2, tol=0, loo=True)
    fitted = stopping(ridge, cv=None, criterion="loo").fit(X, Y)
    for target, one in zip(Y.T, fitted.estimators_):
        rows = np.flatnonzero(~np.isnan(target))
        errors = []
        for left_out in rows:
            others = rows[rows != left_out]
            refit = clone(ridge).set_params(loo=False, risk=False)
            refit.fit(X[others], target[others])
            path = np.stack(list(refit.staged_predict(X[[left_out]])))[:, 0]
            errors.append((path - target[left_out]) ** 2)
        np.testing.assert_allclose(one.path_, np.mean(errors, axis=0))


def test_weights_equal_repetition(data, rng):
    X, Y = data
    copies = rng.integers(1, 4, N)
    rows = np.repeat(np.arange(N), copies)
    repeated = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in SPLITS
    ]
    weighted = stopping(RIDGE).fit(X, Y, sample_weight=copies)
    copied = stopping(RIDGE, repeated).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X))
    assert weighted.score(X, Y, sample_weight=copies) == pytest.approx(
        copied.score(X[rows], Y[rows])
    )


def of_polars(Y):
    polars = pytest.importorskip("polars")
    columns = [[None if np.isnan(v) else v for v in column] for column in Y.T.tolist()]
    return polars.DataFrame(dict(zip(NAMES, columns)))


CONTAINERS = {
    "frame": lambda Y: pd.DataFrame(Y, columns=NAMES, index=np.arange(N)[::-1]),
    "Float64": lambda Y: pd.DataFrame(Y, columns=NAMES).astype("Float64"),
    "mixed": lambda Y: pd.DataFrame(Y, columns=NAMES).astype({"low": "Float64"}),
    "polars": of_polars,
    "list": lambda Y: [[None if np.isnan(v) else v for v in row] for row in Y.tolist()],
    "float32": lambda Y: Y.astype(np.float32),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(container, data):
    X, Y = data
    Y = np.round(4 * Y) / 4  # in single precision too
    plain = stopping(TREES).fit(X, Y)
    contained = stopping(TREES).fit(X, CONTAINERS[container](Y))
    np.testing.assert_allclose(contained.predict(X), plain.predict(X))
    has_names = container in ("frame", "Float64", "mixed", "polars")
    names = NAMES if has_names else [0, 1, 2]
    assert contained.target_names_ == names
    assert contained.leaderboard()["target"].tolist() == names


def test_one_table_for_all_targets(data):
    X, Y = data
    model = stopping([("ridge", RIDGE), ("trees", TREES)])
    table = model.fit(X, pd.DataFrame(Y, columns=NAMES)).leaderboard()
    for name, one in zip(NAMES, model.estimators_):
        part = table[table["target"] == name].drop(columns="target")
        pd.testing.assert_frame_equal(part.reset_index(drop=True), one.leaderboard())


OF_EACH = (
    "path_",
    "best_iter_",
    "weights_",
    "members_",
    "best_params_",
    "best_score_se_",
    "best_score_corrected_",
    "cv_results_",
    "evals_result_",
    "best_index_",
    "criterion_",
    "at_iteration",
    "staged_predict",
    "coef_table",
)


def read(model, name, X):
    """An attribute, or what a method gives."""
    value = getattr(model, name)
    if name == "at_iteration":
        return value(0)
    return list(value(X)) if name == "staged_predict" else value


@pytest.mark.parametrize("name", OF_EACH)
def test_what_each_target_has_of_its_own(name, data):
    X, Y = data
    model = stopping(RIDGE).fit(X, pd.DataFrame(Y, columns=NAMES))
    expected = rf"its own {name}: estimators_\[0\].{name} is that of the target low"
    with pytest.raises(AttributeError, match=expected):
        read(model, name, X)
    assert hasattr(model.estimators_[0], name)


def test_plots_are_of_one_target(data):
    X, Y = data
    model = stopping(RIDGE).fit(X, pd.DataFrame(Y, columns=NAMES))
    with pytest.raises(TypeError, match=r"estimators_\[0\] of the target low"):
        RiskPathDisplay.from_estimator(model)
    display = RiskPathDisplay.from_estimator(model.estimators_[1], name="middle")
    assert display.ax_.get_title(loc="left").startswith("middle")
    np.testing.assert_array_equal(
        display.lines_["cv"].get_ydata(), model.estimators_[1].path_
    )


def test_coefficients_of_all_targets(data):
    X, Y = data
    model = stopping(IterativeRidge(1.0, max_iter=20, keep_data=True)).fit(X, Y)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.predict(X))
    intervals = model.coef_interval()
    assert intervals.shape == (4, 3, 2)
    np.testing.assert_array_equal(intervals[:, 2], model.estimators_[2].coef_interval())


@pytest.mark.parametrize("is_dropped", [False, True])
def test_pickles(is_dropped, data):
    X, Y = data
    model = stopping(MODELS["blend"]).fit(X, Y)
    kept = pickle.loads(pickle.dumps(model.drop_record() if is_dropped else model))
    np.testing.assert_allclose(kept.predict(X), model.predict(X))
    np.testing.assert_allclose(kept.predict_interval(X), model.predict_interval(X))
    assert kept.score(X, Y) == pytest.approx(model.score(X, Y))
    assert kept.leaderboard().equals(model.leaderboard())
    if is_dropped:
        with pytest.raises(AttributeError, match="after drop_record"):
            read(kept, "held_out_prediction_", X)


def test_former_fits_leave_nothing(data):
    X, Y = data
    complete = np.nan_to_num(Y)
    expected = stopping(RIDGE).fit(X, complete)
    model = stopping(RIDGE).fit(X, Y)
    assert vars(model.fit(X, complete)).keys() == vars(expected).keys()
    anew = stopping(RIDGE).fit(X, Y)
    assert vars(model.fit(X, Y)).keys() == vars(anew).keys()


def few_numbers(Y):
    Y = Y.copy()
    Y[1:, 1] = np.nan
    Y[0, 1] = 1.0
    return Y


# A model, what is done to the targets, and the error.
REFUSED = {
    "few numbers": (RIDGE, few_numbers, r"Fewer than 2 rows .* columns of y: 1\."),
    "strings": (TREES, lambda Y: np.where(np.isnan(Y), None, "a"), "got strings"),
    "infinite": (RIDGE, lambda Y: np.where(Y > 2, np.inf, Y), "infinity"),
    "one target": (RIDGE, lambda Y: Y[:, 0], "drop the rows without a target"),
    "one column": (RIDGE, lambda Y: Y[:, :1], "drop the rows without a target"),
    "none at all": (RIDGE, lambda Y: Y * np.nan, "drop the rows without a target"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, data):
    X, Y = data
    estimator, change, message = REFUSED[case]
    model = stopping(estimator)
    before = deepcopy(vars(model)).keys()
    with pytest.raises(ValueError, match=message):
        model.fit(X, change(Y))
    assert vars(model).keys() == before


ALONE = RIDGE, TrajectoryLasso(), Staged(MultiOutputRegressor(TREES), cv=2)


@pytest.mark.parametrize("model", ALONE, ids=lambda model: type(model).__name__)
def test_other_models_name_the_way_out(model, data):
    model = clone(model)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=r"TrajectoryEarlyStoppingCV\(model\) fit a"):
        model.fit(*data)
    assert vars(model) == before


def test_classifiers_refuse(data):
    X, Y = data
    labels = np.where(np.isnan(Y), np.nan, Y > 0)
    with pytest.raises(ValueError, match="fit a regressor to each target"):
        SelfStoppingClassifier(cv=2).fit(X, labels)


def test_errors_name_the_target(data):
    X, Y = data
    Y[Y[:, 1] < 0, 1] = np.inf
    with pytest.raises(ValueError, match="infinity") as raised:
        stopping(RIDGE).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert raised.value.__notes__ == ["In the fit of the target middle, a column of y."]


def test_scores_of_new_rows(data, rng):
    X, Y = data
    model = stopping(RIDGE).fit(X, Y)
    new, complete = rng.standard_normal((20, 4)), rng.standard_normal((20, 3))
    expected = r2_score(complete, model.predict(new))
    assert model.score(new, complete) == pytest.approx(expected)
    of_two = complete.copy()
    of_two[1:, 0] = np.nan  # one number has no R^2
    expected = r2_score(complete[:, 1:], model.predict(new)[:, 1:])
    assert model.score(new, of_two) == pytest.approx(expected)
    with pytest.raises(ValueError, match="y must have 3 columns"):
        model.score(new, complete[:, :2])
    with pytest.raises(ValueError, match="fewer than 2 numbers"):
        model.score(new, complete * np.nan)
    assert np.isfinite(cross_val_score(stopping(RIDGE, cv=2), X, Y, cv=3)).all()


def test_rows_without_targets_are_not_read(data):
    X, Y = data
    expected = stopping(RIDGE).fit(X, Y).predict(X)
    without = X.copy()
    without[7] = np.nan
    np.testing.assert_array_equal(stopping(RIDGE).fit(without, Y).predict(X), expected)


@pytest.mark.parametrize("estimator", [TREES, None], ids=["trees", "front door"])
def test_metadata_routing(estimator, data):
    X, Y = data
    expected = stopping(estimator).fit(X, Y).predict(X)
    with config_context(enable_metadata_routing=True):
        routed = stopping(estimator).fit(X, Y).predict(X)
    np.testing.assert_allclose(routed, expected)


def test_a_limit_of_time_is_shared(data, monkeypatch):
    limits, fit = [], TrajectoryEarlyStoppingCV._fit

    def fit_with_limit(self, *args):
        limits.append(self.time_limit)
        return fit(self, *args)

    monkeypatch.setattr(TrajectoryEarlyStoppingCV, "_fit", fit_with_limit)
    stopping(RIDGE, time_limit=60.0).fit(*data)
    # What the first have left is for the others.
    assert limits[0] == pytest.approx(20, abs=1)
    assert limits == sorted(limits)
    assert limits[2] <= 60


def test_lines_of_every_target(data, capsys):
    X, Y = data
    stopping(RIDGE, verbose=1).fit(X, pd.DataFrame(Y, columns=NAMES))
    printed = capsys.readouterr().out
    assert [f"target {name}:" in printed for name in NAMES] == [True] * 3


@needs_callbacks
def test_callbacks_see_every_target(data):
    X, Y = data
    inner = IterativeRidge(1.0, max_iter=20, tol=0).set_callbacks(StopAtFive())
    model = stopping(inner).fit(X, Y)
    assert all(len(one.path_) <= 6 for one in model.estimators_)


def test_generators_of_folds_are_listed(data):
    X, Y = data
    expected = stopping(RIDGE).fit(X, Y)
    model = stopping(RIDGE, iter(SPLITS)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
