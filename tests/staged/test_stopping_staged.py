"""What a user of boosted trees does with ``TrajectoryEarlyStoppingCV``."""

import pickle

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVR

from skacv import (
    RiskPathDisplay,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

matplotlib.use("Agg")

SMALL = {"max_iter": 25, "learning_rate": 0.3, "min_samples_leaf": 5, "random_state": 0}


def boosted(**settings):
    return HistGradientBoostingRegressor(**{**SMALL, **settings})


def classifier(**settings):
    return HistGradientBoostingClassifier(**{**SMALL, **settings})


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 3))
    return X, X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.standard_normal(80)


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.where(y > np.median(y), "yes", "no")


def by_hand(estimator, model, X, y, **params):
    """Held-out predictions of every stage in the order of the rows, by clones."""
    splits = [(np.setdiff1d(np.arange(len(y)), f), f) for f in model.cv_indices_]
    found = np.empty((model.n_iter_, len(y)))
    for fitted, judged in splits:
        own = {name: value[fitted] for name, value in params.items()}
        grown = clone(estimator).set_params(
            max_iter=model.n_iter_, early_stopping=False
        )
        grown.fit(X[fitted], y[fitted], **own)
        if hasattr(grown, "predict_proba"):
            staged = (p[:, 1] for p in grown.staged_predict_proba(X[judged]))
        else:
            staged = grown.staged_predict(X[judged])
        found[:, judged] = list(staged)
    return found


# ------------------------------------------------------------------ the plain call


def test_the_best_stage_of_the_model_on_all_rows_is_kept(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    chosen, best = model.estimator_, model.best_iter_
    errors = [mean_squared_error(y, each) for each in by_hand(boosted(), chosen, X, y)]
    assert 1 < best < 25
    assert best == 1 + np.argmin(errors)
    np.testing.assert_allclose(model.path_[1:], errors)
    np.testing.assert_allclose(model.best_score_, min(errors))
    refit = boosted(max_iter=best).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))
    assert chosen.estimator_.max_iter == best
    assert model.best_params_ == {"max_iter": best}
    assert model.best_member_ == "HistGradientBoostingRegressor"
    assert model.criterion_ == "cv"
    assert model.score(X, y) == refit.score(X, y)
    assert len(list(model.staged_predict(X))) == chosen.n_iter_
    assert model.best_score_ < model.best_score_corrected_ < 2 * model.best_score_
    np.testing.assert_array_equal(
        model.at_iteration(3).predict(X), boosted(max_iter=3).fit(X, y).predict(X)
    )


def test_patience_ends_the_run_and_its_folds(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(max_iter=500), patience=10).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(boosted(max_iter=60), patience=None).fit(X, y)
    assert model.best_iter_ == whole.best_iter_
    assert model.best_iter_ + 10 <= model.estimator_.n_iter_ < 60
    np.testing.assert_array_equal(model.path_, whole.path_[: len(model.path_)])
    assert Staged(boosted())._default_patience() == 50
    assert Staged(MLPRegressor())._default_patience() == 10
    assert Staged(RandomForestRegressor())._default_patience() is None


def test_classifiers(labelled):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(classifier()).fit(X, y)
    found = by_hand(classifier(), model.estimator_, X, y)
    np.testing.assert_allclose(
        model.path_[1:], [log_loss(y == "yes", p) for p in found]
    )
    refit = classifier(max_iter=model.best_iter_).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(refit, method)(X)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    assert model.classes_.tolist() == ["no", "yes"]


def test_decisions_without_probabilities(labelled):
    X, y = labelled
    perceptron = SGDClassifier(max_iter=12, random_state=0)
    model = TrajectoryEarlyStoppingCV(perceptron).fit(X, y)
    assert not hasattr(model, "predict_proba")
    labels = np.where(model.decision_function(X) > 0, "yes", "no")
    np.testing.assert_array_equal(model.predict(X), labels)
    assert model.best_params_ == {"max_iter": model.best_iter_}


def test_attributes_of_the_trees(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trees = GradientBoostingRegressor(n_estimators=15, random_state=0)
    model = TrajectoryEarlyStoppingCV(trees).fit(frame, y)
    refit = clone(trees).set_params(n_estimators=model.best_iter_).fit(frame, y)
    np.testing.assert_array_equal(
        model.estimator_.feature_importances_, refit.feature_importances_
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(AttributeError, match="coef_"):
        model.coef_  # noqa: B018


# ------------------------------------------------------------------ grids


def test_a_grid_of_learning_rates(data):
    X, y = data
    rates = [0.05, 0.3]
    model = TrajectoryEarlyStoppingCV(
        boosted(), param_grid={"learning_rate": rates}, cv=KFold(3), patience=12
    ).fit(X, y)
    alone = [
        TrajectoryEarlyStoppingCV(
            boosted(learning_rate=rate), cv=KFold(3), patience=12
        ).fit(X, y)
        for rate in rates
    ]
    best = min(alone, key=lambda each: each.best_score_)
    assert model.best_score_ == best.best_score_
    rate = rates[alone.index(best)]
    assert model.best_params_ == {"learning_rate": rate, "max_iter": best.best_iter_}
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    assert [each["learning_rate"] for each in model.results_["params"]] == rates


def test_in_a_grid_search(data):
    X, y = data
    search = GridSearchCV(
        TrajectoryEarlyStoppingCV(boosted(max_iter=12)),
        {"estimator__learning_rate": [0.1, 0.5]},
        cv=KFold(2),
        error_score="raise",
    ).fit(X, y)
    for number, rate in enumerate([0.1, 0.5]):
        single = TrajectoryEarlyStoppingCV(boosted(max_iter=12, learning_rate=rate))
        scores = cross_val_score(single, X, y, cv=KFold(2))
        assert search.cv_results_["mean_test_score"][number] == scores.mean()
    rate = search.best_params_["estimator__learning_rate"]
    assert search.best_estimator_.estimator_.estimator_.learning_rate == rate


# ------------------------------------------------------------------ pipelines


@pytest.fixture
def table(rng):
    n_rows = 90
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "age": rng.uniform(1, 9, n_rows),
            "kind": rng.choice(["a", "b", "c"], n_rows),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], n_rows)),
        },
        index=rng.permutation(n_rows) + 100,
    )
    X.loc[X.index[::7], "age"] = np.nan
    X.loc[X.index[::11], "grade"] = np.nan
    X.loc[X.index[3], "kind"] = "rare"  # which most folds are not fitted to
    y = X["size"] + 2.0 * (X["kind"] == "b") + 0.2 * rng.standard_normal(n_rows)
    return X, y.rename("price")


def encoded(last):
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    encoder = make_column_transformer(
        (SimpleImputer(strategy="median"), ["size", "age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["kind"]),
        (OrdinalEncoder(encoded_missing_value=-2, **unknown), ["grade"]),
    )
    return make_pipeline(encoder, last)


def test_a_pipeline_with_its_own_imputer_and_encoders(table):
    X, y = table
    pipe = encoded(GradientBoostingRegressor(n_estimators=12, random_state=0))
    model = TrajectoryEarlyStoppingCV(pipe).fit(X, y)
    chosen = model.estimator_
    errors = np.empty((12, len(y)))
    for judged in chosen.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        grown = clone(pipe).fit(X.iloc[fitted], y.iloc[fitted])
        rows = grown[0].transform(X.iloc[judged])
        staged = np.array(list(grown[-1].staged_predict(rows)))
        errors[:, judged] = (staged - y.to_numpy()[judged]) ** 2
    np.testing.assert_allclose(model.path_[1:], errors.mean(axis=1))
    # Medians of all rows, which no fold has seen.
    assert len({median_of(each.before.steps) for each in folds_of(pipe, X, y)}) > 1
    best = 1 + errors.mean(axis=1).argmin()
    assert model.best_params_ == {"gradientboostingregressor__n_estimators": best}
    refit = clone(pipe).set_params(gradientboostingregressor__n_estimators=best)
    np.testing.assert_array_equal(model.predict(X), refit.fit(X, y).predict(X))
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.predict_interval(X).shape == (90, 2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def folds_of(pipe, X, y):
    staged = Staged(pipe, cv=3)
    staged.fit_up_to(1, X, y)
    return staged._live.folds


def median_of(steps):
    return float(steps[0].transformers_[0][1].statistics_[1])


def test_a_grid_reaches_the_steps_of_a_pipeline(table):
    X, y = table
    pipe = encoded(boosted(max_iter=8))
    name = "columntransformer__simpleimputer__strategy"
    model = TrajectoryEarlyStoppingCV(
        pipe, param_grid={name: ["mean", "median"]}, cv=KFold(3)
    ).fit(X, y)
    assert set(model.best_params_) == {name, "histgradientboostingregressor__max_iter"}
    assert len(model.results_["params"]) == 2


def test_as_the_last_step_of_a_pipeline(data):
    X, y = data
    X[::9, 1] = np.nan
    stopping = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(n_estimators=8))
    pipe = make_pipeline(
        SimpleImputer(), stopping.set_params(estimator__random_state=0)
    )
    found = pipe.fit(X, y).predict(X)
    imputed = SimpleImputer().fit_transform(X)
    np.testing.assert_array_equal(
        found, clone(stopping).fit(imputed, y).predict(imputed)
    )


def test_frames_with_categories_and_missing_values(table):
    X, y = table
    X = X.assign(kind=X["kind"].astype("category"))
    trees = boosted(categorical_features="from_dtype", max_iter=10)
    model = TrajectoryEarlyStoppingCV(trees).fit(X, y)
    refit = clone(trees).set_params(max_iter=model.best_iter_).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))
    assert model.path_[model.best_iter_] < 0.5 * model.path_[0]


# ------------------------------------------------------------------ settings of trees


def test_monotone_constraints(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(monotonic_cst=[-1, 0, 0])).fit(X, y)
    grid = np.zeros((50, 3))
    grid[:, 0] = np.linspace(-2, 2, 50)
    assert np.all(np.diff(model.predict(grid)) <= 0)
    free = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    assert np.any(np.diff(free.predict(grid)) > 0)


def test_weights_of_rows(data, rng):
    X, y = data
    weights = rng.uniform(0.1, 2.0, 80)
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y, sample_weight=weights)
    found = by_hand(boosted(), model.estimator_, X, y, sample_weight=weights)
    errors = np.average((found - y) ** 2, axis=1, weights=weights)
    np.testing.assert_allclose(model.path_[1:], errors)
    refit = boosted(max_iter=model.best_iter_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))


def test_balanced_classes(labelled):
    X, y = labelled
    y[:50] = "no"
    trees = classifier(class_weight="balanced")
    model = TrajectoryEarlyStoppingCV(trees).fit(X, y)
    found = by_hand(trees, model.estimator_, X, y)
    ratio = np.mean(y == "no") / np.mean(y == "yes")
    weights = np.where(y == "yes", ratio, 1.0)
    expected = [log_loss(y == "yes", p, sample_weight=weights) for p in found]
    np.testing.assert_allclose(model.path_[1:], expected)


def test_stopping_of_the_trees_themselves_is_switched_off(data):
    X, y = data
    plain = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    with pytest.warns(UserWarning, match="early_stopping=True of HistGradientBoosting"):
        model = TrajectoryEarlyStoppingCV(boosted(early_stopping=True)).fit(X, y)
    np.testing.assert_array_equal(model.path_, plain.path_)
    assert len(model.estimator_.validation_score_) == 0


# ------------------------------------------------------------------ folds


def test_groups(data):
    X, y = data
    groups = np.repeat(np.arange(16), 5)
    for cv in (None, 4, GroupKFold(4)):
        model = TrajectoryEarlyStoppingCV(boosted(max_iter=6), cv=cv)
        model.fit(X, y, groups=groups)
        for judged in model.estimator_.cv_indices_:
            assert not set(groups[judged]) & set(
                groups[np.setdiff1d(range(80), judged)]
            )


def test_time_series(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(), cv=TimeSeriesSplit(3)).fit(X, y)
    errors = []
    for fitted, judged in TimeSeriesSplit(3).split(X):
        grown = boosted().fit(X[fitted], y[fitted])
        staged = np.array(list(grown.staged_predict(X[judged])))
        errors.append(((staged - y[judged]) ** 2).mean(axis=1))
    np.testing.assert_allclose(model.path_[1:], np.mean(errors, axis=0))


def test_leave_one_out_is_refused_in_a_sentence(data):
    with pytest.raises(
        ValueError, match="'loo' needs loo_path_, which Staged does not"
    ):
        TrajectoryEarlyStoppingCV(boosted(), criterion="loo").fit(*data)
    with pytest.raises(ValueError, match="'risk' needs risk_path_, which Staged does"):
        TrajectoryEarlyStoppingCV(boosted(), criterion="risk").fit(*data)


# ------------------------------------------------------------------ criteria


def halves(estimator, X, y):
    """A scorer that is a callable."""
    return -np.abs(estimator.predict(X) - y)[: len(y) // 2].mean()


def test_scorers_of_numbers(data):
    X, y = data
    for criterion in ("neg_mean_absolute_error", halves):
        model = TrajectoryEarlyStoppingCV(boosted(), criterion=criterion).fit(X, y)
        rows = np.concatenate(model.estimator_.cv_indices_)
        found = by_hand(boosted(), model.estimator_, X, y)[:, rows]
        n_scored = 40 if criterion is halves else 80
        expected = [
            -mean_absolute_error(y[rows][:n_scored], each[:n_scored]) for each in found
        ]
        np.testing.assert_allclose(model.path_[1:], expected)
        assert model.best_iter_ == 1 + np.argmax(expected)
        assert np.isnan(model.best_score_corrected_)


@pytest.mark.parametrize("criterion", ["roc_auc", "accuracy"])
def test_scorers_of_classes(criterion, labelled):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(classifier(), criterion=criterion).fit(X, y)
    found = by_hand(classifier(), model.estimator_, X, y)
    metric = {
        "roc_auc": lambda p: roc_auc_score(y == "yes", p),
        "accuracy": lambda p: accuracy_score(y == "yes", p > 0.5),
    }[criterion]
    np.testing.assert_allclose(model.path_[1:], [metric(p) for p in found])
    assert 0.5 < model.best_score_ <= 1


def test_a_scorer_that_does_not_fit_is_named_before_the_run(labelled):
    X, y = labelled
    trees = GradientBoostingClassifier(n_estimators=5)
    model = TrajectoryEarlyStoppingCV(trees, criterion="r2")
    with pytest.raises(ValueError, match="criterion=r2 does not score"):
        model.fit(X, y)
    X[0, 0] = np.nan  # and what is wrong with the data comes first
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_standard_error(data):
    X, y = data
    best = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    model = TrajectoryEarlyStoppingCV(boosted(), rule="one_se").fit(X, y)
    limit = best.best_score_ + best.best_score_se_
    earliest = 1 + np.flatnonzero(best.path_[1:] <= limit)[0]
    assert model.best_iter_ == earliest < best.best_iter_


# ------------------------------------------------------------------ beside others


def test_beside_linear_models(data):
    X, y = data
    members = [
        ("trees", boosted(max_iter=25)),
        ("network", MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0)),
        ("lasso", TrajectoryLasso("path", max_iter=3)),
    ]
    model = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, y)
    assert set(model.member_paths_) == {"trees", "network", "lasso"}
    assert model.results_["criterion"] == ["cv"] * 3
    least = {name: path[1:].min() for name, path in model.member_paths_.items()}
    assert model.best_score_ == min(least.values())
    assert least["trees"] < least["lasso"]  # which cannot see a kink
    assert np.isfinite(model.best_score_corrected_)
    assert (
        model.set_params(trees__learning_rate=0.2).estimator[0][1].learning_rate == 0.2
    )


def test_probabilities_are_compared_with_those_of_logistic_regression(labelled):
    X, y = labelled
    members = [
        ("trees", classifier(max_iter=25)),
        ("logistic", TrajectoryLogisticRegression(max_iter=20)),
    ]
    model = TrajectoryEarlyStoppingCV(members, random_state=0, cv=4).fit(X, y)
    # By the same loss of a row, not by accuracies of what was chosen.
    assert model.results_["score"] == model.results_["best_score"]
    assert model.best_score_ == min(model.results_["best_score"])
    assert np.isfinite(model.best_score_corrected_)
    three = y.copy()
    three[::3] = "perhaps"
    model.fit(X, three)
    assert model.results_["score"] == model.results_["best_score"]


# ------------------------------------------------------------------ how it runs


def test_threads_change_nothing(data):
    X, y = data
    plain = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    with joblib.parallel_backend("threading"):
        threads = TrajectoryEarlyStoppingCV(boosted(), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.path_, plain.path_)
    np.testing.assert_array_equal(threads.predict(X), plain.predict(X))


def test_lines_of_a_verbose_estimator(data, capsys):
    X, y = data
    trees = boosted(verbose=1, max_iter=20)
    TrajectoryEarlyStoppingCV(trees, patience=None).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert all(line.startswith("[Staged] after ") for line in lines)
    assert "20 of 20, cross-validation" in lines[-1]


@pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)
def test_callbacks(data, capsys):
    from sklearn.callback import ProgressBar

    X, y = data
    model = TrajectoryEarlyStoppingCV(
        boosted(max_iter=9), param_grid={"learning_rate": [0.1, 0.3]}, patience=9
    )
    watched = clone(model).set_callbacks(ProgressBar()).fit(X, y)
    assert "Staged" in capsys.readouterr().out
    np.testing.assert_array_equal(watched.path_, model.fit(X, y).path_)


def test_metadata_are_routed(data, rng):
    X, y = data
    weights, groups = rng.uniform(0.5, 2, 80), np.repeat(np.arange(16), 5)
    plain = TrajectoryEarlyStoppingCV(boosted(max_iter=8), cv=GroupKFold(4))
    plain.fit(X, y, sample_weight=weights, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = boosted(max_iter=8).set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(inner, cv=GroupKFold(4))
        model.fit(X, y, sample_weight=weights, groups=groups)
        score = model.score(X, y, sample_weight=weights)
        scores = cross_val_score(
            model,
            X,
            y,
            cv=GroupKFold(2),
            params={"sample_weight": weights, "groups": groups},
            error_score="raise",
        )
        silent = TrajectoryEarlyStoppingCV(boosted(max_iter=8))
        with pytest.raises(ValueError, match="sample_weight"):
            silent.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.path_, plain.path_)
    assert score == plain.score(X, y, sample_weight=weights)
    assert len(scores) == 2


def test_pickles(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        again.at_iteration(2).predict(X), model.at_iteration(2).predict(X)
    )


def test_intervals(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(), cv=KFold(4)).fit(X, y)
    residuals = y - by_hand(boosted(), model.estimator_, X, y)[model.best_iter_ - 1]
    found = model.predict_interval(X, coverage=0.8)
    centre, width = model.predict(X), np.diff(found, axis=1)[:, 0] / 2
    np.testing.assert_allclose(found.mean(axis=1), centre)
    assert np.any(np.isclose(width[0], np.abs(residuals)))
    assert np.mean(np.abs(residuals) <= width[0] * (1 + 1e-12)) >= 0.8


def test_display(data):
    from matplotlib import pyplot

    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    display = RiskPathDisplay.from_estimator(model)
    curves = [np.asarray(line.get_ydata(), dtype=float) for line in display.ax_.lines]
    shown = [line for line in curves if len(line) == len(model.path_)]
    for path in (model.path_, model.estimator_.train_path_):
        assert any(np.array_equal(line, path) for line in shown)
    held_out = RiskPathDisplay.from_estimator(model, X, y)  # here the same rows
    np.testing.assert_allclose(held_out.test_path, model.estimator_.train_path_[1:])
    pyplot.close("all")


# ------------------------------------------------------------------ what is refused


def test_what_cannot_go_on_is_refused_in_a_sentence(data):
    for estimator, said in [
        (SVR(), "take KernelEigenProRegressor instead"),
        (make_pipeline(StandardScaler(), SVR()), "is a pipeline, whose last step"),
    ]:
        with pytest.raises(ValueError, match=said):
            TrajectoryEarlyStoppingCV(estimator).fit(*data)


def test_a_run_that_still_improves_is_warned_of(data):
    X, y = data
    slow = boosted(learning_rate=0.01)
    with pytest.warns(ConvergenceWarning, match="still improving"):
        TrajectoryEarlyStoppingCV(slow).fit(X, y)


def test_wrong_data_leave_it_unfitted(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(n_estimators=5))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
