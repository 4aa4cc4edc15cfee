"""Eigenvalues of one triangle, against LAPACK's of the whole matrix."""

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.packed import packed_eigenvalues


@pytest.mark.parametrize("size", [1, 2, 3, 40])
@pytest.mark.parametrize("kind", ["full", "diagonal", "low rank"])
def test_eigenvalues(size, kind, rng):
    X = rng.standard_normal((3 if kind == "low rank" else size + 5, size))
    matrix = np.diag(rng.random(size)) if kind == "diagonal" else X.T @ X
    triangle = np.concatenate([matrix[: j + 1, j] for j in range(size)])
    expected = np.linalg.eigvalsh(matrix)
    found = packed_eigenvalues(triangle, size)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * expected[-1])


@pytest.mark.parametrize("shape", [(70, 50), (50, 70)])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_spectrum_of_single_precision(shape, is_scaled, rng, set_limits):
    """As that of the same values in double precision, also beside large means."""
    set_limits(LARGE_BYTES=0)
    X = (rng.standard_normal(shape) + 100).astype(np.float32)
    weights = rng.random((shape[0], 1))
    weights /= weights.sum()
    found = []
    for values in (X, X.astype(np.float64)):
        design = design_of(values).centered(weights)
        design = design.scaled_rows(np.sqrt(weights)) if is_scaled else design
        found.append(design.spectrum())
    size = found[1].max()
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12 * size)
