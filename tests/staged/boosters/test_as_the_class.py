"""What a library resolves, stores and refuses itself is so for stages as well."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.staged.catboost_boosters import CatBoost
from tests.runs import InParts

from .cases import booster, named, table
from .test_table import estimator_of, listed_otherwise, table_of

# ------------------------------------------------------------------ XGBoost


def in_json(booster):
    return json.loads(booster.save_raw("json"))


def test_stages_of_xgboost_are_its_models_whole():
    X, y = table_of("words", "values", False)
    X = X.rename(columns={"a": "größe", "b": 'a "b" \\ c'})
    X["k"] = X.k.cat.rename_categories({"oak": "chêne", "elm": "楡"})
    inner = estimator_of("XGBRegressor")
    model = Staged(inner)
    InParts(model, X, y).go_on(9)
    stopped = model.at_iteration(4).estimator_
    fresh = clone(inner).set_params(n_estimators=4).fit(X, y)
    assert in_json(stopped.get_booster()) == in_json(fresh.get_booster())
    np.testing.assert_array_equal(stopped.predict(X), fresh.predict(X))


def test_categories_of_the_stopped_model():
    pytest.importorskip("xgboost", minversion="3.1")  # others store none
    X, y = table_of("words", "values", False)
    inner = estimator_of("XGBRegressor", 60)
    model = TrajectoryEarlyStoppingCV(inner, cv=3, random_state=0).fit(X, y)
    fresh = clone(inner).set_params(**model.best_params_).fit(X, y)
    row = X.iloc[[4]].assign(k=pd.Categorical(["yew"]))
    assert fresh.predict(row) != fresh.predict(row.assign(k=pd.Categorical(["oak"])))
    for rows in (row, listed_otherwise(X)):
        expected = fresh.predict(rows)
        for each in (model, pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(each.predict(rows), expected)


def test_stages_of_xgboost_read_arrays_as_the_class_does():
    X, y = table()
    model = Staged(booster("XGBRegressor")).fit(
        pd.DataFrame(X, columns=list("abcd")), y
    )
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, model.predict(X))
    with pytest.raises(ValueError, match="feature"):
        list(model.staged_predict(X[:, :3]))
    with pytest.raises(ValueError, match="feature_names mismatch"):
        list(model.staged_predict(pd.DataFrame(X, columns=list("badc"))))


# ------------------------------------------------------------------ CatBoost


@pytest.mark.parametrize(
    ("name", "settings", "targets"),
    [
        ("CatBoostClassifier", {"learning_rate": 0.03}, "numbers"),
        ("CatBoostClassifier", {"auto_class_weights": "Balanced"}, "three words"),
        ("CatBoostClassifier", {"scale_pos_weight": 3.0, "max_depth": 2}, "numbers"),
        ("CatBoostRegressor", {"objective": "MAE", "eta": 0.1}, "values"),
        ("CatBoostRegressor", {"cat_features": ["k"]}, "values"),
    ],
    ids=named,
)
def test_all_that_catboost_resolves_holds_for_all_trees(name, settings, targets):
    X, y = table_of("words" if "cat_features" in settings else "none", targets, True)
    inner = estimator_of(name, **settings)
    if "max_depth" in settings:
        inner = type(inner)(
            **{k: v for k, v in inner.get_params().items() if k != "depth"}
        )
    whole = type(inner)(**inner.get_params()).fit(X, y)
    model = Staged(inner)
    parts = InParts(model, X, y)
    for t in (2, 10, 19):
        parts.go_on(t)
    stopped = model.at_iteration(13).estimator_
    resolved = whole.get_all_params() | {"iterations": 13}
    assert stopped.get_all_params() == resolved
    # Fitted anew with its own parameters it is the same model.
    fresh = type(inner)(**stopped.get_params()).fit(X, y)
    assert fresh.get_all_params() == resolved
    raw = {"prediction_type": "RawFormulaVal"}
    np.testing.assert_array_equal(stopped.predict(X, **raw), fresh.predict(X, **raw))


def test_the_number_of_trees_is_that_of_plain_fits():
    X, y = table("two numbers", n_rows=300)
    folds = KFold(3)
    inner = estimator_of("CatBoostClassifier", 120)
    model = TrajectoryEarlyStoppingCV(inner, cv=folds, patience=None).fit(X, y)
    path = np.zeros(120)
    for fitted, judged in folds.split(X):
        plain = type(inner)(**inner.get_params()).fit(X[fitted], y[fitted])
        staged = plain.staged_predict_proba(X[judged])
        path += [log_loss(y[judged], found, labels=[0, 1]) / 3 for found in staged]
    np.testing.assert_allclose(model.estimator_.cv_path_[1:], path, rtol=1e-9)
    assert model.best_iter_ == 1 + path.argmin()


def test_parameters_resolved_otherwise_for_later_trees_are_an_error(monkeypatch):
    X, y = table()
    params_for = CatBoost._params_for
    monkeypatch.setattr(
        CatBoost,
        "_params_for",
        lambda self, n: params_for(self, n) | {"l2_leaf_reg": 9},
    )
    run = Staged(booster("CatBoostRegressor")).begin(X, y)
    run.go_on(2)
    with pytest.raises(ValueError, match="resolves l2_leaf_reg differently for later"):
        run.go_on(4)


@pytest.mark.parametrize("kind", ["text_features", "embedding_features"])
def test_columns_of_which_catboost_makes_others_are_refused(kind):
    X, y = table("two numbers")
    X = pd.DataFrame(X, columns=list("abcd"))
    X["t"] = ["a b" if each else "c d" for each in y]
    message = f"CatBoostClassifier with {kind}=.'t'. cannot be fitted stage by stage"
    with pytest.raises(ValueError, match=message):
        Staged(booster("CatBoostClassifier", **{kind: ["t"]})).fit(X, y)
    with pytest.raises(ValueError, match=message):
        TrajectoryEarlyStoppingCV(booster("CatBoostClassifier")).fit(
            X, y, **{kind: ["t"]}
        )


def test_borders_with_which_catboost_does_not_go_on_are_refused():
    borders = ["0:border_type=Median", "1:border_type=UniformAndQuantiles"]
    inner = booster("CatBoostRegressor", per_float_feature_quantization=borders)
    Staged(inner).fit(*table())
    inner.set_params(per_float_feature_quantization=["0:border_type=Uniform"])
    with pytest.raises(ValueError, match="stage by stage: use border_type=Greedy"):
        Staged(inner).fit(*table())


def test_edges_between_rows_are_refused():
    X, y = table()
    with pytest.raises(ValueError, match="its edges join rows, of which folds have"):
        Staged(booster("CatBoostRegressor"), cv=3).fit(X, y, graph=[[0, 1], [2, 3]])


def test_classes_in_another_order_are_refused():
    # CatBoost orders strings of numbers as numbers.
    X, y = table("two numbers")
    words = np.where(y, "10", "9")
    with pytest.raises(ValueError, match=r"has the classes \['9', '10'\]"):
        Staged(booster("CatBoostClassifier"), cv=3).fit(X, words)
    with pytest.raises(ValueError, match="number the classes of y"):
        Staged(booster("CatBoostClassifier", class_names=[1, 0])).fit(X, y)
    inner = booster("CatBoostClassifier", class_names=["10", "9"])
    model = Staged(inner, cv=3).fit(X, words)
    plain = Staged(booster("CatBoostClassifier"), cv=3).fit(X, 1 - y)
    assert list(model.classes_) == ["10", "9"]
    np.testing.assert_allclose(model.cv_path_, plain.cv_path_)


# ------------------------------------------------------------------ objectives


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"objective": "survival:aft"}),
        ("XGBRegressor", {"objective": "rank:pairwise"}),
        ("XGBRegressor", {"objective": "multi:softmax"}),
        ("XGBClassifier", {"objective": "binary:logitraw"}),
        ("XGBClassifier", {"objective": "binary:hinge"}),
        ("LGBMRegressor", {"objective": "lambdarank"}),
        ("LGBMRegressor", {"application": "multiclass"}),
        ("LGBMClassifier", {"objective": "cross_entropy_lambda"}),
        ("CatBoostRegressor", {"loss_function": "RMSEWithUncertainty"}),
        ("CatBoostRegressor", {"loss_function": "SurvivalAft:dist=Normal"}),
        ("CatBoostRegressor", {"loss_function": "LogLinQuantile"}),
        ("CatBoostRegressor", {"loss_function": "MultiRMSEWithMissingValues"}),
        ("CatBoostClassifier", {"loss_function": "MultiLogloss"}),
    ],
    ids=named,
)
def test_objectives_that_predictions_cannot_be_judged_by(name, settings):
    X, y = table("two numbers" if "Classifier" in name else "positive")
    (objective,) = settings.values()
    message = f"{name} with the objective '{objective}' cannot be evaluated"
    for model in (Staged, TrajectoryEarlyStoppingCV):
        with pytest.raises(ValueError, match=message):
            model(booster(name, **settings)).fit(X, y)


class TwoNumbers(RegressorMixin, BaseEstimator):
    """Two predictions for every target."""

    max_iter = 3

    def partial_fit(self, X, y):
        return self

    def predict(self, X):
        return np.ones((len(X), 2))

    fit = partial_fit


def test_predictions_of_other_shapes_are_an_error():
    X, y = table()
    with pytest.raises(ValueError, match="predicts 2 numbers per row, but y has 1"):
        Staged(TwoNumbers()).fit(X, y)


# ------------------------------------------------------------------ metrics


@pytest.mark.parametrize(
    ("name", "settings", "params", "asked"),
    [
        ("XGBRegressor", {"eval_metric": "mae"}, {}, "eval_metric='mae'"),
        ("XGBClassifier", {"eval_metric": ["auc", "logloss"]}, {}, "eval_metric=.*"),
        ("LGBMClassifier", {"metric": "auc"}, {}, "metric='auc'"),
        ("LGBMClassifier", {}, {"eval_metric": "auc"}, "eval_metric='auc'"),
        ("CatBoostClassifier", {"eval_metric": "AUC"}, {}, "eval_metric='AUC'"),
    ],
    ids=named,
)
def test_metrics_that_are_not_read_are_warned_of(name, settings, params, asked):
    X, y = table("two numbers" if "Classifier" in name else "values")
    model = TrajectoryEarlyStoppingCV(booster(name, **settings), cv=3)
    with pytest.warns(
        UserWarning,
        match=f"^{asked} of {name} is not used: its stages are judged by the ",
    ):
        model.fit(X, y, **params)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"eval_metric": "rmse"}),
        ("XGBClassifier", {"eval_metric": ["logloss"]}),
        ("LGBMClassifier", {"metric": "binary_logloss"}),
        ("LGBMRegressor", {"metric": "None"}),
        (
            "CatBoostRegressor",
            {
                "loss_function": "Quantile:alpha=0.8",
                "eval_metric": "Quantile:alpha=0.8",
            },
        ),
    ],
    ids=named,
)
def test_metrics_that_are_the_loss_are_not_warned_of(name, settings):
    X, y = table("two numbers" if "Classifier" in name else "values")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Staged(booster(name, **settings), cv=3).fit(X, y)


# ------------------------------------------------------------------ clones


def test_pipelines_and_lists_with_columns_of_catboost_clone():
    X, y = table_of("words", "values", True)
    inner = booster("CatBoostRegressor", cat_features=["k"])
    pipeline = make_pipeline(FunctionTransformer(), inner)
    for each in (inner, pipeline, [("trees", pipeline)]):
        model = clone(TrajectoryEarlyStoppingCV(each, cv=3, random_state=0))
        assert model.estimator is not each
        model.fit(X, y)
    alone = TrajectoryEarlyStoppingCV(inner, cv=3, random_state=0).fit(X, y)
    inside = TrajectoryEarlyStoppingCV(pipeline, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(inside.predict(X), alone.predict(X))
    assert pipeline.steps[-1][1] is inner
    copied = clone(Staged(pipeline)).estimator.steps[-1][1]
    assert copied is not inner
    assert copied.get_params() == inner.get_params()
    assert len(cross_val_score(clone(inside), X, y, cv=2)) == 2
    grid = {"estimator__catboostregressor__depth": [2, 3]}
    GridSearchCV(inside, grid, cv=2).fit(X, y)
