"""What each estimator takes of a table: right numbers, and honest folds."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    Staged,
    TableEncoder,
    TrajectoryGroupLasso,
    TrajectoryLasso,
)
from skacv._compat import target_encoder
from skacv.model_selection.defaults.views import MOST_ONE_HOT, choose_view
from tests.cases import covering
from tests.tables.frames import CITIES, TABLES

COLUMNS = {"standardize": True}
SEED = {"random_state": 0}
MEMBERS = {
    "lasso": TrajectoryLasso(0.01, loo=False, risk=False, max_iter=30, **COLUMNS),
    "ridge": IterativeRidge(0.1, max_iter=10, **COLUMNS),
    "kernel": KernelEigenProRegressor(max_iter=5, **COLUMNS, **SEED),
    "histograms": Staged(HistGradientBoostingRegressor(max_iter=5, **SEED)),
    "extra trees": Staged(ExtraTreesRegressor(3, **SEED)),
    "boosting": Staged(GradientBoostingRegressor(n_estimators=5, **SEED)),
    "adaboost": Staged(AdaBoostRegressor(n_estimators=3, **SEED)),
    "bagging": Staged(BaggingRegressor(n_estimators=3, **SEED)),
    "network": Staged(MLPRegressor(hidden_layer_sizes=8, max_iter=5, **SEED)),
    "passes": Staged(SGDRegressor(max_iter=5, **SEED)),
    "not in Staged": HistGradientBoostingRegressor(max_iter=5, **SEED),
}


class Encoded:
    """An estimator on its view of a table."""

    def __init__(self, estimator, X):
        self.encoder = TableEncoder().fit(X)
        self.estimator, self.transformer = choose_view(estimator, self.encoder)

    def fit(self, X, y):
        codes = self.encoder.codes(X)
        if self.transformer is not None:
            codes = self.transformer.fit_transform(codes)
        self.estimator.fit(codes, y)
        return self

    def view(self, X):
        codes = self.encoder.codes(X)
        return codes if self.transformer is None else self.transformer.transform(codes)

    def predict(self, X):
        return self.estimator.predict(self.view(X))


@pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@covering(member=MEMBERS, name=TABLES)
def test_every_estimator_takes_every_table(member, name):
    table = TABLES[name]()
    model = Encoded(clone(MEMBERS[member]), table.X).fit(table.X, table.y)
    predicted = model.predict(table.X)
    assert np.isfinite(predicted).all()
    # Rows of single precision are multiplied in it.
    is_single = getattr(table.X, "dtype", None) == np.float32
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if is_single else {"rtol": 0}
    for how, X in table.same.items():
        found = model.predict(X)
        np.testing.assert_allclose(found, predicted, **tolerance, err_msg=how)
    if model.transformer is not None:
        names = [column.name for column in model.encoder.columns_]
        shape = model.view(table.X).shape
        assert len(set(model.transformer.get_feature_names_out(names))) == shape[1]


@pytest.mark.parametrize("member", MEMBERS)
def test_levels_and_missing_values_that_fit_has_not_seen(member):
    table = streets()
    model = Encoded(clone(MEMBERS[member]), table).fit(table, target(table))
    new = table[:4].copy()
    new.loc[0, ["city", "street"]] = "never seen"
    new.loc[1, "street"] = None
    new.loc[2, "age"] = np.nan
    new.loc[3, "size"] = np.nan
    predicted = model.predict(new)
    assert np.isfinite(predicted).all()
    for row in range(4):
        alone = model.predict(new[row : row + 1])
        np.testing.assert_allclose(alone, predicted[row : row + 1], rtol=1e-8)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_frames_that_scikit_learn_is_set_to_return_change_nothing(member):
    X = streets()
    y = target(X)
    expected = Encoded(clone(MEMBERS[member]), X).fit(X, y).predict(X)
    with config_context(transform_output="pandas"):
        found = Encoded(clone(MEMBERS[member]), X).fit(X, y).predict(X)
    np.testing.assert_array_equal(found, expected)


def streets(n_rows=240, n_streets=20, seed=0):
    """A table with a few cities, some unknown, and more streets than bins may be."""
    rng = np.random.default_rng(seed)
    numbers = {"size": rng.standard_normal(n_rows), "age": rng.integers(1, 90, n_rows)}
    city = CITIES[rng.integers(0, 4, n_rows)]
    street = np.resize(np.arange(n_streets), n_rows)
    X = pd.DataFrame(numbers).assign(city=city, street=[f"street {i}" for i in street])
    X.loc[::9, "city"] = None
    X.loc[::7, "size"] = np.nan
    return X.astype({"age": float})


def target(X, seed=1):
    """Numbers that depend on sizes, cities and streets."""
    rng = np.random.default_rng(seed)
    effect = dict(zip(sorted(set(X["street"])), rng.standard_normal(300)))
    signal = X["street"].map(effect) + X["size"].fillna(0) + (X["city"] == "Oslo")
    return signal.to_numpy(float) + 0.3 * rng.standard_normal(len(X))


# ----------------------------------------------- the same by scikit-learn alone


@pytest.fixture
def many_rows(set_limits):
    """Tables count as ones with many rows, of which histograms take categories."""
    set_limits(FEW_ROWS=0)


@pytest.mark.usefixtures("many_rows")
def test_histograms_take_categories_as_those_of_a_frame():
    X = streets()
    y = target(X)
    boosted = HistGradientBoostingRegressor(max_iter=20, **SEED)
    model = Encoded(Staged(boosted), X).fit(X, y)
    categories = X.astype({"city": "category", "street": "category"})
    expected = clone(boosted).set_params(categorical_features="from_dtype")
    expected = expected.fit(categories, y).predict(categories)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)
    numbers = Encoded(Staged(boosted), X[["size", "age"]])
    assert numbers.estimator.estimator.categorical_features == "from_dtype"
    assert numbers.transformer is None


def by_target(estimator, others, names):
    """TargetEncoder for some columns of a frame, after others, before an estimator."""
    parts = ("passthrough", others), (target_encoder(estimator), names)
    return make_pipeline(make_column_transformer(*parts), estimator)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize(("n_streets", "max_bins"), [(40, 255), (20, 15)])
def test_many_levels_become_means(n_streets, max_bins):
    X = streets(n_streets=n_streets)
    y = target(X)
    boosted = HistGradientBoostingRegressor(max_iter=20, max_bins=max_bins, **SEED)
    model = Encoded(Staged(boosted), X).fit(X, y)
    codes = X.assign(city=X["city"].astype("category").cat.codes.replace(-1, np.nan))
    last = clone(boosted).set_params(categorical_features=[2])
    by_hand = by_target(last, ["size", "age", "city"], ["street"])
    expected = by_hand.fit(codes, y).predict(codes)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)


def test_other_trees_take_levels_or_means():
    X = streets()
    y = target(X)
    settings = {"n_estimators": 5, "max_features": None, **SEED}
    for takes_missing, trees in [
        (True, ExtraTreesRegressor(**settings)),
        (False, GradientBoostingRegressor(**settings)),
    ]:
        model = Encoded(Staged(trees), X).fit(X, y)
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        by_hand = make_pipeline(
            ColumnTransformer(
                [
                    ("a", "passthrough" if takes_missing else imputer, ["size", "age"]),
                    ("b", OneHotEncoder(), ["city"]),
                    ("c", target_encoder(trees), ["street"]),
                ]
            ),
            clone(trees),
        ).fit(X, y)
        np.testing.assert_allclose(model.predict(X), by_hand.predict(X), rtol=1e-10)


@pytest.mark.parametrize("has_many", [False, True])
def test_histograms_of_few_rows_take_levels(has_many):
    """Those with many levels have means of y beside them."""
    X = streets()
    y = target(X)
    max_bins = X["street"].nunique() - 1 if has_many else 255
    boosted = HistGradientBoostingRegressor(max_iter=20, max_bins=max_bins, **SEED)
    model = Encoded(Staged(boosted), X).fit(X, y)
    levels = OneHotEncoder(
        min_frequency=3, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    parts = [("passthrough", ["size", "age"]), (levels, ["city", "street"])]
    means = [(target_encoder(boosted), ["street"])] * has_many
    columns = make_column_transformer(*parts, *means)
    by_hand = make_pipeline(columns, clone(boosted)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), by_hand.predict(X), rtol=1e-10)


def one_hot_by_hand(numbers):
    """One-hot columns of a frame, after its numbers by some steps."""
    settings = {"handle_unknown": "infrequent_if_exist", "min_frequency": 13}
    return make_column_transformer(
        (numbers, ["size", "age"]),
        (MissingIndicator(), ["size"]),
        (OneHotEncoder(sparse_output=False, **settings), ["city", "street"]),
    )


@pytest.mark.parametrize("name", ["lasso", "kernel", "network"])
def test_other_estimators_take_one_hot_columns(name):
    """Lasso standardises all of them; for others numbers alone are scaled."""
    X = streets()
    y = target(X)
    encoder = TableEncoder(min_frequency=13).fit(X)
    median = SimpleImputer(strategy="median")
    if name == "lasso":
        columns = one_hot_by_hand(median)
    else:
        columns = one_hot_by_hand(make_pipeline(median, StandardScaler()))
    expected, by_hand = clone(MEMBERS[name]), columns.fit_transform(X)
    model, transformer = choose_view(clone(MEMBERS[name]), encoder)
    view = transformer.fit_transform(encoder.codes(X))
    np.testing.assert_allclose(view, by_hand, rtol=1e-12, atol=1e-12)
    if name == "kernel":
        expected.set_params(standardize=False)
    with warnings.catch_warnings(action="ignore"):
        found = model.fit(view, y).predict(view)
        expected = expected.fit(by_hand, y).predict(by_hand)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_kernels_that_do_not_standardise_get_columns_as_they_are():
    encoder = TableEncoder().fit(streets())
    kernel = KernelEigenProRegressor()
    found, transformer = choose_view(kernel, encoder)
    assert found is kernel
    view = transformer.fit_transform(encoder.codes(streets()))
    np.testing.assert_array_equal(view, encoder.transform(streets()))


# ------------------------------------------------------------------ honest folds


def losses_by_hand(estimator, X, y, folds, loss):
    """Mean losses on the rows of every fold: each fit anew, with its encoding."""
    paths = []
    for fit, held_out in folds.split(X):
        fitted = clone(estimator).fit(X.iloc[fit], y[fit])
        columns = fitted[:-1].transform(X.iloc[held_out])
        last = fitted[-1]
        answers = getattr(last, "staged_predict_proba", last.staged_predict)(columns)
        paths.append([loss(y[held_out], answer) for answer in answers])
    return np.transpose(paths)


def squared(y, predicted):
    return np.mean((y - predicted) ** 2)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("is_of_classes", [False, True])
def test_means_are_fitted_to_the_rows_of_every_fold(is_of_classes):
    X, folds = streets(n_streets=80), KFold(4, shuffle=True, random_state=0)
    X, y = X[["size", "age", "street"]], target(X)
    cls, loss = HistGradientBoostingRegressor, squared
    if is_of_classes:
        y = np.digitize(y, [-0.5, 0.5])
        cls, loss = HistGradientBoostingClassifier, log_loss
    boosted = cls(max_iter=4, min_samples_leaf=5, **SEED)
    model = Encoded(Staged(boosted, cv=folds), X).fit(X, y)
    by_hand = by_target(boosted, ["size", "age"], ["street"])
    expected = losses_by_hand(by_hand, X, y, folds, loss)
    found = model.estimator.cv_fold_path_[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def names_of_no_use(kind, n_rows=320):
    """A column of texts that say nothing of the target, and of almost none twice."""
    rng = np.random.default_rng(0)
    n_names = {"half the rows": n_rows // 2, "a tenth of the rows": n_rows // 10}[kind]
    names = [
        f"name {i}" for i in rng.permutation(np.resize(np.arange(n_names), n_rows))
    ]
    X = pd.DataFrame({"size": rng.standard_normal(n_rows), "name": names})
    return X.assign(id=[f"id {i}" for i in range(n_rows)]), rng.standard_normal(n_rows)


TREES = {
    "histograms": HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=5, **SEED
    ),
    "extra trees": ExtraTreesRegressor(20, min_samples_leaf=3, **SEED),
}


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("kind", ["half the rows", "a tenth of the rows"])
@pytest.mark.parametrize("name", TREES)
def test_scores_on_a_shuffled_target_are_honest(name, kind):
    X, y = names_of_no_use(kind)
    model = Encoded(Staged(TREES[name], cv=5), X).fit(X, y)
    assert model.encoder.dropped_ == {"id": "no text occurs twice"}
    run = model.estimator
    best = run.cv_path_.argmin()
    assert isinstance(run.estimator, Pipeline)
    assert run.cv_path_[best] > np.var(y) - run.cv_se_path_[best]


@pytest.mark.parametrize("name", TREES)
def test_means_of_all_rows_would_not_be(name):
    """What the test above would find, if y were looked at before the folds."""
    X, y = names_of_no_use("half the rows")
    means = X[["size"]].assign(
        name=TargetEncoder(target_type="continuous")
        .fit(X[["name"]], y)
        .transform(X[["name"]])
    )
    run = Staged(clone(TREES[name]), cv=5).fit(means.to_numpy(), y)
    best = run.cv_path_.argmin()
    assert run.cv_path_[best] < np.var(y) - 3 * run.cv_se_path_[best]


# Older versions of scikit-learn have stratified folds inside.
@pytest.mark.filterwarnings("ignore:The least populated class in y")
def test_rare_classes_and_many_levels():
    X = streets(n_streets=60)
    y = np.where(np.arange(len(X)) % 2, "yes", "no").astype(object)
    y[[3, 90, 200]] = "seldom"
    folds = KFold(3, shuffle=True, random_state=0)
    model = Staged(ExtraTreesClassifier(3, **SEED), cv=folds)
    model = Encoded(model, X).fit(X, y)
    assert model.estimator.cv_prediction_path_.shape == (4, len(X), 3)
    np.testing.assert_allclose(
        model.estimator.predict_proba(model.view(X)).sum(axis=1), 1
    )


# ----------------------------------------------- estimators with their own columns


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(StandardScaler(), MLPRegressor()),
            "its last step, MLPRegressor",
        ),
        (
            HistGradientBoostingRegressor(categorical_features=[0]),
            r"categorical_features=\[0\], .* leave categorical_features out",
        ),
        (
            HistGradientBoostingRegressor(monotonic_cst={"size": 1}),
            "monotonic_cst={'size': 1}, which refers to columns of X",
        ),
        (TrajectoryGroupLasso(groups=[0, 0, 1]), r"groups=\[0, 0, 1\]"),
        (KernelEigenProRegressor(kernel="precomputed"), "which has no columns"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_names_columns_of_x_takes_no_codes(estimator, message):
    encoder = TableEncoder().fit(streets())
    is_recorded = hasattr(estimator, "begin")
    for member in [estimator] if is_recorded else [estimator, Staged(estimator)]:
        with pytest.raises(ValueError, match=message):
            choose_view(member, encoder)


def test_others_do_not_name_columns():
    encoder = TableEncoder().fit(streets())
    group_lasso = TrajectoryGroupLasso(groups=2, **COLUMNS)
    assert choose_view(group_lasso, encoder)[0] is group_lasso
    assert MOST_ONE_HOT < 20  # the number of streets
