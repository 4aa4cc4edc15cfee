"""The randomized method, the jackknife, and large sparse data."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import Ridge

from skacv import approximate_loo


def test_randomized_is_near_and_reproducible(rng):
    X = rng.standard_normal((300, 150))
    y = X @ rng.standard_normal(150) / 12 + rng.standard_normal(300)
    model = Ridge(30.0).fit(X, y)
    exact = approximate_loo(model, X, y)
    settings = {"method": "randomized", "n_probes": 400}
    found = approximate_loo(model, X, y, random_state=0, **settings)
    assert_allclose(found.mean, exact.mean, rtol=0.05)
    assert np.corrcoef(found.predictions, exact.predictions)[0, 1] > 0.98
    again = approximate_loo(model, X, y, random_state=0, **settings)
    assert again.mean == found.mean
    other = approximate_loo(model, X, y, random_state=1, **settings)
    assert other.mean != found.mean
    # Leverages of 3/4 on average, of which few probes see some near 1.
    X, y = X[:200], y[:200]
    model = Ridge(1.0).fit(X, y)
    settings["n_probes"] = 4
    with pytest.warns(UserWarning, match="The largest leverage is"):
        few = approximate_loo(model, X, y, random_state=0, **settings)
    assert np.isfinite(few.predictions).all()


def test_jackknife_moves_less(data):
    X, y, _ = data
    model = Ridge(0.7).fit(X, y)
    newton = approximate_loo(model, X, y, method="newton")
    first_order = approximate_loo(model, X, y, method="ij")
    moved = np.abs(first_order.predictions - model.predict(X))
    leverage = newton.leverages
    expected = np.abs(newton.predictions - model.predict(X)) * (1 - leverage)
    assert_allclose(moved, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The largest leverage is")
@pytest.mark.parametrize("method", ["alo", "randomized"])
def test_large_sparse_data_are_not_densified(method, rng):
    n, p, n_stored = 300, 300_000, 20
    columns = rng.integers(0, p, n * n_stored)
    entries = rng.standard_normal(n * n_stored), columns
    X = sparse.csr_matrix((*entries, np.arange(0, n * n_stored + 1, n_stored)), (n, p))
    y = np.asarray(X.sum(axis=1)).ravel() + rng.standard_normal(n)
    model = Ridge(1.0, solver="sparse_cg", tol=1e-10).fit(X, y)
    tracemalloc.start()
    found = approximate_loo(model, X, y, method=method, random_state=0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A tenth of what X would take, dense.
    assert most < 0.1 * 8 * n * p
    # Columns without an entry change nothing.
    used = X[:, np.unique(columns)].toarray()
    same = approximate_loo(
        Ridge(1.0).fit(used, y), used, y, method=method, random_state=0
    )
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-3)
