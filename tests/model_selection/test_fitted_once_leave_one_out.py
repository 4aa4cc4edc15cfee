"""Leave-one-out of members without stages, by approximate_loo, is that of refits."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics import accuracy_score, log_loss, mean_poisson_deviance
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryPoissonRegressor,
)

# Of these the approximation is exact.
EXACT = {
    "ridge": Ridge(3.0),
    "squares": make_pipeline(PolynomialFeatures(2), Ridge(3.0)),
    "kernel": KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3),
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(60)


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.select([y < -0.7, y < 0.7], ["low", "middle"], "high")


def stopped(members, X, y, rule="min", **params):
    model = TrajectoryEarlyStoppingCV(members, criterion="loo", rule=rule)
    return model.set_params(random_state=0).fit(X, y, **params)


def scores_of(model):
    return dict(zip(model.results_["member"], model.results_["best_score"]))


@pytest.mark.parametrize("name", EXACT)
def test_it_is_that_of_refits(data, name):
    X, y = data
    model = stopped([(name, EXACT[name])], X, y)
    expected = cross_val_predict(EXACT[name], X, y, cv=LeaveOneOut())
    np.testing.assert_allclose(model.held_out_prediction_, expected, rtol=1e-6)
    errors = (y - expected) ** 2
    assert model.best_score_ == pytest.approx(errors.mean())
    assert model.best_score_se_ == pytest.approx(errors.std(ddof=1) / np.sqrt(60))
    assert (model.criterion_, model.best_iter_) == ("loo", 1)
    np.testing.assert_allclose(
        model.predict(X), clone(EXACT[name]).fit(X, y).predict(X)
    )
    # Before the fit there is the mean of the other rows.
    constant = (y.sum() - y) / 59
    assert model.path_[0] == pytest.approx(np.mean((y - constant) ** 2))
    ends = model.predict_interval(X, coverage=0.8, method="loo")
    sizes = np.sort(np.abs(y - expected))
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * sizes[int(0.8 * 61)])
    kept = model.members_[name]
    np.testing.assert_array_equal(kept.loo_indices_, np.arange(60))
    np.testing.assert_allclose(kept.loo_path_, model.path_)
    small = model.drop_record()
    np.testing.assert_array_equal(small.predict_interval(X, 0.8, "loo"), ends)


def test_rows_have_weights_and_several_targets(data, rng):
    X, y = data
    Y = np.column_stack([y, -2 * y + rng.standard_normal(60)])
    weights = rng.uniform(0.5, 2, 60)
    weights[:7] = 0
    model = stopped([("ridge", Ridge(3.0))], X, Y, sample_weight=weights)
    total = 0.0
    for row in range(7, 60):
        rest = np.setdiff1d(np.arange(60), row)
        refit = Ridge(3.0).fit(X[rest], Y[rest], weights[rest])
        error = Y[row] - refit.predict(X[[row]])[0]
        np.testing.assert_allclose(Y[row] - model.held_out_prediction_[row], error)
        total += weights[row] * np.mean(error**2)
    assert np.isnan(model.held_out_prediction_[:7]).all()
    assert model.best_score_ == pytest.approx(total / weights.sum())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_near_those_of_refits(labelled, n_classes):
    X, y = labelled
    y = np.where(y == "middle", "low", y) if n_classes == 2 else y
    logistic = LogisticRegression(C=0.5, tol=1e-8, max_iter=1000)
    model = stopped([("logistic", logistic)], X, y)
    shares = cross_val_predict(logistic, X, y, cv=LeaveOneOut(), method="predict_proba")
    np.testing.assert_allclose(model.held_out_prediction_, shares, atol=0.01)
    assert model.best_score_ == pytest.approx(log_loss(y, shares), rel=0.01)
    assert model.predict_set(X).shape == (60, n_classes)
    ridge = RidgeClassifier(3.0)  # of labels, and exact
    model = stopped([("ridge", ridge)], X, y)
    labels = cross_val_predict(ridge, X, y, cv=LeaveOneOut())
    assert model.best_score_ == pytest.approx(1 - accuracy_score(y, labels))


def test_members_of_all_kinds_are_blended(data):
    X, y = data
    members = [
        ("kernel", EXACT["kernel"]),
        ("lasso", Lasso(0.05, tol=1e-10)),
        ("ridge", IterativeRidge(0.0)),
        ("path", TrajectoryLasso("path", max_iter=20)),
    ]
    model = stopped(members, X, y, "blend")
    scores = scores_of(model)
    for name, member in members[:2]:
        expected = cross_val_predict(member, X, y, cv=LeaveOneOut())
        assert scores[name] == pytest.approx(np.mean((y - expected) ** 2), rel=0.03)
    assert np.count_nonzero(list(model.weights_.values())) > 1
    sizes = np.abs(y - model.held_out_prediction_)
    assert model.best_score_ == pytest.approx(np.mean(sizes**2))


def test_poisson_regression_is_near_refits(data, rng):
    X, y = data
    counts = rng.poisson(np.exp(y / 2))
    poisson = PoissonRegressor(alpha=1.0, tol=1e-8)
    model = stopped([("poisson", poisson)], X, counts)
    expected = cross_val_predict(poisson, X, counts, cv=LeaveOneOut())
    np.testing.assert_allclose(model.held_out_prediction_, expected, rtol=0.05)
    # It is judged by the loss that it has minimised, as the path of skacv is.
    half = mean_poisson_deviance(counts, expected) / 2
    assert model.best_score_ == pytest.approx(half, rel=0.01)
    members = [("poisson", poisson), ("path", TrajectoryPoissonRegressor("path"))]
    blend = stopped(members, X, counts, "blend")
    assert set(blend.leaderboard()["metric"]) == {"half Poisson deviance"}


def test_what_it_would_not_be_right_for_has_no_score(data, labelled):
    X, y = data
    ridge = ("ridge", Ridge())
    for member, why in (
        (make_pipeline(SelectKBest(f_regression, k=2), Ridge()), "'selectkbest' .* y"),
        (
            make_pipeline(SelectFromModel(Lasso(0.05)), Ridge()),
            "'selectfrommodel' .* y",
        ),
        (Ridge(positive=True), "positive=True"),
    ):
        with pytest.warns(FitFailedWarning, match=why):
            model = stopped([("other", member), ridge], X, y)
        assert model.best_member_ == "ridge"
        left_out = model.leaderboard().set_index("member").loc["other", "left_out"]
        assert left_out.startswith("ValueError")
    X, y = labelled
    y = y == "high"
    machine = SVC(kernel="linear", probability=True, random_state=0)
    members = [("machine", machine), ("logistic", LogisticRegression())]
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        with pytest.warns(FitFailedWarning, match="SVC calibrates its probabilities"):
            assert stopped(members, X, y).best_member_ == "logistic"
