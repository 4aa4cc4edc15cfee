"""Prediction sets, against their definitions in loops."""

import numpy as np
import pytest

from skacv.risk.intervals import checked_coverage
from skacv.risk.prediction_sets import (
    CONFORMITY_SCORES,
    HeldOutScores,
    check_score,
    sets_around,
)

from ..oracles import score_of_class, set_by_hand


def drawn(rng, n_rows, n_classes=4, decimals=12):
    """Probabilities of rows, and classes drawn from them."""
    logits = 1.5 * rng.standard_normal((n_rows, n_classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = [rng.choice(n_classes, p=row) for row in probabilities]
    return probabilities.round(decimals), np.array(labels)


def sets_of(known, labels, new, coverage, method, units=None):
    held_out = HeldOutScores.of(known, labels, units)
    return sets_around(new, held_out, checked_coverage(coverage), method)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("decimals", [12, 1])  # with 1 many classes are equally likely
@pytest.mark.parametrize("method", CONFORMITY_SCORES)
def test_scores_are_those_of_the_papers(method, decimals, n_classes, rng):
    probabilities, _ = drawn(rng, 30, n_classes, decimals)
    found = CONFORMITY_SCORES[method](probabilities)
    for row, scores in zip(probabilities, found):
        expected = [score_of_class(row, k, method) for k in range(n_classes)]
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("method", CONFORMITY_SCORES)
@pytest.mark.parametrize("with_units", [False, True])
def test_sets_by_hand(method, with_units, rng):
    known, labels = drawn(rng, 45)
    new, _ = drawn(rng, 10)
    units = (
        np.sort(rng.permutation(np.repeat(np.arange(15), 3))) if with_units else None
    )
    found = sets_of(known, labels, new, [0.6, 0.8], method, units)
    assert found.shape == (10, 4, 2)
    assert found.dtype == bool
    for place, coverage in enumerate((0.6, 0.8)):
        for row, members in zip(new, found[:, :, place]):
            expected = set_by_hand(known, labels, row, coverage, method, units)
            np.testing.assert_array_equal(np.flatnonzero(members), expected)
    one = sets_of(known, labels, new, 0.8, method, units)
    np.testing.assert_array_equal(one, found[:, :, 1])


def test_aps_has_the_likeliest_classes_and_never_none(rng):
    known, labels = drawn(rng, 200)
    new, _ = drawn(rng, 100)
    for coverage in (0.05, 0.5, 0.9):
        found = sets_of(known, labels, new, coverage, "aps")
        assert found.any(axis=1).all()
        least_inside = np.where(found, new, 1.0).min(axis=1)
        most_outside = np.where(found, 0.0, new).max(axis=1)
        assert (least_inside > most_outside).all()


def test_lac_is_empty_where_no_class_is_likely_enough(rng):
    """Where half of the classes are certain, the others need not be covered."""
    known = np.repeat([[1.0, 0.0], [0.6, 0.4]], 50, axis=0)
    labels = np.zeros(100, dtype=int)
    found = sets_of(known, labels, np.array([[1.0, 0.0], [0.6, 0.4]]), 0.3, "lac")
    np.testing.assert_array_equal(found, [[True, False], [False, False]])


@pytest.mark.parametrize("method", CONFORMITY_SCORES)
def test_more_coverage_never_takes_a_class_away(method, rng):
    known, labels = drawn(rng, 100)
    new, _ = drawn(rng, 50)
    found = sets_of(known, labels, new, [0.2, 0.5, 0.8, 0.95], method)
    assert (np.diff(found.astype(int), axis=-1) >= 0).all()


@pytest.mark.parametrize("method", CONFORMITY_SCORES)
@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_the_class_of_a_new_row_is_covered(method, coverage, rng):
    """1000 new rows for each of 30 draws of 199 known ones: a standard error of .004.

    Scores of "aps" are zero wherever the likeliest class is the true one: there are
    ties, and sets may cover more.
    """
    shares = []
    for _ in range(30):
        probabilities, labels = drawn(rng, 1199)
        found = sets_of(
            probabilities[:199], labels[:199], probabilities[199:], coverage, method
        )
        shares.append(found[np.arange(1000), labels[199:]].mean())
    assert abs(np.mean(shares) - coverage) < 0.015


def test_lac_has_the_smallest_sets(rng):
    known, labels = drawn(rng, 2000)
    new, _ = drawn(rng, 2000)
    size = {
        method: sets_of(known, labels, new, 0.9, method).sum()
        for method in CONFORMITY_SCORES
    }
    assert size["lac"] < size["aps"]


def test_what_is_refused(rng):
    known, labels = drawn(rng, 8)
    with pytest.raises(ValueError, match=r"at least 9 rows .* but there are 8"):
        sets_of(known, labels, known, 0.9, "lac")
    units = np.repeat(np.arange(4), 2)
    with pytest.raises(ValueError, match=r"at least 9 rows .* but there are 4"):
        sets_of(known, labels, known, 0.9, "aps", units)
    with pytest.raises(ValueError, match=r"one of \['lac', 'aps'\], got 'raps'"):
        check_score("raps")


def test_ranks_are_those_of_intervals():
    """Nine rows for .9: the largest of nine scores."""
    known = np.stack([np.arange(1, 10) / 10, 1 - np.arange(1, 10) / 10], axis=1)
    labels = np.zeros(9, dtype=int)
    new = np.array([[0.11, 0.89], [0.09, 0.91]])
    found = sets_of(known, labels, new, 0.9, "lac")
    np.testing.assert_array_equal(found, [[True, True], [False, True]])


@pytest.mark.parametrize("method", CONFORMITY_SCORES)
def test_single_precision_ties_with_double(method, rng):
    """A row whose probabilities are those of a held-out one has the same score."""
    known, labels = drawn(rng, 60)
    single = known.astype(np.float32)
    found = sets_of(single.astype(np.float64), labels, single, 0.8, method)
    expected = sets_of(
        single.astype(np.float64), labels, single.astype(np.float64), 0.8, method
    )
    np.testing.assert_array_equal(found, expected)
