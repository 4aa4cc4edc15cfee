"""Errors say what to write, in public names alone."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.ensemble import HistGradientBoostingClassifier as Boosted
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TableEncoder,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from skacv._compat import StrOptions
from tests.runs import assert_same_summary

pytestmark = pytest.mark.filterwarnings("ignore")
LASSO = TrajectoryLasso("path", max_iter=3)
LOGISTIC = TrajectoryLogisticRegression(max_iter=3)
# A name of Python that begins with an underscore, but not with two.
PRIVATE = re.compile(r"(?<![\w'\"])_(?!_)[a-z]\w+")


def drawn(rng):
    X = rng.standard_normal((90, 3))
    return X, X[:, 0] + rng.standard_normal(90)


def said(function, *args, **params):
    """The message of an error, which names nothing private."""
    with pytest.raises((ValueError, TypeError)) as found:
        function(*args, **params)
    message = str(found.value)
    assert not PRIVATE.search(message)
    return message


@pytest.mark.parametrize(
    "model",
    [
        TrajectoryEarlyStoppingCV(LOGISTIC),
        TrajectoryEarlyStoppingCV([("a", LOGISTIC), ("b", Boosted(max_iter=2))]),
        TrajectoryEarlyStoppingCV(Boosted(max_iter=2)),
        Staged(Boosted(max_iter=2)),
        LOGISTIC,
        KernelEigenProClassifier(max_iter=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_two_columns_of_labels(model, rng):
    X, y = drawn(rng)
    Y = np.stack([y > 0, X[:, 1] > 0], axis=1).astype(int)
    assert "MultiOutputClassifier" in said(model.fit, X, Y)


@pytest.mark.parametrize(
    "model",
    [
        SelfStoppingClassifier(),
        TrajectoryEarlyStoppingCV(task="classification"),
        TrajectoryEarlyStoppingCV(ExtraTreesClassifier(2)),
        Staged(ExtraTreesClassifier(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_two_columns_of_classes_that_are_no_labels(model, rng):
    X, y = drawn(rng)
    Y = np.stack([np.digitize(y, [-0.5, 0.5]), X[:, 1] > 0], axis=1)
    for classes in (Y, Y.astype(str)):
        assert "MultiOutputClassifier" in said(model.fit, X, classes)


def test_what_is_said_of_two_columns_works(rng, few_trees):
    X, y = drawn(rng)
    Y = np.stack([np.digitize(y, [-0.5, 0.5]), X[:, 1] > 0], axis=1)
    fitted = MultiOutputClassifier(SelfStoppingClassifier()).fit(X, Y)
    assert fitted.score(X, Y) > 0.3


def test_two_columns_of_numbers_for_one(rng):
    X, y = drawn(rng)
    model = TrajectoryHuberRegressor(max_iter=3)
    assert "MultiOutputRegressor" in said(model.fit, X, np.stack([y, y], axis=1))


@pytest.mark.parametrize(
    "outer",
    [TrajectoryEarlyStoppingCV, SelfStoppingRegressor],
    ids=lambda c: c.__name__,
)
@pytest.mark.parametrize(
    "inner", [SelfStoppingRegressor(), TrajectoryEarlyStoppingCV(LASSO)], ids=str
)
@pytest.mark.parametrize("listed", [False, True])
def test_estimators_that_stop_themselves_inside(outer, inner, listed, rng):
    estimator = [("inner", inner), ("lasso", LASSO)] if listed else inner
    message = said(outer(estimator).fit, *drawn(rng))
    assert (
        f"is a {type(inner).__name__}, which stops itself: fit it directly" in message
    )
    assert message.startswith("The member 'inner'" if listed else "The 'estimator'")


@pytest.mark.parametrize(
    ("criterion", "instead"),
    [("roc_auc", "'roc_auc_ovr'"), ("f1", "'f1_macro' or 'f1_weighted'")],
)
@pytest.mark.parametrize("estimator", [LOGISTIC, Boosted(max_iter=2)], ids=str)
def test_scorers_of_two_classes(criterion, instead, estimator, rng):
    X, y = drawn(rng)
    labels = np.digitize(y, [-0.5, 0.5])
    model = SelfStoppingClassifier(estimator, criterion=criterion)
    message = said(model.fit, X, labels)
    assert "With more than two classes use a multiclass scorer, such as " in message
    assert message.endswith(f"criterion={instead}.")
    model.set_params(criterion=instead.split("'")[1]).fit(X, labels)
    assert model.fit(X, labels > 0).predict(X).shape == (90,)


@pytest.mark.parametrize(
    "model", [LASSO, TrajectoryEarlyStoppingCV(LASSO), SelfStoppingRegressor()], ids=str
)
def test_unknown_arguments_of_fit(model, rng):
    message = said(model.fit, *drawn(rng), colour="red")
    assert "fit() got unexpected arguments: colour" in message
    assert "it accepts sample_weight and groups" in message


@pytest.mark.parametrize(
    "kind", [SelfStoppingRegressor, SelfStoppingClassifier, TrajectoryEarlyStoppingCV]
)
def test_unknown_parameters(kind):
    message = said(kind, n_estimators=3)
    assert message.startswith(
        f"{kind.__name__} has no parameter 'n_estimators': it has"
    )
    assert "param_grid" in message


@pytest.mark.parametrize(
    ("inner", "name"),
    [
        (Boosted(), "learning_rate"),
        (make_pipeline(StandardScaler(), Boosted()), "standardscaler__with_mean"),
    ],
)
def test_parameters_of_the_estimator_without_their_prefix(inner, name):
    model = TrajectoryEarlyStoppingCV(inner)
    with pytest.raises(ValueError, match="Invalid parameter") as found:
        model.set_params(**{name: 0.5})
    (note,) = found.value.__notes__
    assert f"write 'estimator__{name}'" in note
    model.set_params(**{f"estimator__{name}": 0.5})
    with pytest.raises(ValueError, match="Invalid parameter") as found:
        model.set_params(nothing=3)
    assert not hasattr(found.value, "__notes__")


@pytest.mark.parametrize(
    ("model", "lacks", "has"),
    [
        (Staged(Boosted(max_iter=2)), "predict_interval", "predict_set"),
        (Staged(RandomForestRegressor(2)), "predict_set", "predict_interval"),
        (
            TrajectoryEarlyStoppingCV(
                make_pipeline(StandardScaler(), Boosted(max_iter=2))
            ),
            "predict_interval",
            "predict_set",
        ),
        (TrajectoryEarlyStoppingCV(LASSO), "predict_set", "predict_interval"),
    ],
)
def test_regressors_have_intervals_and_classifiers_sets(model, lacks, has, rng):
    X, y = drawn(rng)
    model = clone(model).fit(X, y > 0 if is_classifier(model) else y)
    with pytest.raises(AttributeError, match=f"it has {has}"):
        getattr(model, lacks)


@pytest.mark.parametrize(
    "model", [SelfStoppingRegressor(), TrajectoryEarlyStoppingCV(LASSO)]
)
def test_the_class_that_was_called_requires_y(model, rng):
    message = said(clone(model).fit, drawn(rng)[0])
    assert message.startswith(f"{type(model).__name__} requires y to be passed")


def test_no_member_takes_the_data(rng):
    X, y = drawn(rng)
    X[0, 0] = np.nan
    message = said(SelfStoppingRegressor(criterion="risk", encoder=None).fit, X, y)
    assert "No model of SelfStoppingRegressor supports these data" in message
    assert "lasso: X has missing values" in message


def test_columns_that_are_sparse(rng):
    _, y = drawn(rng)
    letters = pd.Series(rng.choice(list("abc"), 90))
    X = pd.get_dummies(letters, sparse=True)
    model = Staged(HistGradientBoostingRegressor(max_iter=2))
    message = said(model.fit, X, y)
    # Before scikit-learn 1.7 tags do not tell, and the trees say what they need.
    assert "pass X.sparse.to_dense()" in message or "dense data is req" in message
    assert model.fit(X.sparse.to_dense(), y).n_iter_ == 2


# ---------------------------------------------------------------- rows of summaries


def test_rows_are_summarised_once(rng):
    X, y = drawn(rng)
    summary = RowSummary(n_sampled=5)
    summary.partial_fit(X[:30], y[:30], first_row=30)
    before = pickle.dumps(summary)
    for first in (30, 1, 59):
        message = said(summary.partial_fit, X[:30], y[:30], first_row=first)
        assert "are there already" in message
        assert "first_row" in message
    other = RowSummary(n_sampled=5).partial_fit(X[:10], y[:10], first_row=25)
    assert "Rows 30 to 34 are there already" in said(summary.merge, other)
    assert pickle.dumps(summary) == before
    assert summary.n_samples_seen_ == 30


def test_rows_follow_the_last(rng):
    """Blocks in any order, or the same in the order of their rows, are one summary."""
    X, y = drawn(rng)
    mixed = RowSummary(n_sampled=5).partial_fit(X[30:60], y[30:60], first_row=30)
    mixed.partial_fit(X[60:], y[60:]).partial_fit(X[:30], y[:30], first_row=0)
    plain = RowSummary(n_sampled=5).fit(X, y)
    np.testing.assert_array_equal(
        np.sort(mixed.sampled_indices_), np.sort(plain.sampled_indices_)
    )
    assert_same_summary(mixed, plain)
    assert "are there already" in said(mixed.partial_fit, X, y, first_row=89)


@pytest.mark.parametrize("first_row", [-1, 1.5, "0"])
def test_numbers_of_rows(first_row, rng):
    X, y = drawn(rng)
    message = said(RowSummary().partial_fit, X, y, first_row=first_row)
    assert "first_row must be the number of a row" in message


# ---------------------------------------------------------------- what is named


@pytest.mark.parametrize(
    ("criterion", "meant"),
    [
        ("auc", "'roc_auc'"),
        ("mse", "'neg_mean_squared_error'?"),
        ("logloss", "'neg_log_loss'"),
        ("r2_score", "'r2'?"),
        ("f1-score", "'f1'?"),
        ("pr_auc", "'average_precision'?"),
        ("CV", "'cv'?"),
        ("acuracy", "'accuracy'"),
    ],
)
def test_criteria_that_were_meant(criterion, meant, rng):
    message = said(
        TrajectoryEarlyStoppingCV(LASSO, criterion=criterion).fit, *drawn(rng)
    )
    assert f"got {criterion!r}. Did you mean {meant}" in message
    assert message.endswith("?")


def test_a_criterion_that_is_nothing_else(rng):
    message = said(TrajectoryEarlyStoppingCV(LASSO, criterion="gini").fit, *drawn(rng))
    assert message.startswith("criterion must be one of 'auto', 'risk', 'loo', 'cv'")


CHOOSING = [
    TrajectoryLasso(),
    TrajectoryElasticNet(),
    TrajectoryGroupLasso(groups=3),
    TrajectoryRegressor(),
    IterativeRidge(),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryGammaRegressor(),
    TrajectoryTweedieRegressor(),
    TrajectoryQuantileRegressor(),
    TrajectoryLogisticRegression(),
    TrajectoryLinearSVC(),
    TrajectoryClassifier(),
    KernelEigenProRegressor(),
    KernelEigenProClassifier(),
    RecursiveFeatureMachineRegressor(),
    RecursiveFeatureMachineClassifier(),
    Staged(Boosted()),
    TrajectoryEarlyStoppingCV(LASSO),
    SelfStoppingRegressor(),
    SelfStoppingClassifier(),
    TableEncoder(),
]
# An estimator, a parameter that chooses by a name, and the longest of the names.
CHOICES = [
    (model, name, max(sorted(one.options), key=len))
    for model in CHOOSING
    for name, constraints in model._parameter_constraints.items()
    for one in constraints
    if isinstance(one, StrOptions) and name in model.get_params(deep=False)
]


@pytest.mark.parametrize(
    ("model", "name", "option"),
    CHOICES,
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_value_that_is_nearly_a_name(model, name, option, rng):
    X, y = drawn(rng)
    y = y > 0 if is_classifier(model) else y
    for wrong in (f"{option}s", option.upper()):
        message = said(clone(model).set_params(**{name: wrong}).fit, X, y)
        assert f"Got {wrong!r} instead. Did you mean {option!r}" in message


def test_values_that_are_near_to_nothing_and_those_of_staged_estimators(rng):
    X, y = drawn(rng)
    message = said(clone(LASSO).set_params(solver="zzz").fit, X, y)
    assert message.endswith("Got 'zzz' instead.")
    trees = HistGradientBoostingRegressor(early_stopping="atuo")
    for model in (Staged(trees), TrajectoryEarlyStoppingCV(trees)):
        assert "Did you mean 'auto'?" in said(model.fit, X, y)


OF_FRAMES = [
    TrajectoryLasso(0.1, max_iter=3),
    KernelEigenProRegressor(gamma=0.1, max_iter=3),
    RecursiveFeatureMachineRegressor(n_rounds=1),
    Staged(HistGradientBoostingRegressor(max_iter=2)),
    TrajectoryEarlyStoppingCV(LASSO, cv=3),
    TrajectoryEarlyStoppingCV(LASSO, cv=3, encoder=TableEncoder()),
]


@pytest.mark.parametrize("model", OF_FRAMES, ids=lambda model: type(model).__name__)
def test_a_row_as_a_dict_says_how_to_pass_it(model, rng):
    X, y = drawn(rng)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = clone(model).fit(frame, y)
    row = frame.iloc[0]
    for X, way_out in (
        (row.to_dict(), "pd.DataFrame([X])"),
        ([row.to_dict()], "pd.DataFrame(X)"),
        (frame[:1].to_dict("list"), "pd.DataFrame(X)"),
        (row, "X.to_frame().T"),
    ):
        assert way_out.replace("pd", "pandas") in said(model.predict, X)
        found = model.predict(eval(way_out, {"pd": pd, "X": X}))
        np.testing.assert_allclose(found, model.predict(frame[:1]))


def test_methods_keywords_and_members_that_were_meant(rng):
    X, y = drawn(rng)
    lasso = TrajectoryLasso(0.1, cv=3, max_iter=3, keep_data=True).fit(X, y)
    assert said(lasso.predict_interval, X, method="jacknife+").endswith(
        "Did you mean 'jackknife+'?"
    )
    assert said(lasso.coef_interval, covariance="samples").endswith(
        "Did you mean 'sample'?"
    )
    logistic = TrajectoryLogisticRegression(cv=3, max_iter=3).fit(X, y > 0)
    assert said(logistic.predict_set, X, method="lacs").endswith("Did you mean 'lac'?")
    assert "Did you mean 'random_state'" in said(SelfStoppingRegressor, random_sate=0)
    grid = {"laso__alpha": [1.0]}
    members = [("lasso", LASSO), ("other", LASSO)]
    model = TrajectoryEarlyStoppingCV(members, param_grid=grid)
    assert said(model.fit, X, y).endswith("Did you mean 'lasso'?")


def test_estimators_without_stages_have_the_useful_half_first(rng):
    message = said(TrajectoryEarlyStoppingCV(SVR()).fit, *drawn(rng))
    assert message.startswith(
        "The 'estimator' of TrajectoryEarlyStoppingCV cannot be SVR, which is not "
        "fitted in stages: use KernelEigenProRegressor instead."
    )


@pytest.mark.parametrize("criterion", ["loo", "risk", "accuracy"])
def test_errors_name_the_class_that_was_passed(criterion, rng):
    trees = HistGradientBoostingRegressor(max_iter=2)
    X, y = drawn(rng)
    message = said(TrajectoryEarlyStoppingCV(trees, criterion=criterion).fit, X, y)
    assert "HistGradientBoostingRegressor" in message
    assert "Staged" not in message


def test_attributes_are_missing_of_the_class_that_was_passed(rng):
    trees = HistGradientBoostingRegressor(max_iter=2)
    model = TrajectoryEarlyStoppingCV(trees).fit(*drawn(rng))
    with pytest.raises(AttributeError, match="'HistGradientBoostingRegressor' object"):
        _ = model.coef_


@pytest.mark.parametrize(
    "model",
    [
        LASSO,
        KernelEigenProRegressor(max_iter=3),
        TrajectoryEarlyStoppingCV(LASSO),
        TrajectoryEarlyStoppingCV(RandomForestRegressor(2)),
        Staged(RandomForestRegressor(2)),
        RowSummary(),
        TableEncoder(),
        SelfStoppingRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_infinity_names_its_columns(model, rng, few_trees):
    X, y = drawn(rng)
    X = pd.DataFrame(X, columns=["age", "income", "size"])
    bad = X.copy()
    bad.loc[3, ["income", "size"]] = np.inf, -np.inf
    assert "in column 'income', 'size': replace" in said(model.fit, bad, y)
    method = "transform" if hasattr(model, "transform") else "predict"
    if hasattr(model, method):
        message = said(getattr(model.fit(X, y), method), bad)
        assert "in column 'income', 'size': replace" in message


def test_infinity_in_sparse_matrices_and_numbers_that_are_too_large(rng):
    X, y = drawn(rng)
    X[3, 1] = np.inf
    assert "in column 1: replace" in said(LASSO.fit, sparse.csr_matrix(X), y)
    X[3, 1], X[4, 2] = 0.0, 1e300  # not in single precision
    forest = TrajectoryEarlyStoppingCV(RandomForestRegressor(2))
    assert "too large numbers, in column 2: replace" in said(forest.fit, X, y)


@pytest.mark.parametrize(
    ("cv", "item"),
    [((1, 2), "1"), ([([0], [1], [2])], "([0], [1], [2])"), (np.arange(2), "0")],
    ids=str,
)
@pytest.mark.parametrize(
    "model",
    [LASSO, TrajectoryEarlyStoppingCV(LASSO), Staged(Boosted(max_iter=2))],
    ids=lambda model: type(model).__name__,
)
def test_splits_that_are_no_pairs(model, cv, item, rng):
    X, y = drawn(rng)
    y = (y > 0).astype(int) if isinstance(model, Staged) else y
    message = said(clone(model).set_params(cv=cv).fit, X, y)
    assert message.startswith("Fold 0 of cv must be a pair of training rows and")
    assert message.endswith(f"got {item}.") or "np.int64(0)" in message


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ({}, "objects of the type dict"),
        (["1"], "strings such as '1'"),
        ([1j], "complex ones"),
        ([None, 1.0], "[nan, 1.0]"),
        ([[1.0], [1.0, 2.0]], "cannot be converted to an array"),
    ],
    ids=str,
)
@pytest.mark.parametrize(("name", "model"), [("alpha", LASSO), ("C", LOGISTIC)])
def test_strengths_that_are_no_numbers(name, model, value, got, rng):
    X, y = drawn(rng)
    y = (y > 0).astype(int) if name == "C" else y
    message = said(clone(model).set_params(**{name: value}).fit, X, y)
    assert message.startswith(f"{name} ")
    assert got in message


@pytest.mark.parametrize("coverage", [None, "0.9", [None], {}, [[0.9], [0.5, 0.8]]])
def test_coverages_that_are_no_numbers(coverage, rng):
    X, y = drawn(rng)
    lasso = TrajectoryLasso(0.1, max_iter=3, cv=3, keep_data=True).fit(X, y)
    forest = TrajectoryEarlyStoppingCV(RandomForestRegressor(3), cv=3).fit(X, y)
    classifier = TrajectoryEarlyStoppingCV(LOGISTIC, cv=3).fit(X, y > 0)
    for method in (
        lasso.predict_interval,
        lasso.predict_mean_interval,
        forest.predict_interval,
        classifier.predict_set,
    ):
        assert said(method, X, coverage=coverage).startswith(
            "coverage must be a number"
        )
    message = said(lasso.coef_interval, coverage=coverage)
    assert message.startswith("coverage must be a number")


def test_grids_that_are_no_dicts(rng):
    model = TrajectoryEarlyStoppingCV(LASSO, param_grid=["alpha"])
    assert "param_grid must be a dict or a list of dicts" in said(
        model.fit, *drawn(rng)
    )


def test_labels_of_a_type_that_scikit_learn_does_not_know(rng):
    X, y = drawn(rng)
    dtypes = pytest.importorskip("numpy.dtypes", reason="of NumPy 1.25 and later")
    if not hasattr(dtypes, "StringDType"):
        pytest.skip("NumPy 2 has such strings")
    strings = np.array(["a", "b"], dtype=dtypes.StringDType())
    labels = strings[(y > 0).astype(int)]
    for model in (LOGISTIC, TrajectoryEarlyStoppingCV(Boosted(max_iter=2))):
        assert "StringDType, which scikit-learn does" in said(model.fit, X, labels)


def test_texts_that_a_pipeline_or_a_library_reads_are_not_refused(rng):
    """Such as categories of histograms, and documents."""
    X, y = drawn(rng)
    letters = rng.choice(["a", "b"], (90, 1)).astype(object)
    mixed = np.concatenate([X.astype(object), letters], axis=1)
    trees = HistGradientBoostingRegressor(max_iter=2, categorical_features=[3])
    assert TrajectoryEarlyStoppingCV(trees).fit(mixed, y).predict(mixed).shape == (90,)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=pd.Categorical(letters[:, 0]))
    trees = HistGradientBoostingRegressor(max_iter=2, categorical_features="from_dtype")
    assert TrajectoryEarlyStoppingCV(trees).fit(frame, y).predict(frame).shape == (90,)
    documents = [" ".join(rng.choice(["red", "blue", "green"], 5)) for _ in range(90)]
    pipe = make_pipeline(CountVectorizer(), RandomForestRegressor(2))
    model = TrajectoryEarlyStoppingCV(pipe).fit(documents, y)
    assert model.predict(documents).shape == (90,)
