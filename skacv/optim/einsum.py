"""NumPy's ``einsum``, also of operands without entries."""

import numpy as np


def einsum(subscripts, *operands):
    """Sums of products, zero where there is nothing to sum."""
    if all(operand.size for operand in operands):
        return np.einsum(subscripts, *operands)
    letters, result = subscripts.split("->")
    length = {
        letter: n
        for names, operand in zip(letters.split(","), operands)
        for letter, n in zip(names, operand.shape)
    }
    return np.zeros([length[letter] for letter in result], np.result_type(*operands))
