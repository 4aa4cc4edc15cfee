"""Working columns: the same products as those columns of the design have."""

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.arrays import design_of
from skacv.optim.screen import WorkingColumns

N, P = 9, 40


def design_with(array, rng):
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.5)
    weights = rng.uniform(0.5, 1.5, (N, 1))
    design = design_of(array(X)).centered(weights)
    return design.scaled_rows(np.sqrt(weights))


def assert_products(working, design, rng):
    """Those of the columns in their order, in parts and as one design."""
    dense = design.dense_columns(np.arange(P), np.float64)[:, working.index]
    coef, slopes = rng.standard_normal((len(working), 3)), rng.standard_normal((N, 2))
    np.testing.assert_allclose(working.dot(coef), dense @ coef, atol=1e-14)
    np.testing.assert_allclose(working.t_dot(slopes), dense.T @ slopes, atol=1e-14)
    whole = working.as_design()
    np.testing.assert_allclose(whole.dot(coef), dense @ coef, atol=1e-14)


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("array", [np.asarray, sparse.csr_matrix])
def test_columns_join_and_are_kept(array, is_used, rng):
    design = design_with(array, rng)
    working, order = WorkingColumns(design), rng.permutation(P)
    assert_products(working, design, rng)
    for first, last in [(0, 11), (11, 12), (12, 14), (14, 21)]:
        working.join(np.sort(order[first:last]))
        if is_used:
            working.t_dot(np.ones((N, 1)))
    assert_products(working, design, rng)
    expected = working.index[1::3]
    working.keep(np.arange(1, 21, 3))
    np.testing.assert_array_equal(working.index, expected)
    assert_products(working, design, rng)
    working.join(np.sort(order[30:]))
    assert_products(working, design, rng)
    working.keep(np.arange(0))
    assert_products(working, design, rng)


@pytest.mark.parametrize("array", [np.asarray, sparse.csr_matrix])
def test_all_columns_are_not_copied(array, rng):
    """Whether they are there from the start, or join when there are none."""
    design, every = design_with(array, rng), np.arange(P)
    working = WorkingColumns(design, every)
    assert working.as_design() is design
    working.keep(np.arange(0, P, 2))
    assert_products(working, design, rng)
    working.keep(np.arange(0))
    working.join(every)
    assert working.as_design() is design


def test_columns_are_copied_few_times(rng, note_calls):
    """However often a few join: each part is wider than those that come after it."""
    design = design_with(np.asarray, rng)
    working = WorkingColumns(design)
    copied = note_calls(
        type(design),
        "joined_with",
        size=lambda design, other: design.shape[1] + other.shape[1],
    )
    for j in range(P):
        working.join(np.array([j]))
        working.dot(np.ones((j + 1, 1)))
    assert sum(copied) < P * np.log2(P)
