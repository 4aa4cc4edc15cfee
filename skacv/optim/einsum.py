"""NumPy's ``einsum``, also of operands without entries."""

import numpy as np


def einsum(subscripts, *operands):
    """Sums of products, zero where there is nothing to sum.

    Where an operand has no entries NumPy (1.24 to 2.4) may read an entry beyond it and
    multiply that by zero: NaN where what lies in memory happens to be NaN or infinite.

    Parameters
    ----------
    subscripts : str
        With an arrow and without dots.

    Returns
    -------
    ndarray
    """
    if all(operand.size for operand in operands):
        return np.einsum(subscripts, *operands)
    letters, found = subscripts.split("->")
    length = {
        letter: n
        for names, operand in zip(letters.split(","), operands)
        for letter, n in zip(names, operand.shape)
    }
    return np.zeros([length[letter] for letter in found], np.result_type(*operands))
