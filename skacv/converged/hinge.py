"""Approximate leave-one-out of a linear support vector machine with the hinge.

The hinge has no curvature, but the shift by leaving out a row is known (Wang, Zhou,
Lu, Maleki & Mirrokni 2018, arXiv:1807.02694, section 4): rows on the margin, V,
stay on it, and rows within it, S, keep their subgradient. With
K = XX' / lambda and k_i its column of row i on the rows of V,

    i in S:  z_i - w_i y_i (K_ii - k_i' K_VV^-1 k_i)
    i in V:  z_i + g_i / (K_VV^-1)_ii

where g_i is the subgradient of row i; other rows move nothing. An unpenalised
intercept borders K_VV with its column of ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import pinvh

from ..optim.arrays import design_of
from ..optim.einsum import einsum
from ..optim.losses import Loss
from .model import ConvergedModel, LooPredictors

# Largest share of the coefficients that rows on the margin may fix: the mean hinge was
# 2% off at 3/4, 18% at 5/6.
PINNED = 0.8


@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge loss max(0, 1 - y z) of labels y = -1 or 1; runs do not take it."""

    name = "hinge loss"

    def value(self, target, predictor):
        return np.maximum(0, 1 - target * predictor)


@dataclass(frozen=True)
class HingeModel(ConvergedModel):
    """The minimiser of a sum of hinge losses and a ridge penalty."""

    on_margin: np.ndarray  # V, the rows of y_i z_i = 1, (n_rows,), bool
    within: np.ndarray  # S, the rows of y_i z_i < 1, (n_rows,), bool

    @property
    def is_pinned(self):
        """Whether the rows on the margin fix nearly all coefficients."""
        return bool(self.on_margin.sum() >= PINNED * len(self.coef))

    @cached_property
    def derivative(self):
        """Subgradients of the rows where the objective is stationary, (n_rows, 1)."""
        design, V = self.problem.design, np.flatnonzero(self.on_margin)
        labels, weights = self.problem.target, self.problem.row_weights
        derivative = np.where(self.within[:, None], -weights * labels, 0.0)
        rest = design.t_dot(derivative) + self.penalty.gradient(self.coef)
        every = np.arange(design.shape[1])
        rows = design.rows(V).dense_columns(every, design.dtype)
        multipliers = -labels[V] * np.linalg.lstsq(rows.T, -rest, rcond=None)[0]
        derivative[V] = -labels[V] * np.clip(multipliers, 0, weights[V])
        return derivative


def support_stays(model):
    """LooPredictors of rows, while those on the margin stay there."""
    V, S = np.flatnonzero(model.on_margin), np.flatnonzero(model.within)
    features, border = _features(model)
    # K_VV, bordered by the columns that are not penalised, and its (pseudo-)inverse.
    K_VV, n_spared = to_dense(features[V] @ features[V].T), border.shape[1]
    corner = np.zeros((n_spared, n_spared))
    inverse = np.block([[K_VV, border[V]], [border[V].T, corner]])
    if inverse.size:
        inverse = pinvh(inverse)
    shift = np.zeros(len(border))
    diagonal = inverse.diagonal()[: len(V)]
    is_fixed = diagonal > 0
    shift[V[is_fixed]] = model.derivative[V[is_fixed], 0] / diagonal[is_fixed]
    block = np.hstack([to_dense(features[S] @ features[V].T), border[S]])
    explained = einsum("ik,ik->i", block @ inverse, block)
    sizes = design_of(features).squared_row_norms()[S]
    shift[S] = model.derivative[S, 0] * (sizes - explained)
    leverages = model.on_margin.astype(float)[:, None]
    return LooPredictors(model.predictor + shift[:, None], leverages)


def _features(model):
    """Penalised columns over the root of their ridge, and the other columns."""
    design = model.problem.design
    ridge = model.penalty.hessian_diagonal(model.coef)[:, 0]
    inside = np.flatnonzero(ridge)
    X = design.selection(inside, design.dtype).X
    unpenalised = design.dense_columns(np.flatnonzero(ridge == 0), design.dtype)
    return X @ sparse.diags(1 / np.sqrt(ridge[inside])), unpenalised


def to_dense(product):
    """A sparse matrix as an array; an array as it is."""
    return product.toarray() if sparse.issparse(product) else product
