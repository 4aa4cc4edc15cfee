"""Sparse matrices that store entries twice, in other libraries."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skacv import Staged

from ...test_sparse_entries import repeated
from .cases import PLAIN, booster, table


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("name", PLAIN)
def test_they_are_the_summed_matrix(name, form):
    X, y = table()
    X = np.where(np.isnan(X) | (X < -0.5), 0, X)
    once, twice = getattr(sparse, form)(X), repeated(X, form)
    model = Staged(booster(name, 5), cv=3)
    expected, found = clone(model).fit(once, y), clone(model).fit(twice, y)
    np.testing.assert_allclose(found.cv_path_, expected.cv_path_, rtol=1e-6)
    np.testing.assert_allclose(found.predict(twice), expected.predict(once), rtol=1e-6)
    staged = list(found.staged_predict(twice))
    np.testing.assert_allclose(staged, list(expected.staged_predict(once)), rtol=1e-6)
