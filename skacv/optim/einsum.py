"""NumPy's ``einsum`` of two arrays, also of arrays without entries."""

import numpy as np


def einsum(subscripts, left, right):
    """``np.einsum`` of two arrays, zeros if one of them is empty."""
    if left.size and right.size:
        return np.einsum(subscripts, left, right)
    names, result = subscripts.split("->")
    length = dict(zip(names.replace(",", ""), left.shape + right.shape))
    shape = [length[name] for name in result]
    return np.zeros(shape, np.result_type(left, right))
