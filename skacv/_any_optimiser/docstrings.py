"""Texts of the parameters and attributes of estimators of any optimiser."""

from .._estimator.docstrings import SHARED, entries

OPTIMISED = SHARED | entries("""
loss : callable, default=None
    ``loss(y, prediction)``, one number per row. None is (y - prediction)^2.
max_iter : int, default=200
    Number of updates.
batch_size : int, default=None
    Number of rows in every update; rows are shuffled in every epoch. None uses all
    rows.
cv : int, cross-validation splitter or iterable, default=None
    Cross-validation folds, for ``cv_path_``. None: no folds;
    :class:`skacv.TrajectoryEarlyStoppingCV` then uses 5 random ones.
loo : bool or int, default=False
    Whether to leave out every row, one at a time, for ``loo_path_``; or the number
    of rows drawn at random to leave out.
train_path_ : ndarray of shape (n_iter_ + 1,)
    Mean loss of every iterate on the training rows.
cv_path_, loo_path_, cv_se_path_, loo_se_path_ : ndarray of shape (n_iter_ + 1,)
    Mean loss of every iterate on the held-out rows, and its standard error.
cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out)
    Held-out predictions of every iterate.
cv_indices_ : list of ndarray of int
    Indices of the rows that every fold holds out.
loo_indices_ : ndarray of int
    Indices of the rows left out one at a time.
n_iter_, iteration_ : int
    Index of the last iterate, and of the one in use.
""")

OF_CLASSES = entries("""
loss : callable, default=None
    ``loss(y, decision)``, one number per row, with the classes as 0, 1, ... None is
    the log loss, which gives probabilities.
classes_ : ndarray of shape (n_classes,)
    Labels of the classes.
cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out) or (n_iter_ + 1, n_held_out, n_classes)
    Held-out decision functions of every iterate.
""")

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
    ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update.
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
