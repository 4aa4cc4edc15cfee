"""Runs on the smaller side of the data, and the same on the data as they are."""

import numpy as np

from skacv.risk.memory.curved_run import HELD_OUT
from tests.runs import fitted_attributes, reading

# With another loss than the squared error, held-out residuals come as factors, whose
# least modes are this share of the largest. Inner products, from which modes are found,
# round these by one over the share.
LEAST_MODE = HELD_OUT.kept * HELD_OUT.floor
FACTORS = 20 * np.finfo(float).eps / LEAST_MODE


def fit_reduced(model, *args, **kwargs):
    """Fit a model to data that may be reduced, and return the name of their class."""
    names = []

    def read(run):
        names.append(type(run.data).__name__)

    with reading(read, needs="moments", is_rotation_invariant=True):
        model.fit(*args, **kwargs)
    return names[-1]


def fit_plainly(model, *args, **kwargs):
    """Fit a model while an estimate needs the data as they are."""
    with reading(lambda run: None):
        return model.fit(*args, **kwargs)


def assert_same(model, other, tolerance, without=()):
    """All that two fits have left is the same, as a share of the largest entry.

    But for what comes from factors of held-out residuals, which have fewer digits.
    """
    names = fitted_attributes(other)
    assert names == fitted_attributes(model)
    is_quadratic = hasattr(model, "risk_gram_")
    for name in set(names) - set(without):
        found, expected = getattr(model, name), getattr(other, name)
        if name == "risk_residual_path_":  # its factors may turn
            found, expected = (
                np.tensordot(*each, axes=1) for each in (found, expected)
            )
        if isinstance(expected, list):
            found, expected = np.concatenate(found), np.concatenate(expected)
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape, name
        assert found.dtype == expected.dtype, name
        if expected.dtype.kind == "f" and expected.size:
            is_factored = name == "risk_prediction_path_" and not is_quadratic
            own = max(tolerance, FACTORS) if is_factored else tolerance
            size = own * max(np.abs(expected).max(), np.finfo(float).tiny)
            np.testing.assert_allclose(found, expected, 0, size, err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)
