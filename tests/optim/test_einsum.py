"""Sums of products of arrays without entries, in memory that is full of NaN."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from skacv.optim.einsum import einsum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("subscripts", ["ij,ij->i", "ji,ji->i"])
def test_nothing_is_read_where_there_are_no_entries(subscripts, dtype):
    """Strides of zero are those of ``np.empty``: with them NumPy's own sum is NaN."""
    memory = np.full(400, np.nan, dtype)
    shape = tuple({"i": 20, "j": 0}[name] for name in subscripts.split(",")[0])
    without = as_strided(memory, shape, (0,) * len(shape))
    beside = as_strided(memory, shape, (memory.itemsize,) * len(shape))
    for operands in ((without, beside), (beside, without)):
        found = einsum(subscripts, *operands)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.zeros(20))


def test_other_sums_are_those_of_numpy(rng):
    left, right = rng.standard_normal((2, 4, 3, 5))
    found = einsum("jkr,jkr->r", left, right)
    np.testing.assert_array_equal(found, np.einsum("jkr,jkr->r", left, right))
