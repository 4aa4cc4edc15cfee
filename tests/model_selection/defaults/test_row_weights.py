"""Weights of rows reach all that is learned of a table.

A row of weight zero is none, integer weights are numbers of copies, and weights in
other units are the same weights.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from skacv import Staged, TableEncoder, TrajectoryEarlyStoppingCV
from skacv._compat import target_encoder
from skacv.model_selection.defaults.parts import FOLDS, Parts, TargetMeans
from skacv.model_selection.defaults.portfolio import (
    TableInfo,
    classification,
    regression,
)
from skacv.model_selection.defaults.strongest_columns import StrongestColumns
from skacv.tables.one_hot import OneHotCodes

N_ROWS, N_GARBAGE = 90, 30
LEVELS = np.array([f"level {k}" for k in range(14)])


def table(rng, n_rows=N_ROWS):
    """Numbers, some of them unknown, few levels, many levels; a target."""
    X = pd.DataFrame(
        {
            "size": 10 * rng.standard_normal(n_rows) + 3,
            "price": rng.exponential(size=n_rows),
            "few": rng.choice(list("uvw"), n_rows, p=[0.6, 0.3, 0.1]),
            "many": rng.choice(LEVELS, n_rows),
        }
    )
    X.loc[::7, "price"] = np.nan
    effect = pd.Series(np.linspace(-1, 1, len(LEVELS)), LEVELS)
    y = 0.1 * X["size"] + (X["few"] == "u") + X["many"].map(effect)
    return X, y.to_numpy() + 0.3 * rng.standard_normal(n_rows)


class Rows:
    """Rows with weights, and the splits of their folds; and rows that mean the same."""

    def __init__(self, X, y, weights, splits):
        self.X, self.y, self.weights, self.splits = X, y, weights, splits

    def with_garbage(self, rng, other):
        """These rows among others of weight zero, whose target is ``other``."""
        order = rng.permutation(N_ROWS + N_GARBAGE)
        kept, rest = np.sort(order[:N_ROWS]), np.sort(order[N_ROWS:])
        garbage = pd.DataFrame(
            {"size": 1e4, "price": 1e5, "few": "?!", "many": "level 1"}, index=rest
        )
        X = pd.concat([self.X.set_index(kept), garbage]).sort_index()
        y, weights = np.full(len(X), other), np.zeros(len(X))
        y[kept], weights[kept] = self.y, self.weights
        splits = []
        for fitted, held_out in self.splits:
            splits.append(
                (np.r_[kept[fitted], rest[:9]], np.r_[kept[held_out], rest[9:]])
            )
        return Rows(X, y, weights, splits)

    def repeated(self):
        """Each row as often as its weight says, in the same folds."""
        rows, splits = np.repeat(np.arange(N_ROWS), self.weights.astype(int)), []
        for split in self.splits:
            splits.append([np.flatnonzero(np.isin(rows, part)) for part in split])
        X = self.X.iloc[rows].reset_index(drop=True)
        return Rows(X, self.y[rows], None, splits)


def same(case, rng, of_classes=0):
    """Two lots of rows that mean the same, with uneven weights."""
    X, y = table(rng)
    if of_classes:
        y = np.digitize(y, np.quantile(y, [0.4, 0.75][: of_classes - 1]))
    weights = rng.integers(1, 4, N_ROWS).astype(float)
    splits = [np.flatnonzero(np.arange(N_ROWS) % 3 == k) for k in range(3)]
    splits = [(np.setdiff1d(np.arange(N_ROWS), part), part) for part in splits]
    rows = Rows(X, y, weights, splits)
    if case == "zero":
        return rows, rows.with_garbage(rng, 7 if of_classes else -999.0)
    if case == "integer":
        return rows, rows.repeated()
    return rows, Rows(X, y, weights / 3, splits)


def codes_of(X):
    return TableEncoder("codes").fit(table(np.random.default_rng(0), 500)[0]).codes(X)


class OnCodes:
    """A transformer of codes, on the frame that they are of."""

    def __init__(self, make):
        self.transformer = make(
            TableEncoder().fit(table(np.random.default_rng(0), 500)[0]).columns_
        )

    def fit(self, X, y, sample_weight):
        self.transformer.fit(codes_of(X), y, sample_weight=sample_weight)
        return self

    def transform(self, X):
        return self.transformer.transform(codes_of(X))


def means(columns):
    return TargetMeans(target_encoder(Ridge()))


STEPS = {
    "one-hot": TableEncoder,
    "codes": lambda: TableEncoder("codes"),
    "rare levels": lambda: TableEncoder(min_frequency=14),
    "a share": lambda: TableEncoder(min_frequency=0.07),
    "few levels": lambda: TableEncoder(max_levels=4, drop="first"),
    "unit size": lambda: OnCodes(lambda columns: OneHotCodes(columns, scaled=True)),
    "means": lambda: OnCodes(means),
    "parts": lambda: OnCodes(
        lambda columns: Parts(
            [("passthrough", [0]), (OneHotCodes(columns[1:2]), [1]), (means(None), [3])]
        )
    ),
    "strongest": lambda: OnCodes(lambda columns: StrongestColumns(2)),
}
CASES = "zero", "integer", "scaled"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", STEPS)
def test_every_step_takes_weights(step, case, rng):
    rows, others = same(case, rng)
    new, _ = table(rng, 60)
    found, expected = (
        STEPS[step]().fit(lot.X, lot.y, lot.weights).transform(new)
        for lot in (rows, others)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("of_classes", [0, 2, 3])
def test_shares_of_strongest_columns(case, of_classes, rng):
    rows, others = same(case, rng, of_classes)
    found, expected = (
        StrongestColumns(2, of_classes=bool(of_classes))
        .fit(codes_of(lot.X), lot.y, sample_weight=lot.weights)
        .shares_
        for lot in (rows, others)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("of_classes", [0, 2, 3])
def test_weighted_means_of_other_folds(of_classes, rng):
    """Those of TargetEncoder on repeated rows, fold by fold."""
    rows, _ = same("scaled", rng, of_classes)
    X, copies = codes_of(rows.X)[:, 2:], rows.weights.astype(int)
    kind = {"target_type": "auto" if of_classes else "continuous"}
    found = TargetMeans(TargetEncoder(**kind))
    found = found.fit_transform(X, rows.y, sample_weight=rows.weights)
    for fitted, held_out in FOLDS.split(X):
        repeated = np.repeat(fitted, copies[fitted])
        alone = TargetEncoder(**kind).fit(X[repeated], rows.y[repeated])
        expected = alone.transform(X[held_out])
        np.testing.assert_allclose(found[held_out], expected, rtol=1e-9)


def test_levels_count_rows_where_weights_are_no_copies(rng):
    """Weights with a sum of one, as of a survey, leave the levels as they are."""
    X, y = table(rng)
    weights = rng.uniform(0.5, 2, N_ROWS)
    weights /= weights.sum()
    names = [
        TableEncoder(min_frequency=5).fit(X, sample_weight=w).get_feature_names_out()
        for w in (None, weights)
    ]
    np.testing.assert_array_equal(*names)
    codes = codes_of(X)[:, [3]]
    weighted, even = (
        means(None).fit(codes, y, w).transform(codes) for w in (weights, None)
    )
    assert np.std(weighted) > 0.7 * np.std(even)


def members(of_classes):
    """Default members for this table, with fewer trees, by name."""
    info = TableInfo(N_ROWS, 6, 1, n_classes=of_classes or 1, n_tree_columns=6)
    listed = (classification if of_classes else regression)(info)
    found = {member.name: member.trial or member.estimator for member in listed}
    return {name: clone(member) for name, member in found.items()}


# Members of the package, for which integer weights are copies: of others, bins and
# leaves count rows; a feature machine leaves out single rows, but not their copies.
TREES = "boosted trees", "extra trees"
EXACT = "lasso", "ridge", "logistic", "kernel"
FITS = []
for of_classes, name, case in product((0, 3), {**members(0), **members(3)}, CASES):
    if name in members(of_classes) and (case != "integer" or name in EXACT):
        few = case == "zero" and not of_classes
        FITS.append(
            pytest.param(of_classes, name, case, marks=() if few else pytest.mark.slow)
        )


@pytest.mark.parametrize(("of_classes", "name", "case"), FITS)
def test_every_member_takes_weights(of_classes, name, case, rng):
    member = members(of_classes)[name]
    if name == "kernel":  # its step is that which is stable without any row
        member.set_params(n_components=0, max_iter=10, step_size=0.5)
    rows, others = same(case, rng, of_classes)
    if case == "scaled" and name in TREES:
        # Equal splits are told apart by the last bit of weights.
        others.weights = rows.weights / 4
        if of_classes and name == "boosted trees":
            member.set_params(estimator__l2_regularization=0)  # in units of weights
    new, _ = table(rng, 60)
    predicted, scores = [], []
    for lot in (rows, others):
        model = TrajectoryEarlyStoppingCV(
            [(name, member)],
            encoder=TableEncoder(),
            cv=lot.splits,
            patience=5,
            random_state=0,
        ).fit(lot.X, lot.y, sample_weight=lot.weights)
        method = model.predict_proba if of_classes else model.predict
        predicted.append(method(new))
        scores.append(model.best_score_)
    np.testing.assert_allclose(*predicted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("routing", [False, True])
def test_steps_of_a_pipeline(routing, rng):
    """Steps of the package see the weights of every fold, and others no row of zero."""
    rows, others = same("zero", rng)
    rows.weights, others.weights = None, np.sign(others.weights)
    trees = HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=5)
    with config_context(enable_metadata_routing=routing):
        scaler = StandardScaler()
        if routing:
            trees.set_fit_request(sample_weight=True)
            scaler.set_fit_request(sample_weight=False)
        model = Staged(make_pipeline(TableEncoder(), scaler, trees))
        found, expected = (
            clone(model)
            .set_params(cv=lot.splits)
            .fit(lot.X, lot.y, sample_weight=lot.weights)
            for lot in (others, rows)
        )
    np.testing.assert_array_equal(found.cv_path_, expected.cv_path_)
    np.testing.assert_array_equal(found.predict(rows.X), expected.predict(rows.X))


def test_a_class_of_rows_without_weight_is_none(rng):
    rows, others = same("zero", rng, 2)
    trees = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=5)
    model = Staged(make_pipeline(TableEncoder("codes"), trees), cv=others.splits)
    model.fit(others.X, others.y, sample_weight=others.weights)
    assert set(others.y) - set(rows.y) == {7}
    assert list(model.classes_) == [0, 1]
    assert model.predict_proba(rows.X).shape == (N_ROWS, 2)
