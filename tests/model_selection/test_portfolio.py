"""Several estimators side by side: chosen as by hand, from one set of folds."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.preprocessing import scale
from sklearn.utils import get_tags

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)
from skacv.model_selection import comparison, tables
from skacv.model_selection.portfolios import MOST_DECOMPOSED, PORTFOLIOS, task_of
from skacv.model_selection.tables import Table, that_take

from .test_early_stopping import Drawn, NestedLeastSquares, count_products

pytestmark = pytest.mark.usefixtures("few_trees")

# Those that are taken where nothing is set.
FOLDS = KFold(5, shuffle=True, random_state=0)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 40))
    return X, X[:, :3].sum(axis=1) + rng.standard_normal(80)


def members():
    return [
        ("lasso", TrajectoryLasso("path", max_iter=10)),
        ("net", TrajectoryElasticNet(0.1, max_iter=50)),
        ("ridge", IterativeRidge(0.0, max_iter=60)),
    ]


# ------------------------------------------------------------ chosen as by hand


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_iterate_of_all_members(weighted, data, rng):
    X, y = data
    weights = {"sample_weight": rng.uniform(0.5, 2, 80)} if weighted else {}
    model = TrajectoryEarlyStoppingCV(members(), patience=None).fit(X, y, **weights)
    alone = {
        name: clone(member).set_params(risk=False, loo=False, cv=FOLDS)
        for name, member in members()
    }
    paths = {name: each.fit(X, y, **weights).cv_path_ for name, each in alone.items()}
    best = min(paths, key=lambda name: paths[name].min())
    assert model.criterion_ == "cv"
    assert model.best_member_ == best
    assert model.best_iter_ == paths[best].argmin()
    assert model.best_score_ == paths[best].min()
    np.testing.assert_array_equal(model.path_, paths[best])
    assert list(model.member_paths_) == list(paths)
    for name, path in paths.items():
        np.testing.assert_array_equal(model.member_paths_[name], path)
    chosen = alone[best].at_iteration(model.best_iter_)
    np.testing.assert_array_equal(model.predict(X), chosen.predict(X))
    table = pd.DataFrame(model.results_)
    assert list(table["member"]) == list(paths)
    assert list(table["best_score"]) == [path.min() for path in paths.values()]
    assert list(table["best_iter"]) == [path.argmin() for path in paths.values()]


def test_the_params_of_the_chosen_member(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[:1]).fit(X, y)
    alphas = model.estimator_.alpha_path_
    assert model.best_member_ == "lasso"
    assert model.best_params_ == {"alpha": alphas[model.best_iter_]}


def test_a_single_estimator_goes_by_the_name_of_its_class(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X, y)
    assert model.best_member_ == "IterativeRidge"
    assert set(model.results_["member"]) == {"IterativeRidge"}
    np.testing.assert_array_equal(model.member_paths_["IterativeRidge"], model.path_)


@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize("criterion", ["neg_mean_absolute_error", "r2"])
def test_scorers_judge_all_members_on_the_folds(criterion, rule, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members(), criterion=criterion, rule=rule)
    model.fit(X, y)
    values = []
    for name, member in members():
        alone = TrajectoryEarlyStoppingCV(
            clone(member).set_params(cv=FOLDS), criterion=criterion, rule=rule
        ).fit(X, y)
        np.testing.assert_array_equal(model.member_paths_[name], alone.path_)
        values.append(alone.best_score_)
    assert model.best_score_ == max(values)


@pytest.mark.parametrize("criterion", ["cv", "loo"])
def test_members_are_compared_on_the_rows_that_all_have_held_out(criterion, rng):
    """The rows of a preconditioner's subsample are judged by nobody."""
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = KernelEigenProRegressor(gamma="scale", n_components=2, random_state=3)
    ridge = IterativeRidge(0.0, max_iter=40)
    model = TrajectoryEarlyStoppingCV(
        [("ridge", ridge), ("kernel", kernel)], criterion=criterion
    ).fit(X, y)
    switches = {"cv": FOLDS, "loo": False} if criterion == "cv" else {"loo": True}
    alone = {
        "ridge": clone(ridge).set_params(risk=False, **switches).fit(X, y),
        "kernel": clone(kernel).set_params(**switches).fit(X, y),
    }
    seen = alone["kernel"].subsample_indices_
    assert len(seen)
    for name, each in alone.items():
        rows = np.hstack(getattr(each, f"{criterion}_indices_"))
        kept = ~np.isin(rows, seen)
        assert kept.sum() == 150 - len(seen)
        found = getattr(each, f"{criterion}_prediction_path_")[:, kept]
        path = np.mean((found - y[rows[kept]]) ** 2, axis=1)
        np.testing.assert_allclose(model.member_paths_[name], path)
    if criterion == "loo":
        costs = (found[model.best_iter_] - y[rows[kept]]) ** 2
        error = np.std(costs, ddof=1) / np.sqrt(len(costs))
    else:
        folds = np.repeat(range(5), [len(each) for each in alone["kernel"].cv_indices_])
        costs = (found[model.best_iter_] - y[rows]) ** 2
        own = [costs[folds == k].mean() for k in range(5)]
        share = np.bincount(folds) / len(folds)
        mean = share @ own
        error = np.sqrt(np.sum((share * (own - mean)) ** 2) * 5 / 4)
    assert model.best_member_ == "kernel"
    assert model.best_score_se_ == pytest.approx(error)


def test_rows_in_common_are_found_however_many_there_are(monkeypatch, rng):
    """Costs of many rows are not drawn from again and again, but still averaged."""
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = KernelEigenProRegressor(gamma="scale", n_components=2, random_state=3)
    members = [("ridge", IterativeRidge(0.0, max_iter=40)), ("kernel", kernel)]
    few = TrajectoryEarlyStoppingCV(members, criterion="cv", random_state=0).fit(X, y)
    assert np.isfinite(few.best_score_corrected_)
    monkeypatch.setattr(comparison, "MOST_LOSSES", 150)
    many = TrajectoryEarlyStoppingCV(members, criterion="cv", random_state=0).fit(X, y)
    assert np.isnan(many.best_score_corrected_)
    assert many.best_score_ == few.best_score_
    assert many.best_member_ == "kernel"


def test_all_combinations_of_a_kernel_have_one_subsample(rng):
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    model = TrajectoryEarlyStoppingCV(
        [("ridge", IterativeRidge(0.0)), ("kernel", KernelEigenProRegressor())],
        param_grid={"kernel__gamma": [0.1] * 3},
    ).fit(X, y)
    own = np.array(model.results_["member"]) == "kernel"
    assert len(set(np.array(model.results_["best_score"])[own])) == 1
    assert own.sum() == 3


class WithoutLosses(IterativeRidge):
    """It does not say the losses of single rows."""

    def _held_out_costs(self, name, y):
        return None


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_members_that_do_not_say_the_losses_of_rows(rule, data):
    X, y = data
    members = [
        (f"seed {seed}", WithoutLosses(0.0, max_iter=5, loo=20, random_state=seed))
        for seed in (0, 2)
    ]
    model = TrajectoryEarlyStoppingCV(members, criterion="loo", rule=rule)
    with pytest.raises(ValueError, match=r"held out different rows.*WithoutLosses"):
        model.fit(X, y)
    model.set_params(criterion="cv").fit(X, y)
    assert np.isfinite(model.best_score_)
    assert np.isnan(model.best_score_corrected_)


def test_scorers_of_several_members_take_folds(data):
    X, y = data
    members = [("one", IterativeRidge(0.0)), ("path", IterativeRidge("path"))]
    model = TrajectoryEarlyStoppingCV(members, criterion="r2").fit(X, y)
    assert hasattr(model.estimator_, "cv_path_")
    assert not hasattr(model.estimator_, "loo_path_")


def test_scorers_take_folds_of_whole_groups(data):
    X, y = data
    groups = np.arange(len(y)) % 8
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="r2")
    model.fit(X, y, groups=groups)
    held_out = [set(groups[rows]) for rows in model.estimator_.cv_indices_]
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == 8


def test_no_row_that_all_have_held_out(data):
    X, y = data
    first, last = (IterativeRidge(0.0, loo=2, random_state=seed) for seed in (0, 2))
    model = TrajectoryEarlyStoppingCV([("a", first), ("b", last)], criterion="loo")
    with pytest.raises(ValueError, match="No row has been held out by all members"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


# ------------------------------------------------------------------ their folds


@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_splits_are_drawn_once_for_all_members(n_jobs, owner, data):
    X, y = data
    pairs = [("a", IterativeRidge(1.0)), ("b", IterativeRidge(1.0))]
    splitter = Drawn(KFold(4, shuffle=True))
    pairs[owner][1].set_params(cv=splitter)
    model = TrajectoryEarlyStoppingCV(pairs, n_jobs=n_jobs).fit(X, y)
    assert splitter.n_draws == 1  # before anything is run in parallel
    np.testing.assert_array_equal(model.member_paths_["a"], model.member_paths_["b"])
    assert type(model.estimator_.cv) is Drawn
    assert len(model.estimator_.cv_indices_) == 4


def test_members_with_folds_of_their_own_are_refused(data):
    X, y = data
    pairs = [("a", IterativeRidge(cv=KFold(4))), ("b", IterativeRidge(cv=KFold(4)))]
    TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    pairs[0][1].set_params(cv=3)
    with pytest.raises(ValueError, match="judged by the same folds: give cv to one"):
        TrajectoryEarlyStoppingCV(pairs).fit(X, y)


def test_a_portfolio_costs_the_sum_of_its_members(data, monkeypatch):
    X, y = data
    counts, costs = count_products(monkeypatch), []
    for _, member in members():
        before = counts["columns"]
        member.set_params(cv=FOLDS)
        TrajectoryEarlyStoppingCV(member, criterion="cv").fit(X, y)
        costs.append(counts["columns"] - before)
    before = counts["columns"]
    TrajectoryEarlyStoppingCV(members()).fit(X, y)
    assert min(costs) > 0
    assert counts["columns"] - before == sum(costs)


def test_every_member_is_fitted_once(data, monkeypatch):
    X, y = data
    fits = []
    for cls in (TrajectoryLasso, TrajectoryElasticNet, IterativeRidge):
        original = cls.fit

        def fit(self, *args, original=original, **kwargs):
            fits.append(type(self).__name__)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(cls, "fit", fit)
    grid = {"net__l1_ratio": [0.5, 0.9]}
    TrajectoryEarlyStoppingCV(members(), param_grid=grid, patience=None).fit(X, y)
    assert fits == [
        "TrajectoryLasso",
        "TrajectoryElasticNet",
        "TrajectoryElasticNet",
        "IterativeRidge",
    ]


# ------------------------------------------------------------- their parameters


def test_parameters_of_members(data):
    model = TrajectoryEarlyStoppingCV(members())
    assert model.get_params()["net__alpha"] == 0.1
    assert "net__alpha" not in model.get_params(deep=False)
    model.set_params(net__alpha=0.3, ridge=IterativeRidge(7.0), rule="one_se")
    assert model.estimator[1][1].alpha == 0.3
    assert dict(model.estimator)["ridge"].alpha == model.get_params()["ridge__alpha"]
    assert model.rule == "one_se"
    copied = clone(model)
    assert copied.get_params()["net__alpha"] == 0.3
    assert copied.estimator[1][1] is not model.estimator[1][1]
    search = GridSearchCV(
        model, {"net__alpha": [0.1, 1.0], "lasso": [IterativeRidge()]}
    )
    assert search.fit(*data).best_params_["net__alpha"] in (0.1, 1.0)


def test_a_grid_changes_the_member_it_names(data):
    X, y = data
    grid = [
        {"lasso__max_iter": [5, 10], "lasso__solver": ["ista"]},
        {"net__alpha": [0.1, 0.2], "lasso__max_iter": [20]},
    ]
    model = TrajectoryEarlyStoppingCV(members(), param_grid=grid).fit(X, y)
    ran = list(zip(model.results_["member"], model.results_["params"]))
    alphas = [params.pop("alpha") for name, params in ran if name == "lasso"]
    assert all(alpha > 0 for alpha in alphas)
    assert ran == [
        ("lasso", {"max_iter": 5, "solver": "ista"}),
        ("lasso", {"max_iter": 10, "solver": "ista"}),
        ("lasso", {"max_iter": 20}),
        ("net", {"alpha": 0.1}),
        ("net", {"alpha": 0.2}),
        ("ridge", {}),
    ]
    scores = np.array(model.results_["best_score"])
    assert ran[scores.argmin()][0] == model.best_member_
    own = scores[[name == "lasso" for name, _ in ran]]
    assert model.member_paths_["lasso"].min() == own.min()


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        ([], None, "pairs of a name"),
        ([IterativeRidge()], None, "pairs of a name"),
        ([(1, IterativeRidge())], None, "pairs of a name"),
        ([("a", IterativeRidge()), ("a", TrajectoryLasso())], None, "not unique"),
        ([("a__b", IterativeRidge())], None, "must not contain __"),
        ([("rule", IterativeRidge())], None, "conflict with constructor"),
        ([("a", Lasso())], None, "Lasso has no at_iteration"),
        (
            [("a", IterativeRidge()), ("b", TrajectoryLogisticRegression())],
            None,
            "'a' is a regressor, 'b' is a classifier",
        ),
        ([("a", IterativeRidge())], {"alpha": [1.0]}, "one of 'a'"),
        ([("a", IterativeRidge())], {"b__alpha": [1.0]}, "one of 'a'"),
        ([("a", IterativeRidge())], {"a__gamma": [1.0]}, "Invalid parameter 'gamma'"),
        ([("a", IterativeRidge(alpha=-1.0))], None, "'alpha'"),
    ],
)
def test_bad_members_are_refused(estimator, grid, message, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(estimator, param_grid=grid)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises((NotFittedError, ValueError)):
        model.predict(X)
    assert not [name for name in vars(model) if name.endswith("_")]


# ------------------------------------------------------------------ their losses


@pytest.mark.parametrize(
    ("other", "loss"),
    [
        (TrajectoryHuberRegressor(), "'b' by Huber loss.*criterion='r2'"),
        (NestedLeastSquares(), "'b' by a loss of its own"),
    ],
)
def test_members_of_different_losses_have_no_path_in_common(other, loss, data):
    pairs = [("a", IterativeRidge(loo=True)), ("b", other)]
    model = TrajectoryEarlyStoppingCV(pairs, criterion="loo")
    with pytest.raises(ValueError, match=f"'a' by squared error, {loss}"):
        model.fit(*data)


def classifiers():
    return [
        ("svm", TrajectoryLinearSVC(max_iter=30)),
        ("logistic", TrajectoryLogisticRegression(max_iter=30)),
    ]


def test_members_of_different_losses_are_compared_by_accuracy():
    """Each at its own best iterate; the first of equals."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    model = TrajectoryEarlyStoppingCV(classifiers()).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy = {}
    for name, member in classifiers():
        alone = clone(member).set_params(cv=folds, loo=False).fit(X, y)
        t = alone.cv_path_.argmin()
        rows = np.concatenate(alone.cv_indices_)
        chosen = alone.classes_[(alone.cv_prediction_path_[t] > 0).astype(int)]
        accuracy[name] = np.mean(chosen == y[rows])
        np.testing.assert_allclose(model.member_paths_[name], alone.cv_path_)
    found = dict(zip(model.results_["member"], model.results_["score"]))
    assert found == pytest.approx(accuracy)
    assert model.best_member_ == max(accuracy, key=accuracy.get)
    assert model.criterion_ == "cv"
    assert model.best_score_ == model.path_.min()
    assert np.isfinite(model.best_score_corrected_)


def test_numbers_are_compared_by_r2_where_losses_differ(data):
    X, y = data
    pairs = [("a", TrajectoryHuberRegressor(1.0)), ("b", TrajectoryHuberRegressor())]
    alike = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert alike.results_["score"] == alike.results_["best_score"]
    pairs[1][1].set_params(epsilon=2.0)
    model = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    scores = dict(zip(model.results_["member"], model.results_["score"]))
    own = clone(pairs[1][1]).set_params(cv=FOLDS, loo=False).fit(X, y)
    rows = np.concatenate(own.cv_indices_)
    predicted = own.cv_prediction_path_[own.cv_path_.argmin()]
    assert scores["b"] == pytest.approx(r2_score(y[rows], predicted))
    assert model.best_member_ == max(scores, key=scores.get)


def test_classifiers_of_different_losses_by_one_criterion():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    pairs = classifiers()
    for criterion in ("cv", "loo"):
        model = TrajectoryEarlyStoppingCV(pairs, criterion=criterion)
        with pytest.raises(ValueError, match="such as criterion='accuracy'"):
            model.fit(X, y)
    model.set_params(criterion="accuracy").fit(X, y)
    assert is_classifier(model)
    assert model.best_score_ == max(model.results_["best_score"])
    assert not hasattr(TrajectoryEarlyStoppingCV(pairs), "predict_proba")
    assert hasattr(model, "predict_proba") == (model.best_member_ == "logistic")


# ------------------------------------------------------------ the default portfolio


def test_the_default_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    model = SelfStoppingRegressor(random_state=0)
    assert is_regressor(model)
    model.fit(X, y)
    assert is_regressor(model)
    assert model.task_ == "regression"
    names = [name for name, _ in PORTFOLIOS["regression"]()]
    assert names == list(model.member_paths_)
    assert set(names) == set(model.results_["member"])
    # A blend of the best iterates is no worse on the rows that have weighed them.
    assert model.best_score_ <= min(path.min() for path in model.member_paths_.values())
    assert sum(model.weights_.values()) == pytest.approx(1)


@pytest.mark.parametrize("task", ["auto", "classification"])
def test_the_default_for_classes(task):
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    model = TrajectoryEarlyStoppingCV(task=task, random_state=0)
    # Before it is known, so that cross-validation splits by classes where there are.
    assert is_classifier(model)
    model.fit(X, y)
    assert is_classifier(model)
    assert model.task_ == "classification"
    assert model.score(X, y) > 0.9
    assert list(model.classes_) == ["a", "b", "c"]
    assert log_loss(y, model.predict_proba(X)) < 0.3
    with sklearn.config_context(enable_metadata_routing=True):
        assert model.fit(X, y).score(X, y) > 0.9


def kernels_of(model):
    return [name for name in model.member_paths_ if name == "kernel"]


def test_members_that_cannot_take_the_data_are_left_out(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(random_state=0)
    assert kernels_of(model.fit(X, y))
    # Forests of scikit-learn 1.6 take sparse X without saying so.
    trees = get_tags(ExtraTreesRegressor()).input_tags.sparse * ["extra trees"]
    model.fit(sparse.csr_matrix(X), y)
    assert set(model.member_paths_) == {"lasso", "ridge", *trees}
    assert set(model.fit(X, np.column_stack([y, -y])).member_paths_) == {
        "ridge",
        "kernel",
        "extra trees",
    }
    assert model.predict(X).shape == (80, 2)
    model.set_params(criterion="risk").fit(X, y)
    assert set(model.member_paths_) == {"lasso"}


@pytest.mark.parametrize(
    ("name", "most", "side"),
    [
        ("kernel", tables.MOST_KERNEL_ROWS, "n_rows"),
        ("extra trees", tables.MOST_FOREST_ROWS, "n_rows"),
    ],
)
def test_members_that_would_take_long_are_left_out(name, most, side):
    for size, there in ((most, 1), (most + 1, 0)):
        table = Table(**{"n_rows": 50, "n_columns": 2, "n_targets": 1, side: size})
        kept, why = that_take(PORTFOLIOS["regression"](), table)
        names = [kept_name for kept_name, _ in kept]
        assert names.count(name) == there
        assert (str(most) in why.get(name, "")) == (not there)


def test_a_dense_linear_member_is_exact_where_that_is_cheap():
    for n_columns, name in ((MOST_DECOMPOSED, "ridge"), (2000, "least squares")):
        table = Table(n_rows=50, n_columns=n_columns, n_targets=1)
        names = [name for name, _ in PORTFOLIOS["regression"](table)]
        assert names[1] == name
    workers = Table(n_rows=50, n_columns=2, n_targets=1, is_here=False)
    assert PORTFOLIOS["regression"](workers)[1][0] == "least squares"


def test_trees_take_missing_values_and_categories(data):
    X, y = data
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame.loc[::9, "b"] = np.nan
    with pytest.warns(UserWarning, match="lasso, .* missing values: a SimpleImputer"):
        model = SelfStoppingRegressor(random_state=0).fit(frame, y)
    assert set(model.member_paths_) == {"boosted trees", "extra trees"}
    assert np.isfinite(model.predict(frame)).all()
    frame["d"] = pd.Series(np.where(X[:, 3] > 0, "u", "v")).astype("category")
    with pytest.warns(UserWarning, match="columns of categories: a OneHotEncoder"):
        model.fit(frame, y)
    assert set(model.member_paths_) == {"boosted trees"}
    with pytest.raises(ValueError, match=r"Columns \['d'\] of X hold strings"):
        model.fit(frame.astype({"d": object}), y)


def test_members_are_combined_where_that_is_left_to_us(data):
    X, y = data
    settings = {"random_state": 0}
    blend = SelfStoppingRegressor(**settings).fit(X, y)
    named = SelfStoppingRegressor(rule="blend", **settings).fit(X, y)
    assert blend.weights_ == named.weights_
    best = SelfStoppingRegressor(rule="min", **settings).fit(X, y)
    assert sorted(best.weights_.values())[-2:] == [0, 1]
    scored = SelfStoppingRegressor(criterion="r2", **settings).fit(X, y)
    assert sorted(scored.weights_.values())[-2:] == [0, 1]
    listed = SelfStoppingRegressor(members()).fit(X, y)
    assert sorted(listed.weights_.values()) == [0, 0, 1]


@pytest.mark.parametrize("n_rows", [10, 15, 25])
def test_few_rows(n_rows, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(random_state=0).fit(X[:n_rows], y[:n_rows])
    assert np.isfinite(model.best_score_)
    label = np.where(y[:n_rows] > np.median(y[:n_rows]), "high", "low")
    model.fit(X[:n_rows], label)
    assert model.task_ == "classification"


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.linspace(0, 1, 50), "regression"),
        (np.linspace(0, 1, 50).reshape(25, 2), "regression"),
        (np.arange(50) % 2 == 0, "classification"),
        (np.array(["a", "b", "c"])[np.arange(50) % 3], "classification"),
        (np.array(["a", "b", "c"] + ["d"] * 40), "classification"),
        (pd.Series(["a", "b", "c"] * 9, dtype="category"), "classification"),
        (np.array([True, False] * 9, dtype=object), "classification"),
    ],
)
def test_what_targets_are_without_a_doubt(y, expected):
    assert task_of(None, y) == expected


@pytest.mark.parametrize(
    "y",
    [
        np.arange(50),
        np.arange(50.0),
        np.arange(50).reshape(25, 2),
        np.arange(50) % 2,
        np.arange(50) % 2 + 0.0,
        np.arange(50) % 4,  # counts, or classes
        np.arange(50) % 10 + 0.0,
        (np.arange(50) % 3).reshape(-1, 1),
        pd.Series(np.arange(50) % 3).astype(object),
    ],
    ids=range(9),
)
def test_whole_numbers_are_asked_about(y):
    with pytest.raises(ValueError, match="SelfStoppingRegressor or SelfStoppingCl"):
        task_of(None, y)
    model = TrajectoryEarlyStoppingCV()
    with pytest.raises(ValueError, match="may be numbers or labels of classes"):
        model.fit(np.arange(2.0 * len(y)).reshape(len(y), 2), y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_the_default_is_told_apart_by_y_anew():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = TrajectoryEarlyStoppingCV(random_state=0).fit(X, names)
    assert model.task_ == "classification"
    assert model.fit(X[:, :3], X[:, 3]).task_ == "regression"
    assert is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert model.set_params(task="classification").fit(X, y > 0).score(X, y > 0) == 1


# ------------------------------------------------------------ scikit-learn's machinery


def test_parallel_runs_agree(data):
    X, y = data
    alone = TrajectoryEarlyStoppingCV(members(), random_state=0).fit(X, y)
    together = clone(alone).set_params(n_jobs=2).fit(X, y)
    assert together.best_member_ == alone.best_member_
    # A process of its own may have fewer threads, which add up in another order.
    np.testing.assert_allclose(
        together.best_score_corrected_, alone.best_score_corrected_, rtol=1e-10
    )
    np.testing.assert_allclose(together.predict(X), alone.predict(X), rtol=1e-10)


def test_pickle(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    single = TrajectoryEarlyStoppingCV(dict(members())[model.best_member_])
    single.set_params(criterion="cv").fit(X, y)
    # The other members' paths are all that is kept of them.
    extra = sum(path.nbytes for path in model.member_paths_.values())
    assert len(pickle.dumps(model)) < len(pickle.dumps(single)) + extra + 20_000


def test_metadata_routing(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    expected = TrajectoryEarlyStoppingCV(members()).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = [
            (
                name,
                member.set_fit_request(sample_weight=True).set_score_request(
                    sample_weight=True
                ),
            )
            for name, member in members()
        ]
        model = TrajectoryEarlyStoppingCV(asking).fit(X, y, sample_weight=weights)
        score = model.score(X, y, sample_weight=weights)
        asking[1][1].set_fit_request(sample_weight=None)
        with pytest.raises(ValueError, match="sample_weight"):
            TrajectoryEarlyStoppingCV(asking).fit(X, y, sample_weight=weights)
    for name, path in expected.member_paths_.items():
        np.testing.assert_array_equal(model.member_paths_[name], path)
    assert score == expected.score(X, y, sample_weight=weights)


def test_patience_ends_every_member(data):
    X, y = data
    pairs = [
        ("ridge", IterativeRidge(0.0, max_iter=2000, tol=0)),
        ("fast", IterativeRidge(0.0, max_iter=2000, tol=0, solver="nesterov")),
    ]
    model = TrajectoryEarlyStoppingCV(pairs, patience=10).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert max(model.results_["n_iter"]) < 500
    assert model.best_member_ == whole.best_member_
    assert model.best_iter_ == whole.best_iter_


def test_groups_and_random_splits(data):
    X, y = data
    pairs = members()
    pairs[0][1].set_params(cv=ShuffleSplit(3, test_size=0.3))
    model = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert np.isfinite(model.best_score_corrected_)
    assert len(np.hstack(model.estimator_.cv_indices_)) == 3 * 24


@pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)
def test_callbacks_reach_every_member(data):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    pairs = [
        (name, IterativeRidge(max_iter=7, tol=0).set_callbacks(monitor))
        for name in ("a", "b")
    ]
    TrajectoryEarlyStoppingCV(pairs).set_callbacks(ProgressBar()).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "update"]
    assert len(rows) == 2 * 7


def test_a_list_has_no_order_of_preference(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[::-1]).fit(X, y)
    assert model.best_score_ == min(model.results_["best_score"])
