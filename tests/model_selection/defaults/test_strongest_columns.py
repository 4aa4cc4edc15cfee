"""Columns that explain most of y, chosen in every fold from its own rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.feature_selection import f_classif, f_regression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state

from skacv import SelfStoppingClassifier, SelfStoppingRegressor, Staged
from skacv.model_selection.defaults import portfolio
from skacv.model_selection.defaults.strongest_columns import StrongestColumns
from tests.internals import TASKS, default_members


@pytest.fixture
def wide():
    """Forty rows of many columns, of which y depends on none."""
    rng = check_random_state(0)
    return rng.standard_normal((40, 300)), rng.standard_normal(40)


def test_the_order_is_that_of_f_statistics(wide):
    X, y = wide
    label = np.arange(40) % 3
    for target, statistic, of_classes in (
        (y, f_regression, False),
        (label, f_classif, True),
    ):
        kept = StrongestColumns(12, of_classes=of_classes).fit(X, target)
        expected = np.sort(np.argsort(-statistic(X, target)[0])[:12])
        np.testing.assert_array_equal(kept.get_support(indices=True), expected)
        np.testing.assert_array_equal(kept.transform(X), X[:, expected])
    share = [np.corrcoef(column, y)[0, 1] ** 2 for column in X.T]
    np.testing.assert_allclose(StrongestColumns(1).fit(X, y).shares_, share, rtol=1e-10)


def test_sparse_columns_missing_values_and_several_outputs(wide):
    X, y = wide
    zeros = np.where(X > 0.5, X, 0)
    dense = StrongestColumns(12).fit(zeros, y)
    for rows in (sparse.csr_matrix(zeros), sparse.csc_array(zeros)):
        kept = StrongestColumns(12).fit(rows, y)
        np.testing.assert_allclose(kept.shares_, dense.shares_, rtol=1e-12)
        assert sparse.issparse(kept.transform(rows))
    # A missing value is the mean of its column, and no value explains nothing.
    holes = X.copy()
    holes[::7, :50] = np.nan
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    holes[:, 60], filled[:, 60] = np.nan, 0.1
    shares = StrongestColumns(1).fit(holes, y).shares_
    np.testing.assert_allclose(
        shares, StrongestColumns(1).fit(filled, y).shares_, atol=1e-14
    )
    assert shares[60] == 0
    both = StrongestColumns(1).fit(X, np.column_stack([y, X[:, 3]])).shares_
    alone = [StrongestColumns(1).fit(X, target).shares_ for target in (y, X[:, 3])]
    np.testing.assert_allclose(both, np.maximum(*alone), rtol=1e-12)


def test_folds_choose_columns_without_their_held_out_rows(wide):
    X, y = wide
    label = np.array(["a", "b", "c"])[np.arange(40) % 3]
    boosted = HistGradientBoostingClassifier(
        max_iter=5, min_samples_leaf=2, random_state=0, early_stopping=False
    )
    forest = ExtraTreesRegressor(n_estimators=5, random_state=0)
    for target, last, cv in (
        (y, forest, KFold(4)),
        (label, boosted, StratifiedKFold(4)),
    ):
        of_classes = last is boosted
        pipeline = make_pipeline(StrongestColumns(6, of_classes=of_classes), last)
        model = Staged(pipeline, cv=cv).fit(X, target)
        n_before = 0
        for fitted_rows, held_out in cv.split(X, target):
            # By hand, from the training rows alone.
            columns = X[fitted_rows]
            statistic = f_classif if of_classes else f_regression
            strength = statistic(columns, target[fitted_rows])[0]
            kept = np.sort(np.argsort(-strength)[:6])
            last.fit(columns[:, kept], target[fitted_rows])
            method = last.predict_proba if of_classes else last.predict
            found = model.cv_prediction_path_[-1][n_before : n_before + len(held_out)]
            np.testing.assert_allclose(found, method(X[held_out][:, kept]), rtol=1e-10)
            n_before += len(held_out)


@pytest.mark.slow
def test_columns_of_noise_explain_no_held_out_rows(wide):
    X, _ = wide
    forest = ExtraTreesRegressor(n_estimators=20, random_state=0)
    errors = []
    for seed in range(10):
        y = check_random_state(seed).standard_normal(40)
        y /= y.std()
        honest = Staged(make_pipeline(StrongestColumns(8), forest), cv=5).fit(X, y)
        # Chosen once, from all rows, they would seem to.
        kept = StrongestColumns(8).fit_transform(X, y)
        once = Staged(forest, cv=5).fit(kept, y)
        errors.append([honest.cv_path_[-1], once.cv_path_[-1]])
    honest, once = np.mean(errors, axis=0)
    assert once < 0.8 < 1 < honest


def n_columns_seen(member):
    """Number of columns that the trees of a pipeline are fitted to."""
    return member.estimator_[-1].n_features_in_


def test_trees_see_few_of_more_columns_than_rows(wide, few_trees, set_globals):
    X, y = wide
    n_kept = int(40 / np.log(40))
    set_globals(MOST_TREE_COLUMNS=200)
    for make, target in (
        (SelfStoppingRegressor, y),
        (SelfStoppingRegressor, np.column_stack([y, -y])),
        (SelfStoppingClassifier, np.arange(40) % 3),
    ):
        members = make(random_state=0).fit(X, target).members_
        for name in ("boosted trees", "extra trees"):
            assert n_columns_seen(members[name]) == n_kept
        for name in set(members) - {"boosted trees", "extra trees"}:
            assert members[name].n_features_in_ == 300
    # Of a frame as well, with gaps and categories, which trees see as before.
    frame = pd.DataFrame(X).rename(columns=str)
    frame.iloc[::9, 5] = np.nan
    frame["level"] = np.where(y > 0, "high", "low")
    model = SelfStoppingRegressor(random_state=0).fit(frame, y)
    assert np.isfinite(model.predict(frame[:3])).all()
    for name in ("boosted trees", "extra trees"):
        pipeline = model.members_[name].steps[-1][1].estimator_
        assert pipeline[-1].n_features_in_ == n_kept
        names = pipeline[-2].get_feature_names_out()
        assert any(name.startswith("level") or name == "x300" for name in names)


def test_trees_see_all_of_fewer_columns():
    most = portfolio.MOST_TREE_COLUMNS
    for n_rows, n_columns, are_few in (
        (50, most, False),
        (50, most + 1, True),
        (most + 1, most + 1, False),
        (2, most + 1, True),
        (1, most + 1, True),
    ):
        for task in TASKS:
            for name, estimator in default_members(task, n_rows, n_columns).items():
                if name.endswith("trees"):
                    assert hasattr(estimator.estimator, "steps") == are_few


@pytest.mark.parametrize("n_classes", [2, 10, 11, 40])
def test_trees_for_many_classes(n_classes, set_globals):
    members = default_members("classification", 3000, 20, n_classes=n_classes)
    bins = members["boosted trees"].estimator.max_bins
    assert bins == (63 if n_classes > 10 else 255)
    # The nodes of a forest and five copies, with numbers of the classes.
    least = members["extra trees"].estimator.min_samples_leaf
    n_bytes = 16 * n_classes * 1.5 * 3000 / least * 600
    assert n_bytes <= portfolio.MEMORY_BYTES
    assert least == 1 or n_bytes * least > portfolio.MEMORY_BYTES
