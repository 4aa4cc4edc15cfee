"""Runs on the smaller side of the data, and the same on the data as they are."""

import numpy as np

import skacv._estimator.run.fit as fit_module
from skacv._estimator.run.data_reduction import reduce_data
from skacv.risk.memory.curved_run import HELD_OUT

# With another loss than the squared error, held-out residuals come as factors, whose
# least modes are this share of the largest. Inner products, from which modes are found,
# round these by one over the share.
LEAST_MODE = HELD_OUT.kept * HELD_OUT.floor
FACTORS = 20 * np.finfo(float).eps / LEAST_MODE


class Sides:
    """Notes which data every fit has run on, and can keep them as they are."""

    def __init__(self, monkeypatch):
        self.names, self.is_plain = [], False
        monkeypatch.setattr(fit_module, "reduce_data", self)

    def __call__(self, estimator, run, data, folds, recorded):
        if not self.is_plain:
            data, folds = reduce_data(estimator, run, data, folds, recorded)
        self.names.append(type(data).__name__)
        return data, folds

    def fitted(self, model, *args, **kwargs):
        """The model after a fit, and the name of what that was on."""
        model.fit(*args, **kwargs)
        return self.names[-1]

    def plainly(self, model, *args, **kwargs):
        """The model after a fit of the data as they are."""
        self.is_plain = True
        model.fit(*args, **kwargs)
        self.is_plain = False
        return model


def assert_same(model, other, tolerance, without=()):
    """All that two fits have left is the same, as a share of the largest entry.

    But for what comes from factors of held-out residuals, which have fewer digits.
    """
    names = [name for name in vars(other) if name.endswith("_") and name[0] != "_"]
    assert names == [name for name in vars(model) if name.endswith("_")]
    is_quadratic = model._loss.is_quadratic
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
