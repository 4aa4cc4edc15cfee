"""Conditions that raise an AssertionError, under ``python -O`` too."""

import numpy as np


def require(condition, sentence):
    """Raise an AssertionError with this sentence unless a condition holds."""
    if not condition:
        raise AssertionError(sentence)


def require_close(found, expected, sentence, rtol=1e-7, atol=0.0):
    """Raise an AssertionError with this sentence unless arrays are about equal.

    The error also says how far they are apart, in the words of NumPy.
    """
    np.testing.assert_allclose(
        found, expected, rtol=rtol, atol=atol, err_msg="\n" + sentence
    )


def require_same(found, expected, sentence, rtol=0.0):
    """Raise an AssertionError unless arrays are equal, numbers of them to ``rtol``."""
    found, expected = np.asarray(found), np.asarray(expected)
    if rtol and expected.dtype.kind == "f":
        scale = np.abs(expected).max(initial=0)
        require_close(found, expected, sentence, rtol=rtol, atol=rtol * scale)
    else:
        np.testing.assert_array_equal(found, expected, err_msg="\n" + sentence)
