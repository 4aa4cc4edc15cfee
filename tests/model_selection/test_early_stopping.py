"""Stopping at the best iterate: without refits, in scikit-learn's machinery."""

import pickle
import warnings
from copy import copy
from inspect import getattr_static
from itertools import count

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import (
    BaseEstimator,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.metrics import get_scorer, make_scorer, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv._estimator.estimates.readers import ESTIMATES
from skacv._estimator.estimates.recording import METHODS
from skacv.model_selection import RecordsTrajectory
from skacv.model_selection.criteria import N_GROUPS
from skacv.model_selection.rules import RULES
from skacv.model_selection.stages import Stages
from skacv.optim.matrix import MatrixDesign
from skacv.risk.averages import mean_with_error
from tests.cases import covering


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 40))
    return X, X[:, :3].sum(axis=1) + rng.standard_normal(80)


def test_keeps_the_iterate_of_least_estimated_risk(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk").fit(X, y)
    alone = IterativeRidge(0.0, loo=False).fit(X, y)
    best = alone.risk_path_.argmin()
    assert 0 < best < alone.n_iter_
    assert model.best_iter_ == model.estimator_.iteration_ == best
    assert model.best_score_ == alone.risk_path_[best]
    assert model.best_score_se_ == alone.risk_se_path_[best]
    assert model.criterion_ == "risk"
    np.testing.assert_array_equal(model.path_, alone.risk_path_)
    np.testing.assert_array_equal(model.coef_, alone.coef_path_[best])
    np.testing.assert_array_equal(model.predict(X), alone.at_iteration(best).predict(X))
    assert model.best_params_ == {}


def test_alpha_and_iteration_in_one_run(data):
    X, y = data
    lasso = TrajectoryLasso("path", max_iter=20)
    model = TrajectoryEarlyStoppingCV(lasso, criterion="risk").fit(X, y)
    inner = model.estimator_
    assert inner.alpha == "path"
    assert model.best_params_ == {"alpha": inner.alpha_path_[model.best_iter_]}
    assert model.best_score_ == inner.risk_path_.min()


def test_param_grid_chooses_jointly(data):
    X, y = data
    grid = {"alpha": [1.0, 0.1, 0.01], "solver": ["ista", "fista"]}
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso(), criterion="risk", param_grid=grid
    ).fit(X, y)
    scores = {
        (alpha, solver): TrajectoryLasso(alpha, solver=solver)
        .fit(X, y)
        .risk_path_.min()
        for alpha in grid["alpha"]
        for solver in grid["solver"]
    }
    best = min(scores, key=scores.get)
    assert (model.best_params_["alpha"], model.best_params_["solver"]) == best
    assert model.best_score_ == pytest.approx(scores[best])
    assert len(model.results_["params"]) == 6
    for name in ("best_iter", "best_score", "best_score_se", "n_iter", "fit_time"):
        assert len(model.results_[name]) == 6
    assert min(model.results_["best_score"]) == model.best_score_


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_parallel_runs_agree(backend, data):
    X, y = data
    grid = {"alpha": [1.0, 0.1, 0.01]}
    alone = TrajectoryEarlyStoppingCV(IterativeRidge(), param_grid=grid).fit(X, y)
    with joblib.parallel_backend(backend, n_jobs=2):
        together = clone(alone).fit(X, y)
    assert together.best_params_ == alone.best_params_
    np.testing.assert_allclose(together.coef_, alone.coef_)


def test_no_refit(data, monkeypatch):
    """Choosing costs no product with X beyond those of the runs."""
    X, y = data
    counts = {"n": 0}
    original = MatrixDesign.dot

    def counting(self, coef):
        counts["n"] += 1
        return original(self, coef)

    monkeypatch.setattr(MatrixDesign, "dot", counting)
    inner = IterativeRidge(max_iter=30, tol=0)
    TrajectoryEarlyStoppingCV(
        inner, criterion="risk", param_grid={"alpha": [0.1, 1.0]}
    ).fit(X, y)
    # Of iterates sixteen at a time, beside those of the updates.
    assert 0 < counts["n"] <= 2 * 30


def test_one_standard_error(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="risk", rule="one_se"
    ).fit(X, y)
    path, se = model.path_, model.estimator_.risk_se_path_
    bound = path.min() + se[path.argmin()]
    assert path[model.best_iter_] <= bound
    assert (path[: model.best_iter_] > bound).all()


def test_rules():
    path, errors = np.array([5.0, 3.0, 2.0, 1.9, 2.5]), [9.0, 9.0, 9.0, 0.2, 9.0]
    assert RULES["min"](path, errors.__getitem__) == 3
    assert RULES["one_se"](path, errors.__getitem__) == 2


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_rules_take_several_paths(rule, rng):
    paths, errors = rng.integers(0, 9, (50, 12)).astype(float), rng.uniform(0, 3, 12)
    paths[rng.uniform(size=paths.shape) < 0.3] = np.nan
    paths[0], errors[3] = np.nan, np.nan
    expected = [RULES[rule](path, errors.__getitem__) for path in paths]
    np.testing.assert_array_equal(RULES[rule](paths, errors.__getitem__), expected)


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_what_is_undefined_comes_last(rule):
    path = np.array([np.nan, 5.0, 3.0, np.nan, 1.9, 2.5])
    assert RULES[rule](path, lambda t: 0.2) == 4
    # An undefined error says nothing of other rows.
    assert RULES[rule](path, lambda t: np.nan) == 4
    assert RULES[rule](np.array([np.nan, np.inf]), lambda t: 0.2) == 1


def test_of_several_targets(data, rng):
    X, y = data
    Y = np.column_stack([y, rng.standard_normal(80)])
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X, Y)
    assert model.predict(X).shape == (80, 2)


def test_sample_weight_is_passed_on(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk")
    model.fit(X, y, sample_weight=weights)
    alone = IterativeRidge(0.0, loo=False).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.path_, alone.risk_path_)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(
        alone.at_iteration(model.best_iter_).score(X, y, sample_weight=weights)
    )


def test_attributes_of_the_chosen_iterate_are_documented():
    attributes = TrajectoryEarlyStoppingCV.__doc__.split("Attributes\n")[1]
    properties = [
        name
        for name in dir(TrajectoryEarlyStoppingCV)
        if isinstance(getattr_static(TrajectoryEarlyStoppingCV, name), property)
        and not name.startswith("_")
    ]
    assert "coef_" in properties
    for name in properties:
        assert f"    {name} : " in attributes


# --------------------------------------------------------------- scikit-learn


def test_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        TrajectoryEarlyStoppingCV(TrajectoryLasso(alpha=0.01), criterion="risk"),
    ).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert pipeline[-1].n_features_in_ == 10


def test_in_grid_search(data):
    X, y = data
    search = GridSearchCV(
        TrajectoryEarlyStoppingCV(TrajectoryLasso()), {"estimator__alpha": [0.01, 0.1]}
    ).fit(X, y)
    assert search.best_params_["estimator__alpha"] in (0.01, 0.1)
    assert (
        search.best_estimator_.estimator_.alpha
        == search.best_params_["estimator__alpha"]
    )
    assert cross_val_score(SelfStoppingRegressor(), X, y).mean() > 0.4


def test_clone_and_pickle(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(TrajectoryElasticNet(0.1), n_jobs=2)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    model.fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert is_regressor(model)


def test_pickle_holds_no_data(rng):
    X = rng.standard_normal((400, 500))
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1, max_iter=5))
    model.fit(X, X[:, 0] + rng.standard_normal(400))
    assert len(pickle.dumps(model)) < X.nbytes / 4


def test_metadata_routing(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    expected = IterativeRidge(0.0, loo=False).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = IterativeRidge(0.0).set_fit_request(sample_weight=True)
        asking.set_score_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(asking, criterion="risk")
        model.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(model.path_, expected.risk_path_)
        model.score(X, y, sample_weight=weights)
        deaf = IterativeRidge(0.0).set_fit_request(sample_weight=False)
        model = TrajectoryEarlyStoppingCV(deaf)
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y, sample_weight=weights)
        search = GridSearchCV(
            TrajectoryEarlyStoppingCV(asking), {"estimator__alpha": [0.0, 1.0]}
        )
        search.fit(X, y, sample_weight=weights)
        pipeline = make_pipeline(TrajectoryEarlyStoppingCV(asking, criterion="risk"))
        pipeline.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(pipeline[-1].path_, expected.risk_path_)


def test_stages_look_at_the_data_once(data, monkeypatch):
    """They are validated as often as for a run of one stage."""
    seen, stages = [], []
    coded, fit_up_to = TrajectoryLasso._coded_samples, TrajectoryLasso.fit_up_to

    def counted(self, *args):
        seen.append(args)
        return coded(self, *args)

    def stage(self, *args, **kwargs):
        stages.append(args)
        return fit_up_to(self, *args, **kwargs)

    monkeypatch.setattr(TrajectoryLasso, "_coded_samples", counted)
    monkeypatch.setattr(TrajectoryLasso, "fit_up_to", stage)
    model = TrajectoryLasso("path", max_iter=20)
    TrajectoryEarlyStoppingCV(model, criterion="cv", patience=20).fit(*data)
    n_seen = len(seen)
    assert len(stages) > 2
    TrajectoryEarlyStoppingCV(model, criterion="cv", patience=None).fit(*data)
    assert len(seen) == 2 * n_seen


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(risk=False), criterion="risk"),
            ValueError,
            "risk_path_, which TrajectoryLasso does not compute with risk=False",
        ),
        (
            TrajectoryEarlyStoppingCV(
                IterativeRidge(),
                criterion="risk",
                param_grid={"risk": ["auto", False]},
            ),
            ValueError,
            "does not compute",
        ),
        (TrajectoryEarlyStoppingCV(criterion="holdout"), ValueError, "'holdout'"),
        (TrajectoryEarlyStoppingCV(rule="max"), ValueError, "rule"),
        (TrajectoryEarlyStoppingCV(Lasso()), ValueError, "'estimator'"),
        (
            TrajectoryEarlyStoppingCV(param_grid={"gamma": [1.0]}),
            ValueError,
            "Invalid parameter 'gamma'",
        ),
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(0.01, step_size=1e3)),
            ValueError,
            "largest stable step",
        ),
    ],
    ids=[
        "risk_off",
        "risk_off_in_grid",
        "criterion",
        "rule",
        "foreign",
        "grid",
        "step",
    ],
)
def test_bad_input_changes_nothing(model, error, message, data):
    X, y = data
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    for name in ("coef_", "n_features_in_", "best_iter_"):
        assert not hasattr(model, name)
    fitted = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(X, y)
    before = vars(fitted).copy()
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full_like(X, np.nan), y)
    assert vars(fitted) == before


def changed(values, place, value):
    found = values.copy()
    found[place] = value
    return found


@pytest.mark.parametrize("estimator", [None, TrajectoryLasso(0.1)])
@pytest.mark.parametrize(
    ("targets", "weights", "message"),
    [
        (lambda y: y, np.zeros_like, "at least (one non-zero|two rows)"),
        (lambda y: y, lambda y: -np.ones_like(y), "Negative values"),
        (lambda y: y, lambda y: changed(0 * y, 3, 1.0), "positive on at least two"),
        (lambda y: changed(y, 3, np.nan), np.ones_like, "Input y contains NaN"),
        (lambda y: changed(y, 3, np.inf), np.ones_like, "Input y contains inf"),
    ],
    ids=["zero", "negative", "one", "nan", "inf"],
)
def test_bad_targets_and_weights(estimator, targets, weights, message, data):
    """Before folds of no rows are asked for, and without a warning."""
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            model.fit(X, targets(y), sample_weight=weights(y))
    assert not hasattr(model, "best_iter_")


@pytest.mark.parametrize("estimator", [None, TrajectoryLasso(0.1)])
def test_targets_that_are_strings_are_no_numbers(estimator, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator, task="regression")
    with pytest.raises(ValueError, match="y must be numbers, got strings such as '"):
        model.fit(X, y.astype(str))


def test_a_summary_is_refused_by_curved_losses(data):
    summary = RowSummary().partial_fit(*data)
    model = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression())
    with pytest.raises(ValueError, match="RowSummary can be used with the squared"):
        model.fit(summary)


def test_unlike_columns_are_refused(data):
    X, y = data
    frame = pd.DataFrame(X).add_prefix("x")
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x0": "z"}))


@pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_reach_the_trajectories(n_jobs, data, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    inner = IterativeRidge(max_iter=7, tol=0).set_callbacks(monitor)
    model = TrajectoryEarlyStoppingCV(
        inner, param_grid={"alpha": [0.1, 1.0]}, n_jobs=n_jobs
    )
    model.set_callbacks(ProgressBar()).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "update"]
    assert len(rows) == 2 * 7
    assert "IterativeRidge" in capsys.readouterr().out


# --------------------------------------------------- estimators of other classes


def forwarded(name):
    def method(self, *args):
        return getattr(self._ridge(), name)(*args)

    return method


class Boxed(RegressorMixin, BaseEstimator):
    """An IterativeRidge of which only what is asked of an estimator can be seen."""

    def __init__(self, loo="auto", cv=None):
        self.loo = loo
        self.cv = cv

    def _ridge(self):
        ridge = IterativeRidge(0.0, max_iter=50, risk=False, loo=self.loo, cv=self.cv)
        return getattr(self, "ridge_", ridge)

    def fit(self, X, y):
        return self._show(self._ridge().fit(X, y))

    def fit_up_to(self, n_updates, X, y):
        ridge = self._ridge()
        is_whole = ridge.fit_up_to(n_updates, X, y)
        self._show(ridge)
        return is_whole

    def at_iteration(self, t):
        return clone(self)._show(self.ridge_.at_iteration(t))

    def _show(self, ridge):
        self.ridge_, self.n_iter_ = ridge, ridge.n_iter_
        for estimate in ESTIMATES.values():
            for kind in ("path", "se_path", "predictions", "indices"):
                name = getattr(estimate, kind)
                if hasattr(ridge, name):
                    setattr(self, name, getattr(ridge, name))
        return self


for name in METHODS:
    if name not in dir(Boxed):
        setattr(Boxed, name, forwarded(name))


@pytest.mark.parametrize("patience", [None, 4])
@pytest.mark.parametrize("criterion", ["auto", "loo", "cv", "r2"])
def test_estimators_need_what_they_are_asked_for_alone(criterion, patience, data):
    X, y = data
    settings = {"criterion": criterion, "patience": patience}
    boxed = TrajectoryEarlyStoppingCV(Boxed(), param_grid={"cv": [3, 4]}, **settings)
    ridge = IterativeRidge(0.0, max_iter=50, risk=False)
    whole = TrajectoryEarlyStoppingCV(ridge, param_grid={"cv": [3, 4]}, **settings)
    boxed.fit(X, y)
    whole.fit(X, y)
    np.testing.assert_array_equal(boxed.path_, whole.path_)
    np.testing.assert_array_equal(boxed.predict(X), whole.predict(X))
    assert boxed.best_params_ == whole.best_params_


@pytest.mark.parametrize("missing", METHODS)
def test_estimators_that_lack_a_method_are_refused(missing, data):
    lacking = type("Lacking", (Boxed,), {missing: None})()
    assert isinstance(Boxed(), RecordsTrajectory)
    assert not isinstance(lacking, RecordsTrajectory)
    sentence = f"an estimator that records its traj.* but Lacking has no {missing} "
    with pytest.raises(ValueError, match=sentence):
        TrajectoryEarlyStoppingCV(lacking).fit(*data)


def test_a_refusal_names_what_every_class_has_to_write(data):
    with pytest.raises(ValueError, match=r"but Lasso has no at_iteration \(see"):
        TrajectoryEarlyStoppingCV(Lasso()).fit(*data)


class NestedLeastSquares(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """Iterate t is least squares on the first t columns; the protocol does the rest."""

    def __init__(self, loo="auto"):
        self.loo = loo

    def fit(self, X, y):
        Q, R = np.linalg.qr(X)
        self.n_iter_ = X.shape[1]
        self.coef_path_ = np.zeros((self.n_iter_ + 1, self.n_iter_))
        for t in range(1, self.n_iter_ + 1):
            self.coef_path_[t, :t] = np.linalg.solve(R[:t, :t], Q[:, :t].T @ y)
        self.coef_ = self.coef_path_[-1]
        if self.loo:
            leverages = np.pad((Q**2).cumsum(axis=1).T, [(1, 0), (0, 0)])
            residuals = (y - self.coef_path_ @ X.T) / (1 - leverages)
            self.loo_prediction_path_ = y - residuals
            self.loo_indices_ = np.arange(len(y))
            self.loo_path_, self.loo_se_path_ = mean_with_error(
                residuals**2, np.ones(len(y))
            )
        return self

    def predict(self, X):
        return X @ self.coef_

    def at_iteration(self, t):
        stopped = copy(self)
        stopped.coef_ = self.coef_path_[t]
        return stopped


@covering(criterion=["auto", "loo", "r2"], loo=["auto", True], patience=[None, 3])
def test_a_class_that_derives_from_the_protocol(criterion, loo, patience, data):
    X, y = data[0][:, :8], data[1]
    model = TrajectoryEarlyStoppingCV(
        NestedLeastSquares(loo), criterion=criterion, patience=patience
    )
    model.fit(X, y)
    splits = LeaveOneOut()
    costs = [
        -cross_val_score(
            LinearRegression(fit_intercept=False),
            X[:, :t],
            y,
            cv=splits,
            scoring="neg_mean_squared_error",
        ).mean()
        for t in range(1, 9)
    ]
    path = (1 - model.path_) * y.var() if criterion == "r2" else model.path_
    np.testing.assert_allclose(path[1:], costs)
    assert model.best_iter_ == 1 + np.argmin(costs)
    assert model.best_params_ == {}
    best = LinearRegression(fit_intercept=False).fit(X[:, : model.best_iter_], y)
    expected = best.predict(X[:, : model.best_iter_])
    np.testing.assert_allclose(model.predict(X), expected)


def test_parameters_of_estimators_without_a_criterion(data):
    """One that computes none of them says so, whatever it lacks."""
    X, y = data

    class Silent(Boxed):
        def __init__(self):
            self.loo, self.cv = False, None

    for criterion in ("auto", "loo", "risk", "cv", "r2"):
        model = TrajectoryEarlyStoppingCV(Silent(), criterion=criterion)
        with pytest.raises(ValueError, match="Silent does not have") as caught:
            model.fit(X, y)
        assert ("memory matrix" in str(caught.value)) == (criterion == "risk")


# ------------------------------------------------- held-out criteria, scorers


@pytest.mark.parametrize("criterion", ["risk", "loo", "cv"])
def test_every_criterion_minimises_its_path(criterion, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion=criterion)
    model.fit(X, y)
    shuffled = KFold(5, shuffle=True, random_state=0)
    alone = IterativeRidge(0.0, cv=shuffled).fit(X, y)
    path = getattr(alone, f"{criterion}_path_")
    np.testing.assert_allclose(model.path_, path)
    assert model.best_iter_ == path.argmin()
    errors = getattr(alone, f"{criterion}_se_path_")
    assert model.best_score_se_ == pytest.approx(errors[path.argmin()])
    assert model.criterion_ == criterion
    for other in {"risk", "loo", "cv"} - {criterion}:
        assert not hasattr(model.estimator_, f"{other}_path_")


def test_automatic_criterion(rng):
    """What is asked for; else leave-one-out where it is cheap; else folds."""

    def chosen(estimator, shape=(80, 40)):
        X = rng.standard_normal(shape)
        y = X[:, 0] + rng.standard_normal(shape[0])
        return TrajectoryEarlyStoppingCV(estimator).fit(X, y).criterion_

    assert chosen(IterativeRidge(max_iter=50)) == "loo"
    # A decomposition would take several times as long as the run.
    assert chosen(IterativeRidge(max_iter=5)) == "cv"
    assert chosen(IterativeRidge(max_iter=50), shape=(2001, 5)) == "cv"
    assert chosen(TrajectoryLasso(0.1)) == "cv"
    assert chosen(TrajectoryLasso(0.1, loo=False)) == "cv"
    assert chosen(TrajectoryLasso(0.1, risk=False)) == "cv"
    assert chosen(TrajectoryLasso(0.1, loo=20)) == "loo"
    assert chosen(TrajectoryLasso(0.5, loo=True, max_iter=5)) == "loo"
    assert chosen(TrajectoryLasso(0.1, risk="exact")) == "risk"
    assert chosen(IterativeRidge(max_iter=50, cv=3)) == "cv"


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({"loo": ["auto", False]}, "cv"),
        ({"loo": [True, 50]}, "loo"),
        ({"loo": [True, "auto"]}, "cv"),
        ({"loo": [False], "risk": ["exact", 20]}, "risk"),
        ({"max_iter": [5, 100]}, "cv"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_automatic_criterion_is_one_that_all_candidates_have(
    grid, expected, reverse, rng
):
    X = rng.standard_normal((200, 50))
    y = X[:, 0] + rng.standard_normal(200)
    lasso = TrajectoryLasso(0.1, tol=1e-3)
    if "max_iter" in grid:  # one of them is too short for a decomposition
        lasso = IterativeRidge(tol=1e-3)
    if reverse:
        grid = {name: values[::-1] for name, values in grid.items()}
    model = TrajectoryEarlyStoppingCV(lasso, param_grid=grid).fit(X, y)
    assert model.criterion_ == expected


@pytest.mark.parametrize("cvs", [[None, 4], [4, None]])
def test_scorers_take_folds_where_all_candidates_have_them(cvs, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(), criterion="r2", param_grid={"cv": cvs}
    ).fit(X, y)
    inner = model.estimator_
    expected = -np.mean((y - inner.loo_prediction_path_) ** 2, axis=1) / y.var() + 1
    np.testing.assert_allclose(model.path_, expected)


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (IterativeRidge(max_iter="a"), None, "'max_iter' parameter of IterativeRidge"),
        (IterativeRidge(), {"max_iter": [5, "a"]}, "'max_iter' parameter"),
        (TrajectoryLasso(loo="maybe"), None, "'loo' parameter of TrajectoryLasso"),
        (
            TrajectoryLogisticRegression(solver="sgd", batch_size=0),
            None,
            "'batch_size' parameter of TrajectoryLogisticRegression",
        ),
        (KernelEigenProRegressor(), {"patience": [5, -1]}, "'patience' parameter"),
    ],
    ids=["run", "grid", "loo", "batch", "kernel"],
)
@pytest.mark.parametrize("criterion", ["auto", "loo", "r2"])
def test_parameters_of_candidates_are_validated_first(
    criterion, estimator, grid, message, data, monkeypatch
):
    X, y = data

    def no_fit(*args):
        raise AssertionError("something was run")

    monkeypatch.setattr(Stages, "run", no_fit)
    model = TrajectoryEarlyStoppingCV(estimator, criterion=criterion, param_grid=grid)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y > 0)


@pytest.mark.parametrize(
    ("grid", "refusing"),
    [
        ({"loo": ["auto", False]}, "{'loo': False}"),
        ({"loo": [False], "alpha": [3.0]}, "{'alpha': 3.0, 'loo': False}"),
    ],
)
def test_the_candidate_that_refuses_is_named(grid, refusing, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(), criterion="loo", param_grid=grid
    )
    with pytest.raises(ValueError, match=f"candidate {refusing}"):
        model.fit(X, y)


@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize(
    "scoring", ["r2", "neg_mean_absolute_error", "explained_variance"]
)
def test_scorers_judge_pooled_held_out_predictions(scoring, cv, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0, cv=cv), criterion=scoring)
    model.fit(X, y)
    inner = model.estimator_
    if cv is None:
        rows, predictions = inner.loo_indices_, inner.loo_prediction_path_
    else:
        rows = np.concatenate(inner.cv_indices_)
        predictions = inner.cv_prediction_path_
    function = get_scorer(scoring)._score_func
    sign = get_scorer(scoring)._sign
    scores = [sign * function(y[rows], p) for p in predictions]
    np.testing.assert_allclose(model.path_, scores)
    assert model.best_iter_ == np.argmax(scores)
    assert model.best_score_ == pytest.approx(max(scores))
    assert 0 < model.best_score_se_ < 1
    assert model.criterion_ == scoring


def test_negative_squared_error_chooses_as_leave_one_out(data):
    X, y = data
    scored = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="neg_mean_squared_error"
    ).fit(X, y)
    left_out = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="loo").fit(X, y)
    assert scored.best_iter_ == left_out.best_iter_
    assert scored.best_score_ == pytest.approx(-left_out.best_score_)
    # A jackknife over groups of rows, of what is a mean: nearly the same error.
    assert scored.best_score_se_ == pytest.approx(left_out.best_score_se_, rel=0.3)


def test_callable_scorers_get_the_rows_of_their_predictions(data):
    X, y = data

    def worst(estimator, X_held, y_held):
        assert X_held.shape == (len(y_held), 40)
        return -np.abs(estimator.predict(X_held) - y_held).max()

    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion=worst).fit(X, y)
    residuals = model.estimator_.loo_prediction_path_ - y
    np.testing.assert_allclose(model.path_, -np.abs(residuals).max(axis=1))


def test_scorers_get_the_weights_that_they_request(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    inner = IterativeRidge(0.0, loo=True)
    expected = inner.fit(X, y, sample_weight=weights).loo_path_
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(mean_squared_error, greater_is_better=False)
        scorer = scorer.set_score_request(sample_weight=True)
        asking = IterativeRidge(0.0, loo=True).set_fit_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(asking, criterion=scorer)
        model.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(-model.path_, expected)


def correlation(estimator, X, y):
    """Undefined where all predictions are the same, as those of the start are."""
    predictions = estimator.predict(X)
    if np.ptp(predictions) == 0:
        return np.nan
    return np.corrcoef(predictions, y)[0, 1]


@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize("patience", [None, 3])
def test_iterates_of_undefined_score_are_not_chosen(rule, patience, data):
    X, y = data
    ridge = IterativeRidge(0.0, fit_intercept=False)
    model = TrajectoryEarlyStoppingCV(
        ridge, criterion=correlation, rule=rule, patience=patience
    ).fit(X, y)
    assert np.isnan(model.path_[0])
    assert model.best_iter_ > 0
    assert model.best_score_ == model.path_[model.best_iter_]
    whole = TrajectoryEarlyStoppingCV(ridge, criterion=correlation, rule=rule)
    assert model.best_iter_ == whole.fit(X, y).best_iter_


def test_patience_waits_for_a_score_that_is_defined(data):
    """The first values of alpha keep all coefficients at zero."""
    X, y = data
    lasso = TrajectoryLasso([1e3] * 10 + [0.1], fit_intercept=False, max_iter=20)
    model = TrajectoryEarlyStoppingCV(lasso, criterion=correlation, patience=2)
    model.fit(X, y)
    assert np.isnan(model.path_[:11]).all()
    assert model.best_score_ == np.nanmax(model.path_)


def test_candidates_of_undefined_score_are_not_chosen(data):
    X, y = data
    lasso = TrajectoryLasso(fit_intercept=False)
    model = TrajectoryEarlyStoppingCV(
        lasso, criterion=correlation, param_grid={"alpha": [1e3, 0.1]}
    ).fit(X, y)
    assert model.best_params_ == {"alpha": 0.1}
    nothing = clone(model).set_params(param_grid={"alpha": [1e3, 1e4]})
    with pytest.raises(ValueError, match="for every iterate of every candidate"):
        nothing.fit(X, y)
    assert not [name for name in vars(nothing) if name.endswith("_")]


class CountedScorer:
    """Negative squared error that counts how often it is asked."""

    n_calls = 0

    def __call__(self, estimator, X, y):
        self.n_calls += 1
        return -np.mean((estimator.predict(X) - y) ** 2)


@pytest.mark.parametrize("n_candidates", [1, 2])
def test_every_iterate_is_scored_once(n_candidates, data):
    X, y = data
    counting = CountedScorer()
    ridge = IterativeRidge(max_iter=30, tol=0)
    grid = {"alpha": [0.1, 1.0][:n_candidates]}
    TrajectoryEarlyStoppingCV(ridge, criterion=counting, param_grid=grid).fit(X, y)
    # One trial; every iterate, and the jackknife at the best, of each candidate.
    assert counting.n_calls == 1 + n_candidates * (31 + N_GROUPS)


def test_stages_score_at_most_twice_as_often(data):
    X, y = data
    counting = CountedScorer()
    ridge = IterativeRidge(0.0, max_iter=1000, tol=0)
    model = TrajectoryEarlyStoppingCV(ridge, criterion=counting, patience=4)
    n_iter = model.fit(X, y).estimator_.n_iter_
    assert n_iter > 4
    n_stages = int(np.log2(n_iter // 4)) + 1
    stages = [1 + 4 * 2**k for k in range(n_stages)]
    assert stages[-1] == n_iter + 1
    assert counting.n_calls == 1 + sum(stages) + N_GROUPS


def test_one_standard_error_of_a_scorer(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="r2", rule="one_se"
    ).fit(X, y)
    best = model.path_.argmax()
    assert model.best_iter_ < best
    before = model.path_[: model.best_iter_]
    assert (before < model.path_[model.best_iter_]).all()


def test_results_have_a_row_for_every_criterion_computed(data):
    X, y = data
    inner = IterativeRidge(0.0, risk=True, loo=True, cv=3)
    grid = {"alpha": [0.0, 10.0]}
    model = TrajectoryEarlyStoppingCV(inner, criterion="r2", param_grid=grid)
    results = model.fit(X, y).results_
    assert results["criterion"] == ["r2", "risk", "loo", "cv"] * 2
    assert [params["alpha"] for params in results["params"]] == [0.0] * 4 + [10.0] * 4
    assert all(len(column) == 8 for column in results.values())
    for alpha, first in ((0.0, 0), (10.0, 4)):
        fitted = clone(inner).set_params(alpha=alpha).fit(X, y)
        for row, name in enumerate(("risk", "loo", "cv"), start=first + 1):
            path = getattr(fitted, f"{name}_path_")
            assert results["best_iter"][row] == path.argmin()
            assert results["best_score"][row] == pytest.approx(path.min())
    assert pd.DataFrame(results).shape == (8, 11)


def test_groups_reach_the_splitter(data):
    X, y = data
    groups = np.arange(80) % 8
    inner = IterativeRidge(0.0, cv=GroupKFold(4))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y, groups=groups)
    expected = clone(inner).fit(X, y, groups=groups).cv_path_
    np.testing.assert_array_equal(model.path_, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = GroupKFold(4).set_split_request(groups=True)
        inner = IterativeRidge(0.0, cv=asking)
        routed = TrajectoryEarlyStoppingCV(inner, criterion="cv")
        routed.fit(X, y, groups=groups)
    np.testing.assert_array_equal(routed.path_, expected)


class Drawn:
    """A splitter that counts how often its splits are drawn."""

    n_draws = 0

    def __init__(self, splitter):
        self.splitter = splitter

    def __deepcopy__(self, memo):  # what clone does of splitters
        return self

    def split(self, X, y=None, groups=None):
        self.n_draws += 1
        return self.splitter.split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return self.splitter.get_n_splits(X, y, groups)


RANDOM_SPLITTERS = [
    KFold(3, shuffle=True),
    ShuffleSplit(2, train_size=0.1),
    ShuffleSplit(2, train_size=0.3, random_state=np.random.RandomState(0)),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("splitter", RANDOM_SPLITTERS, ids=["folds", "split", "state"])
def test_splits_are_drawn_once_for_all_stages(splitter, weighted, data, rng):
    X, y = data
    weights = {"sample_weight": rng.integers(0, 4, 80) / 3} if weighted else {}
    # Folds of so few rows are less stable than all rows are.
    ridge = IterativeRidge(0.0, step_size=0.05, max_iter=60, tol=0, cv=Drawn(splitter))
    clock = count()

    def later_is_better(estimator, X, y):
        return next(clock)

    model = TrajectoryEarlyStoppingCV(ridge, criterion=later_is_better, patience=10)
    model.fit(X, y, **weights)
    assert ridge.cv.n_draws == 1
    assert model.best_iter_ == model.estimator_.n_iter_ == 60
    assert model.estimator_.cv is ridge.cv


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("splitter", RANDOM_SPLITTERS, ids=["folds", "split", "state"])
@pytest.mark.parametrize("criterion", ["cv", "r2"])
def test_splits_are_drawn_once_for_all_candidates(criterion, splitter, n_jobs, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(cv=splitter, step_size=0.05),
        criterion=criterion,
        param_grid={"alpha": [1.0, 1.0, 1.0]},
        n_jobs=n_jobs,
    ).fit(X, y)
    rows = np.array(model.results_["criterion"]) == criterion
    scores = np.array(model.results_["best_score"])[rows]
    assert len(scores) == 3
    assert len(set(scores)) == 1
    assert model.best_params_ == {"alpha": 1.0}
    assert type(model.estimator_.cv) is type(splitter)


def test_candidates_with_splitters_of_their_own(data):
    X, y = data
    splitters = [Drawn(KFold(3, shuffle=True)), Drawn(ShuffleSplit(2)), 4, None]
    grid = [{"cv": splitters, "alpha": [1.0, 2.0]}, {"alpha": [3.0]}]
    inner = IterativeRidge(cv=Drawn(KFold(5, shuffle=True)))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv", param_grid=grid)
    model.fit(X, y)
    for splitter in (*splitters[:2], inner.cv):
        assert splitter.n_draws == 1
    assert len(model.results_["params"]) == 9
    for params, score in zip(model.results_["params"], model.results_["best_score"]):
        if params.get("cv", inner.cv) in (4, None):
            cv = params["cv"] or KFold(5, shuffle=True, random_state=0)
            alone = clone(inner).set_params(alpha=params["alpha"], cv=cv)
            assert score == pytest.approx(alone.fit(X, y).cv_path_.min())


@pytest.mark.parametrize("labels", [["low", "high"], ["a", "b", "c"]])
def test_an_integer_stratifies_classes(labels, data):
    X, _ = data
    y = np.repeat(labels, [60, *[20 // (len(labels) - 1)] * (len(labels) - 1)])
    inner = TrajectoryLogisticRegression(max_iter=10, cv=4)
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y)
    for rows in model.estimator_.cv_indices_:
        assert np.count_nonzero(y[rows] == labels[0]) == 15
    np.testing.assert_array_equal(model.path_, clone(inner).fit(X, y).cv_path_)
    assert model.estimator_.cv == 4


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter_of_every_candidate_and_stage(routing, data):
    X, y = data
    groups = np.arange(80) % 8
    splitter = GroupShuffleSplit(3)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            splitter.set_split_request(groups=True)
        inner = IterativeRidge(tol=0, max_iter=50, cv=splitter)
        inner = inner.set_fit_request(sample_weight=True) if routing else inner
        model = TrajectoryEarlyStoppingCV(
            inner, criterion="cv", patience=10, param_grid={"alpha": [1.0, 1.0]}
        ).fit(X, y, groups=groups, sample_weight=np.ones(80))
    assert len(set(model.results_["best_score"])) == 1
    for rows in model.estimator_.cv_indices_:
        assert set(groups[rows]).isdisjoint(np.delete(groups, rows))


@pytest.mark.parametrize("grid", [None, {"alpha": [0.1, 1.0]}])
def test_bad_data_are_named_before_what_the_splitter_says(grid, data):
    X, y = data
    inner = IterativeRidge(cv=StratifiedKFold(5))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv", param_grid=grid)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="continuous"):
        model.fit(X, y)


# ------------------------------------------------------------------- patience


@pytest.mark.parametrize("criterion", ["risk", "loo", "cv", "r2"])
def test_patience_ends_the_run_early_at_the_same_iterate(criterion, data):
    X, y = data
    inner = IterativeRidge(0.0, max_iter=2000, tol=0, solver="nesterov")
    patient = TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=20)
    patient.fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(X, y)
    n_iter = patient.estimator_.n_iter_
    assert n_iter - patient.best_iter_ >= 20
    assert n_iter < 200
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-6)
    assert patient.best_iter_ == whole.best_iter_
    assert patient.estimator_.max_iter == 2000
    assert not patient.estimator_.warm_start


def test_stages_double(data, monkeypatch):
    X, y = data
    planned = []
    original = IterativeRidge.fit_up_to

    def recording(self, n_updates, *args, **kwargs):
        planned.append(n_updates)
        return original(self, n_updates, *args, **kwargs)

    monkeypatch.setattr(IterativeRidge, "fit_up_to", recording)
    products = count_products(monkeypatch)
    inner = IterativeRidge(0.0, max_iter=100_000, tol=0)
    model = TrajectoryEarlyStoppingCV(inner, criterion="risk", patience=5).fit(X, y)
    assert planned == [5 * 2**k for k in range(len(planned))]
    assert model.estimator_.n_iter_ == planned[-1]
    best = model.best_iter_
    assert planned[-2] < best + 5 <= planned[-1] or len(planned) == 1
    # The updates themselves are made once; a stage reads all residuals anew.
    assert products["columns"] <= 4 * planned[-1] + 10


def count_products(monkeypatch):
    """Columns that X is multiplied with, from here on."""
    counts = {"columns": 0}
    original = MatrixDesign.dot

    def counting(self, coef):
        counts["columns"] += coef.shape[1]
        return original(self, coef)

    monkeypatch.setattr(MatrixDesign, "dot", counting)
    return counts


@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_patience_along_a_path_of_alphas(cls, data, rng):
    X, y = data
    # So much noise that the best comes early on the path, and one of the stages, which
    # double (20, 40, 80, 160), is the last before the path ends.
    y = y + 2 * rng.standard_normal(len(y))
    inner = cls("path", max_iter=20)
    patient = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=20).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=None).fit(X, y)
    n_iter = patient.estimator_.n_iter_
    assert n_iter < whole.estimator_.n_iter_
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-6)
    assert patient.best_params_["alpha"] == pytest.approx(
        patient.estimator_.alpha_path_[patient.best_iter_]
    )


@pytest.mark.parametrize(
    "inner",
    [
        TrajectoryLasso("path", max_iter=20, tol=0),  # of thirty values, five
        TrajectoryLogisticRegression("path", max_iter=50, tol=0),  # of ten, two
    ],
)
def test_a_path_ends_by_itself_where_nothing_improves(inner, data):
    """After a sixth of the values, to the update; what came before is the whole run."""
    X, y = data
    y = y > np.median(y) if is_classifier(inner) else y
    patient = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion="cv", patience=None).fit(X, y)
    assert whole.estimator_.n_iter_ > 450  # values at which nothing moves end early
    n_iter = patient.estimator_.n_iter_
    assert patient.best_iter_ + 100 <= n_iter < 1.25 * (patient.best_iter_ + 100) < 600
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-10)
    assert patient.best_iter_ == whole.best_iter_
    assert patient.estimator_._live is None


# Values at which every update moves something: else rounding says when one ends.
@pytest.mark.parametrize("values", [[0.5, 0.1, 0.02], 0.1])
def test_runs_whose_length_a_user_has_chosen_go_on_to_their_end(values, data):
    inner = TrajectoryLasso(values, max_iter=100, tol=0)
    model = TrajectoryEarlyStoppingCV(inner).fit(*data)
    assert model.estimator_.n_iter_ == clone(inner).fit(*data).n_iter_


def test_patience_longer_than_the_run(data):
    X, y = data
    inner = TrajectoryLasso([0.5, 0.1], max_iter=7, tol=0)
    patient = TrajectoryEarlyStoppingCV(inner, patience=1000).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner).fit(X, y)
    np.testing.assert_array_equal(patient.path_, whole.path_)


def test_patience_with_values_of_alpha_that_converge_at_once(data):
    """A stage that adds no iterate does not end the run."""
    X, y = data
    inner = TrajectoryLasso([1e3] * 20 + [0.1], max_iter=20)
    model = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=25).fit(X, y)
    assert model.best_params_["alpha"] == 0.1


@pytest.mark.parametrize("patience", [None, 5])
@pytest.mark.parametrize("n_weightless", [0, 3])
@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_too_few_rows_to_leave_one_out(cls, n_weightless, patience, data):
    X, y = (values[: 2 + n_weightless] for values in data)
    weights = np.repeat([1.0, 0.0], [2, n_weightless])
    model = TrajectoryEarlyStoppingCV(cls(), criterion="loo", patience=patience)
    with pytest.raises(ValueError, match="at least 3 rows"):
        model.fit(X, y, sample_weight=weights)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_folds_where_nothing_is_set_are_of_rows_that_have_a_weight(cls, data):
    X, y = (values[:7] for values in data)
    weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    model = TrajectoryEarlyStoppingCV(cls(), criterion="cv")
    model.fit(X, y, sample_weight=weights)
    judged = np.concatenate(model.estimator_.cv_indices_)
    np.testing.assert_array_equal(np.sort(judged), np.flatnonzero(weights))
    assert model.estimator_.cv is None


def test_folds_where_nothing_is_set_do_not_follow_the_order_of_rows(data):
    X, y = data
    order = np.argsort(y)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(), criterion="cv")
    model.fit(X[order], y[order])
    means = [y[order][rows].mean() for rows in model.estimator_.cv_indices_]
    assert np.ptp(means) < np.std(y)
    labels = np.sort(y) > np.quantile(y, 0.8)
    model = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(max_iter=5))
    model.fit(X[order], labels)
    shares = [labels[rows].sum() for rows in model.estimator_.cv_indices_]
    assert len(shares) == 5
    assert np.ptp(shares) <= 1


def test_too_few_rows_to_leave_one_out_of_a_kernel_machine(data):
    X, y = (values[:2] for values in data)
    model = TrajectoryEarlyStoppingCV(KernelEigenProRegressor(), criterion="loo")
    with pytest.raises(ValueError, match="at least 3 rows"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"criterion": "roc_auc"}, "roc_auc does not score"),
        ({"criterion": "neg_log_loss"}, "neg_log_loss does not score"),
        ({"criterion": "accuracy"}, "accuracy"),
        ({"criterion": 3}, "criterion"),
        ({"patience": 0}, "patience"),
        ({"estimator": IterativeRidge(loo=False), "criterion": "loo"}, "loo_path_"),
        ({"estimator": IterativeRidge(loo=81), "criterion": "loo"}, "loo=81"),
        ({"estimator": IterativeRidge(cv=81), "criterion": "cv"}, "n_splits=81"),
    ],
)
def test_bad_criteria_are_refused_before_anything_is_run(params, message, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge()).set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
