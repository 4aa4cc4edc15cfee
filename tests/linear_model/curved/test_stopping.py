"""Stopping, scorers and intervals with curved losses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression
from tests.cases import covering

from .models import ALL, drawn, held_out, model_of


@covering(
    name=["binary", "multinomial", "svc", "huber", "poisson"],
    criterion=["auto", "loo", "cv"],
)
def test_stops_itself(name, criterion, rng):
    X, y = drawn(ALL[name][1], rng)
    model = TrajectoryEarlyStoppingCV(
        model_of(name, max_iter=80), criterion=criterion
    ).fit(X, y)
    path = getattr(model.estimator_, f"{model.criterion_}_path_")
    assert model.best_iter_ == path.argmin()
    np.testing.assert_array_equal(
        model.predict(X), model.at_iteration(model.best_iter_).predict(X)
    )
    assert model.criterion_ in ("loo", "cv")
    pickle.loads(pickle.dumps(model)).predict(X)


SCORED = [
    ("binary", "accuracy"),
    ("binary", "roc_auc"),
    ("binary", "neg_brier_score"),
    ("binary", "neg_log_loss"),
    ("multinomial", "roc_auc_ovr"),
    ("multinomial", "balanced_accuracy"),
    ("svc", "roc_auc"),
    ("svc_classes", "accuracy"),
    ("poisson", "neg_mean_poisson_deviance"),
    ("gamma", "neg_mean_gamma_deviance"),
    ("huber", "neg_median_absolute_error"),
]


@covering(case=SCORED, held_out=[{}, {"cv": 4}, {"loo": True}])
def test_any_scorer_on_pooled_held_out_predictions(case, held_out, rng):
    name, scoring = case
    X, y = drawn(ALL[name][1], rng, (120, 6))
    if y.dtype.kind == "U":  # the Brier score takes no other labels
        y = (y == "yes").astype(int)
    # With its data a chosen iterate keeps the held-out predictions of all.
    inner = model_of(name, max_iter=40, tol=0, keep_data=True, **held_out)
    model = TrajectoryEarlyStoppingCV(inner, criterion=scoring).fit(X, y)
    kind = "loo" if "loo" in held_out else "cv"
    rows = np.hstack(getattr(model.estimator_, f"{kind}_indices_"))
    predictions = getattr(model.estimator_, f"{kind}_prediction_path_")
    scorer = get_scorer(scoring)

    class Fixed(type(inner)):
        """Gives held-out predictions, by the methods of the class itself."""

        def _response(self, X):
            return np.reshape(self.fixed, (len(X), -1))

        def _decision(self, predictor):
            return predictor[:, 0] if predictor.shape[1] == 1 else predictor

        def _prediction(self, predictor, loss):
            return predictor[:, 0]

    fixed = Fixed().fit(X, y)
    for t in (0, model.best_iter_, 40):
        fixed.fixed = predictions[t]
        assert model.path_[t] == pytest.approx(scorer(fixed, X[rows], y[rows]))
    assert model.best_iter_ == model.path_.argmax()


def test_in_a_pipeline_and_grid_search_on_pandas(rng):
    """Pandas, strings for labels, a pipeline, a grid."""
    X, y = drawn("binary", rng, (150, 6))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression("path", max_iter=5)),
    )
    search = GridSearchCV(
        model,
        {"trajectoryearlystoppingcv__estimator__l1_ratio": [0.0, 1.0]},
        scoring="roc_auc",
    ).fit(frame, pd.Series(y))
    best = search.best_estimator_[-1]
    assert set(best.classes_) == {"no", "yes"}
    assert best.best_params_["C"] == best.estimator_.C_path_[best.best_iter_]
    assert search.predict_proba(frame).shape == (150, 2)
    assert search.score(frame, y) > 0.6


@pytest.mark.parametrize("shape", [(40, 4), (16, 20)])
@pytest.mark.parametrize("name", ["huber", "poisson", "gamma"])
def test_jackknife_plus_of_curved_losses(name, shape, rng):
    """From the replicas' coefficients, on the scale of the predictions."""
    X, y = drawn(ALL[name][1], rng, shape)
    model = model_of(name, max_iter=30, tol=0, loo=True, keep_data=True).fit(X, y)
    found = model.predict_interval(X[:5], coverage=0.8)
    replicas = np.concatenate(
        [
            held_out(model, X, y, fitted, np.arange(5))[-1][None]
            for fitted, _ in LeaveOneOut().split(X)
        ]
    )
    # Counts spread as the root of their mean, amounts as the mean; none is negative.
    spreads = {"poisson": np.sqrt, "gamma": np.abs}
    spread, least = spreads.get(name, np.ones_like), 0 if name in spreads else -np.inf
    held_out_mean = model.loo_prediction_path_[-1]
    residuals = (np.abs(held_out_mean - y) / spread(held_out_mean))[:, None]
    widths = residuals * spread(replicas)
    rank = int(np.ceil(0.8 * (len(y) + 1)))
    lower = np.sort(replicas - widths, axis=0)[len(y) - rank]
    upper = np.sort(replicas + widths, axis=0)[rank - 1]
    expected = np.maximum(np.stack([lower, upper], axis=1), least)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    around = model.predict_interval(X[:5], coverage=0.8, method="risk")
    held_out_mean, prediction = model.risk_prediction_path_[-1], model.predict(X[:5])
    residuals = np.sort(np.abs(y - held_out_mean) / spread(held_out_mean))
    width = residuals[rank - 1] * spread(prediction)
    expected = np.stack([prediction - width, prediction + width], axis=1)
    np.testing.assert_allclose(around, np.maximum(expected, least))
