"""Members of a portfolio: their folds, their parameters, and which are refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.optim.design import MatrixDesign
from tests.model_selection.cases import Drawn

from .cases import FOLDS, members

pytestmark = pytest.mark.usefixtures("few_trees")


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
    with pytest.raises(ValueError, match="use the same folds: set cv of one"):
        TrajectoryEarlyStoppingCV(pairs).fit(X, y)


def test_a_portfolio_costs_the_sum_of_its_members(data, note_calls):
    X, y = data
    columns = note_calls(MatrixDesign, "dot", size=lambda _, coef: coef.shape[1])
    costs = []
    for _, member in members():
        before = sum(columns)
        member.set_params(cv=FOLDS)
        TrajectoryEarlyStoppingCV(member, criterion="cv").fit(X, y)
        costs.append(sum(columns) - before)
    before = sum(columns)
    TrajectoryEarlyStoppingCV(members()).fit(X, y)
    assert min(costs) > 0
    assert sum(columns) - before == sum(costs)


def test_every_member_is_fitted_once(data, advances):
    X, y = data
    grid = {"net__l1_ratio": [0.5, 0.9]}
    TrajectoryEarlyStoppingCV(members(), param_grid=grid, patience=None).fit(X, y)
    # The lasso, two elastic nets and the ridge, from the start to the end at once.
    assert [(each.first, each.run.t - each.last) for each in advances] == [(0, 0)] * 4


def test_members_without_a_seed_have_one(data):
    X, y = data
    pairs = [("ridge", IterativeRidge(1.0)), ("trees", ExtraTreesRegressor(3))]
    pairs += [("scaled", make_pipeline(StandardScaler(), ExtraTreesRegressor(2)))]
    fitted = [
        TrajectoryEarlyStoppingCV(pairs, random_state=0).fit(X, y) for _ in range(2)
    ]
    for name in ("trees", "scaled"):
        paths = [model.member_paths_[name] for model in fitted]
        np.testing.assert_array_equal(*paths)
    assert pairs[1][1].random_state is None


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
        ([], None, "pair of a name"),
        ([IterativeRidge()], None, "pair of a name"),
        ([(1, IterativeRidge())], None, "pair of a name"),
        ([("a", IterativeRidge()), ("a", TrajectoryLasso())], None, "not unique"),
        ([("a__b", IterativeRidge())], None, "must not contain __"),
        ([("rule", IterativeRidge())], None, "conflict with constructor"),
        ([("a", StandardScaler())], None, "StandardScaler has no begin"),
        (
            [("a", IterativeRidge()), ("b", TrajectoryLogisticRegression())],
            None,
            "'a' is a regressor, 'b' is a classifier",
        ),
        ([("a", IterativeRidge())], {"alpha": [1.0]}, "with a name from 'a'"),
        ([("a", IterativeRidge())], {"b__alpha": [1.0]}, "with a name from 'a'"),
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
