"""What the call with nothing set runs, what it leaves out, and what it says of that."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.tables import TableEncoder
from tests.runs import reading

pytestmark = pytest.mark.usefixtures("few_trees")


def raw_diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


# --------------------------------------------------------------------- columns


def test_raw_columns_are_those_of_a_scaler():
    X, y = raw_diabetes()
    model = SelfStoppingRegressor(random_state=0)
    raw = clone(model).fit(X, y)
    scaled = clone(model).fit(StandardScaler().fit_transform(X), y)
    assert raw.best_member_ == scaled.best_member_
    assert raw.best_score_ == pytest.approx(scaled.best_score_, rel=0.02)
    members = dict(zip(raw.results_["member"], raw.results_["best_iter"]))
    lengths = dict(zip(raw.results_["member"], raw.results_["n_iter"]))
    assert all(members[name] < lengths[name] for name in ("lasso", "ridge"))


def targets_and_frames():
    numbers, y = raw_diabetes()
    numbers, y = numbers[:100], y[:100]
    names = y.map(lambda value: "high" if value > 140 else "low")
    yield SelfStoppingRegressor(), numbers, y
    yield SelfStoppingClassifier(), numbers, names
    yield SelfStoppingClassifier(), numbers, names.astype("category")
    yield (
        TrajectoryEarlyStoppingCV(IterativeRidge(), encoder=TableEncoder()),
        numbers,
        y,
    )


@pytest.mark.parametrize(
    ("model", "X", "y"),
    targets_and_frames(),
    ids=["numbers", "names", "category", "one"],
)
def test_the_target_among_the_columns_is_warned_of(model, X, y):
    with pytest.warns(UserWarning, match="'answer' of X equals y, .*drop it from X"):
        clone(model).fit(X.assign(answer=y), y)
    nearly = y.copy()
    nearly.iloc[-1] = y[y != y.iloc[-1]].iloc[0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        clone(model).fit(X.assign(answer=nearly), y)
    assert not any("equals y" in str(warning.message) for warning in said)


def test_the_last_iterate_of_a_run_that_still_improves_is_warned_of(rng):
    X, y = raw_diabetes()
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=20))
    said = "581 of 581 updates, is the last of a run.*standardize=True"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X, y)
    assert model.best_iter_ == len(model.path_) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(estimator__standardize=True).fit(X, y)
        # A run that has settled: its last iterate is its best, and no longer moves.
        X = rng.standard_normal((200, 2))
        settled = IterativeRidge(0.0, max_iter=300, tol=0.0)
        TrajectoryEarlyStoppingCV(settled).fit(X, X[:, 0])


# ---------------------------------------------------------------------- many rows


@pytest.mark.parametrize("n_rows", [40, 1200])
def test_gamma_is_part_of_the_comparison_where_rows_are_few(n_rows, rng):
    X = rng.standard_normal((n_rows, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(n_rows)
    model = TrajectoryEarlyStoppingCV(
        KernelEigenProRegressor(max_iter=20), criterion="cv", random_state=0
    ).fit(X, y)
    gammas = [params.get("gamma") for params in model.results_["params"]]
    factors = 4.0 ** np.arange(-3, 3)
    if n_rows > 1000:
        assert gammas == [None]
        assert len(model.estimator_.gammas_) == len(factors)
        return
    scale = KernelEigenProRegressor(gamma="scale", max_iter=1).fit(X, y).gamma_
    np.testing.assert_allclose(gammas, scale * factors)
    best = int(np.argmin(model.results_["best_score"]))
    assert model.best_params_ == {"gamma": gammas[best]}
    assert model.estimator_.gamma_ == gammas[best]
    # Each is what it would be alone, on the same folds.
    for gamma, score in zip(gammas, model.results_["best_score"]):
        alone = KernelEigenProRegressor(gamma=gamma, max_iter=20)
        alone = TrajectoryEarlyStoppingCV(alone, criterion="cv").fit(X, y)
        assert alone.best_score_ == pytest.approx(score, rel=1e-8)
    # And the bootstrap chooses among all of them.
    one = KernelEigenProRegressor(gamma=gammas[best], max_iter=20)
    one = TrajectoryEarlyStoppingCV(one, criterion="cv", random_state=0).fit(X, y)
    assert model.best_score_ == pytest.approx(one.best_score_)
    assert model.best_score_corrected_ > one.best_score_corrected_


def test_the_worse_values_of_gamma_only_begin(rng):
    """And the one that is left is what it would be alone."""
    X = rng.standard_normal((80, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(80)
    kernel = KernelEigenProRegressor(patience=40, random_state=0)
    model = TrajectoryEarlyStoppingCV(kernel, criterion="cv", random_state=0).fit(X, y)
    lengths = np.array(model.results_["n_iter"])
    assert np.sort(lengths)[:3].max() <= 25
    best = clone(kernel).set_params(**model.best_params_)
    alone = TrajectoryEarlyStoppingCV(best, criterion="cv", random_state=0).fit(X, y)
    np.testing.assert_allclose(alone.path_, model.path_, rtol=1e-9)
    assert model.best_iter_ == alone.best_iter_


def test_what_the_run_that_is_kept_warns_of_is_said(rng):
    """Not what those warn of that only begin."""

    def read(run):
        warnings.warn(f"gamma {run.estimator.gamma}", UserWarning, stacklevel=2)

    X = rng.standard_normal((60, 3))
    kernel = KernelEigenProRegressor(max_iter=60, random_state=0)
    with reading(read), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = TrajectoryEarlyStoppingCV(kernel, cv=3).fit(X, X[:, 0])
    said = [str(each.message) for each in found if "gamma" in str(each.message)]
    assert len(model.results_["params"]) > 1
    assert said == [f"gamma {model.best_params_['gamma']}"]


@pytest.mark.slow
def test_a_nonlinear_member_beyond_the_former_limit():
    X, y = make_friedman1(5400, noise=1.0, random_state=0)
    model = SelfStoppingRegressor(random_state=0).fit(X[:5100], y[:5100])
    assert {"kernel", "boosted trees"} <= set(model.member_paths_)
    assert np.mean((model.predict(X[5100:]) - y[5100:]) ** 2) < 2


def test_what_is_left_out_is_said():
    X, y = make_friedman1(500, noise=0.5, random_state=0)
    model = SelfStoppingRegressor(random_state=0)
    model.fit(pd.DataFrame(X), np.column_stack([y, -y]))
    table = pd.DataFrame(model.results_).set_index("member")
    assert table.loc["lasso", "left_out"] == "y has several targets"
    assert np.isnan(table.loc["lasso", "best_score"])
    assert "lasso" not in model.member_paths_


def test_results_have_the_alpha_of_a_path():
    X, y = raw_diabetes()
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    table = pd.DataFrame(model.results_).set_index("member")
    lasso = table.loc["lasso"]
    alone = TrajectoryLasso("path", max_iter=20, standardize=True).fit(X, y)
    found = lasso["params"]["alpha"]
    assert found == pytest.approx(alone.alpha_path_[int(lasso["best_iter"])])


@pytest.mark.slow
# ------------------------------------------------------------ scikit-learn's machinery


def test_folds_are_stratified_before_the_fit():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(SelfStoppingClassifier(), X, y, cv=3).min() > 0.9
    names = np.array(["a", "b", "c"])[y]
    assert cross_val_score(TrajectoryEarlyStoppingCV(), X, names, cv=3).min() > 0.9
    assert is_classifier(SelfStoppingClassifier())
    assert is_regressor(SelfStoppingRegressor())
    assert not hasattr(SelfStoppingRegressor(), "predict_proba")
    assert hasattr(SelfStoppingClassifier(), "predict_proba")


@pytest.mark.slow
def test_calibration_grids_pipelines_and_pickles():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SelfStoppingClassifier(random_state=0)
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.9
    search = GridSearchCV(model, {"rule": ["min", "one_se"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    loaded = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    X, y = raw_diabetes()
    piped = make_pipeline(StandardScaler(), SelfStoppingRegressor(random_state=0))
    assert piped.fit(X, y).score(X, y) > 0.4


def test_folds_of_ones_own():
    X, y = raw_diabetes()
    X, y = X.to_numpy(), y.to_numpy()
    folds = list(KFold(4, shuffle=True, random_state=1).split(X))
    for cv in (folds, iter(folds), KFold(4, shuffle=True, random_state=1)):
        model = TrajectoryEarlyStoppingCV(IterativeRidge(standardize=True), cv=cv)
        model.fit(X, y)
        assert model.criterion_ == "cv"
        for found, (_, judged) in zip(model.estimator_.cv_indices_, folds):
            np.testing.assert_array_equal(found, judged)
    scored = model.set_params(criterion="r2", cv=3).fit(X, y)
    assert len(scored.estimator_.cv_indices_) == 3
    several = TrajectoryEarlyStoppingCV(
        [("a", IterativeRidge()), ("b", TrajectoryLasso())], cv=3
    ).fit(X, y)
    assert len(several.estimator_.cv_indices_) == 3


# -------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Lasso(), "The 'estimator' of .*: use TrajectoryLasso instead"),
        (make_pipeline(StandardScaler(), Lasso()), "the last step of the pipeline"),
        (Lasso, r"class Lasso: pass an instance, Lasso\(\)"),
    ],
)
def test_estimators_of_others_are_named_with_what_to_take(estimator, message, rng):
    with pytest.raises(ValueError, match=message):
        SelfStoppingRegressor(estimator).fit(np.eye(4), rng.uniform(size=4))


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        (roc_auc_score, "one from make_scorer, .*got <function roc_auc_score"),
        ("no such score", "criterion must be one of 'auto', .* got 'no such score'"),
    ],
)
def test_what_is_no_scorer(criterion, said):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=said):
        SelfStoppingClassifier(criterion=criterion).fit(X, y > 0)


def test_tables_of_coefficients_say_what_they_need_and_are_frames():
    X, y = raw_diabetes()
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.5, standardize=True)).fit(X, y)
    with pytest.raises(ValueError, match=r"keep_data=True.*fit TrajectoryLasso"):
        model.coef_table()
    model.set_params(estimator__keep_data=True).fit(X, y)
    table = model.coef_table(["bmi", "s5"])
    assert isinstance(table, pd.DataFrame)
    assert table["column"].tolist() == ["bmi", "s5"]
    assert (table["lower"] < table["estimate"]).all()


def test_verbose_says_the_held_out_error_and_a_total_that_stays(capsys):
    X, y = raw_diabetes()
    lasso = TrajectoryLasso("path", max_iter=20, standardize=True, verbose=True)
    model = TrajectoryEarlyStoppingCV(lasso, cv=5).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert all(" of 600, " in line for line in lines)
    held_out = [line for line in lines if "cross-validation" in line]
    assert len(held_out) > 1
    assert f"least {model.best_score_:.6g} at {model.best_iter_}" in held_out[-1]


@pytest.mark.parametrize("column", ["text", "date", "category"])
def test_columns_of_no_numbers_are_noted(column, rng):
    values = {
        "text": ["a", "b"] * 20,
        "date": pd.date_range("2024-01-01", periods=40),
        "category": pd.Categorical(["a", "b"] * 20),
    }
    X = pd.DataFrame({"number": rng.standard_normal(40), "other": values[column]})
    model = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(n_estimators=3))
    y = X["number"] ** 2
    with pytest.raises((TypeError, ValueError)) as raised:
        model.fit(X, y)
    assert "encoder=TableEncoder()" in raised.value.__notes__[0]
    model.set_params(encoder=TableEncoder()).fit(X, y)
    # No note where an encoder would not help, or has encoded.
    for other, table in (
        (clone(model).set_params(encoder="auto"), X[["number"]]),
        (SelfStoppingRegressor(), X),
    ):
        with pytest.raises(ValueError, match="NaN") as raised:
            other.fit(table, [np.nan] * 40)
        assert not hasattr(raised.value, "__notes__")
