"""Texts of the parameters and attributes of estimators of any optimiser."""

from inspect import getdoc

from .._estimator.docstrings import SHARED, entries
from .estimators import IteratedClassifier, IteratedModel

# Texts of the base classes.
OPTIMISED = SHARED | entries(getdoc(IteratedModel) or "")
OF_CLASSES = entries(getdoc(IteratedClassifier) or "")

OPTAX = OPTIMISED | entries("""
optimizer : optax.GradientTransformation, default=None
    None is ``optax.adam(0.05)``.
penalty : callable, default=None
    ``penalty(params)``, a number.
random_state : int, RandomState instance or None, default=None
    Controls the key, the random batches and the choice of left-out rows.
params_, params_path_ : pytree of ndarray
    Parameters of the iterate in use, and of all along the first axes.
""")

TORCH = OPTIMISED | entries("""
optimizer : callable, default=None
    ``optimizer(params)``, an elementwise optimiser of a list of tensors. None is
    ``torch.optim.Adam(params, 0.05)``.
scheduler : callable, default=None
    ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update. One
    that needs a loss, ``ReduceLROnPlateau``, is refused.
penalty : callable, default=None
    ``penalty(params)`` returns a number for a dict of tensors by name.
random_state : int, RandomState instance or None, default=None
    Seeds torch when the module is created, and controls the random batches and the
    choice of left-out rows.
module_ : torch.nn.Module
    The module with the parameters of the iterate in use.
params_, params_path_ : dict of str to Tensor
    Parameters of the iterate in use, and of all along the first axes.
""")
