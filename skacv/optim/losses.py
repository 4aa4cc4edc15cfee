"""Losses: what one row costs, as a function of its target and linear predictor.

A loss is a small stateless class with

``value(target, predictor)``
    the cost of every entry;
``derivative(target, predictor)``
    its derivative in the linear predictor;
``curvature(target, predictor)``
    its second derivative;
``curvature_bound``
    the supremum of the curvature, which sets the step size.

All arrays have shape (n_rows, n_replicas). Add a loss here, list it in
``LOSSES``, and it inherits the tests of ``tests/optim/test_losses.py``.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SquaredError:
    """Half the squared error, l(y, z) = (y - z)^2 / 2."""

    curvature_bound = 1.0

    def value(self, target, predictor):
        return 0.5 * (target - predictor) ** 2

    def derivative(self, target, predictor):
        return predictor - target

    def curvature(self, target, predictor):
        return np.ones_like(predictor)


LOSSES = (SquaredError(),)
