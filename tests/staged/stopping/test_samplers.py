"""Pipelines with samplers: folds are sampled when they are fitted, and only then."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    RiskPathDisplay,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
    approximate_loo,
)
from tests.runs import InParts

from .cases import classifier

FunctionSampler = pytest.importorskip(
    "imblearn", reason="needs imbalanced-learn, for which the oldest NumPy is too old"
).FunctionSampler
pipeline = pytest.importorskip("imblearn.pipeline")
over = pytest.importorskip("imblearn.over_sampling")
under = pytest.importorskip("imblearn.under_sampling")

N_ROWS = 150
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
SMOTE = over.SMOTE(random_state=0, k_neighbors=2)
FEWER = under.RandomUnderSampler(random_state=0)
MORE = over.RandomOverSampler(random_state=0)
STEPS = {
    "sampler": [SMOTE],
    "sampler, transformer": [FEWER, StandardScaler()],
    "transformer, sampler": [PCA(3, random_state=0), SMOTE],
    "between": [StandardScaler(), MORE, "passthrough", PCA(3, random_state=0)],
    "two samplers": [under.TomekLinks(), StandardScaler(), SMOTE],
}


def trees(**settings):
    settings = {"n_estimators": 8, "max_depth": 2, "random_state": 0, **settings}
    return GradientBoostingClassifier(**settings)


def piped(*steps):
    return pipeline.Pipeline([(f"step{i}", step) for i, step in enumerate(steps)])


@pytest.fixture
def data(rng):
    """Few rows of two of three classes."""
    X = rng.standard_normal((N_ROWS, 4))
    score = X[:, 0] + 0.5 * rng.standard_normal(N_ROWS)
    rare = np.where(X[:, 1] > 0.6, "rare", "some")
    return X, np.where(score > 0.7, rare, "usual")


def transformed(fitted, X):
    """X as the last step sees it: samplers leave new rows as they are."""
    for _, step in fitted.steps[:-1]:
        X = step.transform(X) if hasattr(step, "transform") else X
    return X


def loop(pipe, X, y, splits):
    """Held-out probabilities of every stage, by a fit of the pipeline in each fold."""
    paths = []
    for fitted, held_out in splits:
        grown = clone(pipe).fit(X[fitted], y[fitted])
        rows = transformed(grown, X[held_out])
        paths.append(np.array(list(grown[-1].staged_predict_proba(rows))))
    return paths


def check_is_the_loop(model, pipe, X, y):
    """Losses and predictions of folds, and the model, are those of the loop."""
    splits = list(FOLDS.split(X, y))
    paths = loop(pipe, X, y, splits)
    found = Staged(pipe, cv=FOLDS).fit(X, y).cv_prediction_path_[1:]
    np.testing.assert_array_equal(found, np.concatenate(paths, axis=1))
    for t in range(8):
        losses = [
            log_loss(y[held_out], path[t], labels=np.unique(y), normalize=False)
            for path, (_, held_out) in zip(paths, splits)
        ]
        np.testing.assert_allclose(model.path_[t + 1], sum(losses) / len(y))
    best = model.best_iter_
    name = f"{pipe.steps[-1][0]}__n_estimators"
    assert model.best_params_ == {name: best}
    refit = clone(pipe).set_params(**{name: best}).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), refit.predict_proba(X))
    return refit


# Sampled classes have other shares, so that probabilities are worse than a constant.
@pytest.mark.filterwarnings("ignore:The chosen stage is worse .* Samplers change")
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_folds_are_sampled_as_by_a_loop(steps, data):
    X, y = data
    pipe = piped(*steps, trees())
    model = TrajectoryEarlyStoppingCV(pipe, cv=FOLDS, patience=None).fit(X, y)
    refit = check_is_the_loop(model, pipe, X, y)
    fitted = model.estimator_.estimator_
    assert type(fitted) is pipeline.Pipeline
    np.testing.assert_array_equal(fitted.predict(X), refit.predict(X))
    assert not hasattr(pipe.steps[0][1], "n_features_in_")


def test_losses_are_those_of_rows_that_are_not_sampled(data):
    """Also the training losses, which are compared with those of the folds."""
    X, y = data
    model = Staged(piped(SMOTE, trees()), cv=FOLDS).fit(X, y)
    grown = clone(model.estimator).fit(X, y)
    expected = [log_loss(y, p) for p in grown[-1].staged_predict_proba(X)]
    np.testing.assert_allclose(model.train_path_[1:], expected)
    assert [len(rows) for rows in model.cv_indices_] == [50, 50, 50]
    assert model.cv_prediction_path_.shape == (9, N_ROWS, 3)


def test_frames(data):
    X, y = data
    X = pd.DataFrame(X, columns=list("abcd")).assign(letter=list("xyz") * 50)
    X["letter"] = X["letter"].astype("category")
    last = classifier(categorical_features="from_dtype", max_iter=5)
    pipe = piped(FEWER, last)
    model = Staged(pipe, cv=FOLDS).fit(X, pd.Series(y))
    for number, (fitted, held_out) in enumerate(FOLDS.split(X, y)):
        grown = clone(pipe).fit(X.iloc[fitted], y[fitted])
        expected = grown.predict_proba(X.iloc[held_out])
        found = model.cv_prediction_path_[5][50 * number : 50 * number + 50]
        np.testing.assert_array_equal(found, expected)
    assert model.feature_names_in_.tolist() == X.columns.tolist()


# ------------------------------------------------------------------ weights


def by_hand(samplers, X, y, weights, held_out, n_estimators=8):
    """Probabilities of trees whose weights are passed through samplers by hand."""
    for sampler in samplers:
        X, y = (sampler := clone(sampler)).fit_resample(X, y)
        weights = weights[sampler.sample_indices_]
    grown = trees(n_estimators=n_estimators).fit(X, y, sample_weight=weights)
    return grown.predict_proba(held_out)


@pytest.mark.parametrize("samplers", [[FEWER], [under.TomekLinks(), MORE]], ids=str)
def test_weights_follow_the_rows_that_are_selected(samplers, data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, N_ROWS)
    model = Staged(piped(*samplers, trees()), cv=FOLDS)
    model.fit(X, y, sample_weight=weights)
    splits = list(FOLDS.split(X, y))
    expected = []
    for fitted, held_out in splits:
        part = X[fitted], y[fitted], weights[fitted]
        expected.append(by_hand(samplers, *part, X[held_out]))
    expected = np.concatenate(expected)
    np.testing.assert_array_equal(model.cv_prediction_path_[8], expected)
    rows = np.concatenate([held_out for _, held_out in splits])
    loss = log_loss(y[rows], expected, sample_weight=weights[rows])
    np.testing.assert_allclose(model.cv_path_[8], loss)
    whole = by_hand(samplers, X, y, weights, X)
    np.testing.assert_array_equal(model.predict_proba(X), whole)


@pytest.mark.parametrize("sampler", [SMOTE, FEWER], ids=str)
def test_rows_of_weight_zero_are_not_sampled(sampler, data, rng):
    X, y = data
    splits = list(FOLDS.split(X, y))
    more = np.concatenate([X, 9 * rng.standard_normal((30, 4))])
    labels = np.concatenate([y, rng.choice(y, 30)])
    order = rng.permutation(N_ROWS + 30)
    place = np.argsort(order)
    with_others = []
    for fitted, held_out in splits:
        # Others are fitted to in every fold.
        fitted = np.concatenate([place[fitted], place[N_ROWS:]])
        with_others.append((np.sort(fitted), place[held_out]))
    weights = np.where(order < N_ROWS, 2.0, 0.0)
    model = Staged(piped(sampler, trees()), cv=with_others)
    model.fit(more[order], labels[order], sample_weight=weights)
    own = order[order < N_ROWS]
    place = np.argsort(own)
    alone = [(np.sort(place[f]), place[h]) for f, h in splits]
    expected = Staged(piped(sampler, trees()), cv=alone)
    expected.fit(X[own], y[own], sample_weight=2.0)
    np.testing.assert_allclose(model.cv_path_, expected.cv_path_, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))


class TakesNotes(GradientBoostingClassifier):
    """Trees whose fit is passed a note of every row."""

    noted = []

    def fit(self, X, y, notes=None):
        self.noted.append((X[:, 0], notes))
        return super().fit(X, y)


def test_other_arguments_of_rows_follow_them(data):
    X, y = data
    TakesNotes.noted.clear()
    pipe = piped(MORE, TakesNotes(n_estimators=2))
    Staged(pipe, cv=FOLDS).fit(X, y, step1__notes=X[:, 0].tolist())
    assert len(TakesNotes.noted) == 4
    for column, notes in TakesNotes.noted:
        np.testing.assert_array_equal(column, notes)
    pipe = piped(SMOTE, TakesNotes(n_estimators=2))
    with pytest.raises(ValueError, match="notes has a value for every row, and the"):
        Staged(pipe, cv=FOLDS).fit(X, y, step1__notes=X[:, 0].tolist())


@pytest.mark.parametrize(
    ("settings", "params"),
    [({"class_weight": "balanced"}, {}), ({}, {"sample_weight": np.arange(1, 151)})],
    ids=["class_weight", "sample_weight"],
)
def test_uneven_weights_of_new_rows_are_refused(settings, params, data):
    model = TrajectoryEarlyStoppingCV(piped(SMOTE, trees()), **settings)
    message = "'step0' .SMOTE. creates new rows, .*class_weight, .*RandomUnderSampler"
    with pytest.raises(ValueError, match=message):
        model.fit(*data, **params)
    assert not hasattr(model, "estimator_")


def test_metadata_are_routed_through_samplers(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, N_ROWS)
    plain = Staged(piped(FEWER, StandardScaler(), trees()), cv=FOLDS)
    plain.fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        last = trees().set_fit_request(sample_weight=True)
        routed = Staged(piped(FEWER, scaler, last), cv=FOLDS)
        routed.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.cv_path_, plain.cv_path_)


# ------------------------------------------------------------------ rows and classes


def without_rare(X, y):
    """The rows of a fold without one of the classes."""
    kept = (y != "rare") | (len(y) == N_ROWS)
    return X[kept], y[kept]


def test_a_fold_may_lose_a_class(data):
    X, y = data
    pipe = piped(FunctionSampler(func=without_rare), trees())
    model = Staged(pipe, cv=FOLDS).fit(X, y)
    column = model.classes_.tolist().index("rare")
    assert (model.cv_prediction_path_[1:][:, :, column] == 0).all()
    paths = loop(pipe, X, y, FOLDS.split(X, y))
    found = np.delete(model.cv_prediction_path_[1:], column, axis=2)
    np.testing.assert_array_equal(found, np.concatenate(paths, axis=1))
    assert (model.predict_proba(X)[:, column] > 0).any()


def test_the_model_needs_all_classes(data):
    X, y = data
    usual = FunctionSampler(func=lambda X, y: (X[y != "rare"], y[y != "rare"]))
    model = Staged(piped(usual, trees()), cv=FOLDS)
    with pytest.raises(ValueError, match="no rows of some classes, 'rare': they must"):
        model.fit(X, y)


def near(X, y):
    kept = abs(y - np.median(y)) < 2
    return X[kept], y[kept]


def test_regressors(data, rng):
    X, _ = data
    y = X[:, 0] + rng.standard_t(2, N_ROWS)
    last = GradientBoostingRegressor(n_estimators=6, random_state=0)
    pipe = piped(FunctionSampler(func=near, validate=False), StandardScaler(), last)
    model = TrajectoryEarlyStoppingCV(pipe, cv=GroupKFold(3))
    model.fit(X, y, groups=np.arange(N_ROWS) // 10)
    errors = np.empty((6, N_ROWS))
    for held_out in model.estimator_.cv_indices_:
        fitted = np.setdiff1d(np.arange(N_ROWS), held_out)
        grown = clone(pipe).fit(X[fitted], y[fitted])
        staged = list(grown[-1].staged_predict(transformed(grown, X[held_out])))
        errors[:, held_out] = (np.array(staged) - y[held_out]) ** 2
    np.testing.assert_allclose(model.path_[1:], errors.mean(axis=1))
    assert model.predict_interval(X).shape == (N_ROWS, 2)


def test_errors_of_samplers_have_the_rows_of_each_class(data):
    X, y = data
    n_rare = (y == "rare").sum()
    many = over.SMOTE(k_neighbors=n_rare - 2)  # enough in all rows, not in a fold
    with pytest.raises(ValueError, match="n_neighbors") as found:
        Staged(piped(many, trees()), cv=FOLDS).fit(X, y)
    note, number = found.value.__notes__
    assert number == "The fit to the rows of fold 0 of cv failed."
    assert f"{2 * n_rare // 3} of 'rare', " in note
    assert "SMOTE(k_neighbors=2)" in note


# ------------------------------------------------------------------ their place


def test_a_pipeline_of_scikit_learn_has_no_samplers(data):
    pipe = Pipeline([("smote", SMOTE), ("trees", trees())])
    model = TrajectoryEarlyStoppingCV(pipe)
    with pytest.raises(TypeError, match=r"should be transformers .*SMOTE"):
        model.fit(*data)


def test_last_steps_that_are_not_fitted_in_stages(data):
    pipe = piped(SMOTE, TrajectoryLogisticRegression())
    message = "every fold .'step0'. for one that is, such as boosted trees.*class_weig"
    with pytest.raises(ValueError, match=message):
        TrajectoryEarlyStoppingCV(pipe).fit(*data)


def test_leave_one_out_of_a_model_of_sampled_rows(data):
    pipe = piped(SMOTE, LogisticRegression()).fit(*data)
    with pytest.raises(ValueError, match="sampler 'step0' of the pipeline drew"):
        approximate_loo(pipe, *data)


def test_figures_of_a_pipeline_with_a_sampler(data):
    X, y = data
    last = TrajectoryEarlyStoppingCV(trees(), cv=3)
    pipe = piped(StandardScaler(), FEWER, last).fit(X, y)
    found = RiskPathDisplay.from_estimator(pipe, X_test=X, y_test=y)
    rows = pipe[0].transform(X)
    expected = RiskPathDisplay.from_estimator(pipe[-1], X_test=rows, y_test=y)
    np.testing.assert_array_equal(found.test_path, expected.test_path)


# ------------------------------------------------------------------ parameters


def test_grids_of_samplers(data):
    X, y = data
    pipe = piped(SMOTE, trees())
    grid = {"step0__k_neighbors": [1, 3]}
    model = TrajectoryEarlyStoppingCV(pipe, cv=FOLDS, param_grid=grid, patience=None)
    model.fit(X, y)
    losses = []
    for k in (1, 3):
        one = clone(pipe).set_params(step0__k_neighbors=k)
        alone = TrajectoryEarlyStoppingCV(one, cv=FOLDS, patience=None).fit(X, y)
        losses.append(alone.best_score_)
    np.testing.assert_array_equal(model.results_["best_score"], losses)
    best = (1, 3)[int(np.argmin(losses))]
    assert model.estimator_.estimator_.get_params()["step0__k_neighbors"] == best
    outer = {"estimator__step0__k_neighbors": [1, 3]}
    search = GridSearchCV(TrajectoryEarlyStoppingCV(pipe, cv=FOLDS), outer, cv=2)
    found = search.fit(X, y).best_estimator_
    assert found.estimator.get_params()["step0__k_neighbors"] in (1, 3)


def test_a_run_goes_on_where_it_was(data):
    X, y = data
    pipe = piped(SMOTE, StandardScaler(), trees())
    whole, model = Staged(pipe, cv=FOLDS).fit(X, y), Staged(pipe, cv=FOLDS)
    parts = InParts(model, X, y)
    for n_stages in (2, 5, 8):
        parts.go_on(n_stages)
    np.testing.assert_array_equal(model.cv_path_, whole.cv_path_)
    stopped = model.at_iteration(3)
    assert type(stopped.estimator_) is pipeline.Pipeline
    staged = list(model.staged_predict_proba(X))
    np.testing.assert_array_equal(stopped.predict_proba(X), staged[2])


def test_a_run_has_the_rows_that_it_began_with(data):
    X, y = data
    model = Staged(piped(SMOTE, StandardScaler(), trees()), cv=FOLDS)
    whole, parts = clone(model).fit(X, y), InParts(model, X, y)
    parts.go_on(2)
    model.estimator.set_params(step0__k_neighbors=1)  # other rows: of another run
    parts.go_on(8)
    np.testing.assert_array_equal(model.cv_path_, whole.cv_path_)
    anew = clone(model).fit(X, y)
    assert (anew.cv_path_ != whole.cv_path_).any()
    np.testing.assert_array_equal(model.fit(X, y).cv_path_, anew.cv_path_)


def test_means_and_blends_and_pickles(data):
    X, y = data
    mean = Staged(piped(SMOTE, trees()), cv=FOLDS, keep="mean").fit(X, y)
    fits = [clone(mean.estimator).fit(X, y)]
    for fitted, _ in FOLDS.split(X, y):
        fits.append(clone(mean.estimator).fit(X[fitted], y[fitted]))
    expected = np.mean([each.predict_proba(X) for each in fits], axis=0)
    np.testing.assert_allclose(mean.predict_proba(X), expected)
    members = [("more", piped(SMOTE, trees())), ("fewer", piped(FEWER, trees()))]
    blend = TrajectoryEarlyStoppingCV(members, rule="blend", cv=FOLDS).fit(X, y)
    for model in (mean, blend):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    before = blend.predict_proba(X)
    np.testing.assert_array_equal(blend.drop_record().predict_proba(X), before)


class Doubled(BaseEstimator):
    """A sampler of one's own: the method is all that it needs."""

    def fit_resample(self, X, y):
        return np.concatenate([X, X]), np.concatenate([y, y])


def test_samplers_of_ones_own(data):
    X, y = data
    pipe = piped(Doubled(), trees())
    model = TrajectoryEarlyStoppingCV(pipe, cv=FOLDS, patience=None).fit(X, y)
    check_is_the_loop(model, pipe, X, y)
