"""What ``Staged`` refuses."""

import numpy as np
import pytest
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skacv import RowSummary, Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso

from .cases import SMALL, boosted


@pytest.mark.parametrize(
    "estimator",
    [
        SVR(),
        KNeighborsRegressor(),
        LinearRegression(),
        StackingRegressor([("a", LinearRegression())]),
        make_pipeline(StandardScaler(), SVR()),
        MiniBatchKMeans(),
        TrajectoryLasso(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_without_stages_are_refused(estimator, data):
    with pytest.raises(ValueError, match=r"cannot be fitted stage by stage: .* can\.$"):
        Staged(estimator).fit(*data)


def test_bad_data_and_parameters_are_refused(data, labelled):
    X, y = data
    model = Staged(boosted(), cv=3)
    with pytest.raises(ValueError, match="n_updates must be at least 1, got 0"):
        model.begin(X, y).go_on(0)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X)
    with pytest.raises(ValueError, match="'max_iter' parameter of HistGradient"):
        Staged(boosted(max_iter=0)).fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(ValueError, match="Unknown label type"):
        Staged(HistGradientBoostingClassifier(**SMALL), cv=3).fit(X, y)
    two = np.stack([labelled[1]] * 2, axis=1)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        Staged(RandomForestClassifier(3), cv=3).fit(X, two)
    with pytest.raises(
        TypeError, match="a RowSummary has only moments of most of them"
    ):
        model.fit(RowSummary.from_arrays(X, y))


def test_folds_without_rows_are_refused(data):
    X, y = data
    weights = np.r_[np.zeros(20), np.ones(40)]
    for cv, said in {
        "hold out": KFold(3),
        "fit on": [(np.arange(20), np.arange(20, 60))],
    }.items():
        with pytest.raises(ValueError, match=f"Fold 0 of cv leaves no row .* to {cv}"):
            Staged(boosted(), cv=said).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="Fold 0 of cv has rows beyond the 60 samples"):
        Staged(boosted(), cv=[(np.arange(90), [3])]).fit(X, y)
    with pytest.raises(ValueError, match="cv gives no folds"):
        Staged(boosted(), cv=[]).fit(X, y)


def test_checks_of_data_raise_what_the_estimator_raises(data):
    X, y = data
    X[3, 1] = np.nan
    model = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(), cv=2)
    with pytest.raises(ValueError, match="Input X contains NaN") as found:
        model.fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN") as expected:
        GradientBoostingRegressor().fit(X, y)
    assert str(found.value) == str(expected.value)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_which_estimators_are_wrapped(data):
    """Those that grow in stages; others as they are, if they record their iterates."""
    lasso = TrajectoryLasso(0.1, max_iter=3)
    for estimator, kind in {
        Staged(boosted()): Staged,
        boosted(): Staged,
        lasso: TrajectoryLasso,
        make_pipeline(StandardScaler(), boosted()): Staged,
    }.items():
        model = TrajectoryEarlyStoppingCV(estimator, cv=2).fit(*data)
        assert type(model.estimator_) is kind
    for estimator, said in {
        SVR(): "an estimator that records its traj",
        LinearRegression(): "an estimator that records its traj",
        make_pipeline(StandardScaler(), lasso): "last step is not fitted in stages",
    }.items():
        with pytest.raises(ValueError, match=said):
            TrajectoryEarlyStoppingCV(estimator).fit(*data)


@pytest.mark.parametrize(
    "estimator",
    [
        boosted(loss="poisson"),
        RandomForestRegressor(3, criterion="poisson", bootstrap=False),
        Staged(PoissonRegressor(max_iter=2)),
        MultiOutputRegressor(boosted(loss="poisson")),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("fold", [0, 1])
def test_folds_of_counts_that_are_all_zero_are_named(estimator, fold, data):
    X, _ = data
    counts = np.arange(60) % 3
    weights = np.ones(60)
    counts[:22] = 0
    splits = [(np.arange(22, 60), np.arange(22)), (np.arange(22), np.arange(22, 60))]
    if fold == 0:
        splits.reverse()
    is_of_outputs = isinstance(estimator, MultiOutputRegressor)
    y = np.stack([counts, counts], axis=1) if is_of_outputs else counts
    model = TrajectoryEarlyStoppingCV(estimator, cv=splits, criterion="cv")
    message = f"fold {fold} of cv: All of y is zero"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    # A count in a row of weight zero is none.
    y[3], weights[3] = 5, 0
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weights)
    model.fit(X, y)


def test_errors_of_libraries_name_the_fold(data):
    catboost = pytest.importorskip("catboost")
    X, y = data
    y[:30] = 1.0  # of which CatBoost makes no model
    trees = catboost.CatBoostRegressor(iterations=3, depth=2, allow_writing_files=False)
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(20), np.arange(20, 60))]
    with pytest.raises(Exception, match="All train targets are equal") as raised:
        Staged(trees, cv=splits).fit(X, y)
    assert raised.value.__notes__ == ["The fit to the rows of fold 1 of cv failed."]
