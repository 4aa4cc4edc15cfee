"""Texts of parameters and attributes of classes and methods, each written once.

A docstring lists names in braces, alone on a line, such as ``{cv, keep_data}``. The
decorator :func:`documented` puts the entries of these names there when the class is
made. Lines that are indented below it go on with the last entry. Entries are those of a
table, or of the docstring of another class or method.
"""

import re
from collections.abc import Callable
from inspect import getdoc
from textwrap import fill, indent
from typing import Any, TypeVar

Documented = TypeVar("Documented")
NAMES = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)
VALUE = re.compile(r"\{(\w+)\}")
# An entry begins with its name, and its second line is indented. A reference begins
# with a number and the first author.
ENTRY = re.compile(r"(?P<name>\w+).*\n +\S|\.\. \[\d+\] (?P<author>\w+)")


def documented(
    *sources: dict[str, str] | Callable[..., Any], **values: str
) -> Callable[[Documented], Documented]:
    """Decorator of a class or a method that fills in the docstring."""
    # A source is a dict of entries by name, or a class or method whose docstring has
    # the entries; later sources take precedence. Values replace names in braces, in
    # entries.
    texts = {}
    for source in sources:
        texts |= source if isinstance(source, dict) else entries(getdoc(source) or "")

    def entries_of(line):
        filled = (_completed(texts[name], values) for name in line[2].split(", "))
        return indent("\n".join(filled), line[1])

    def decorate(part):
        # With python -OO there are no docstrings.
        if part.__doc__ is not None:
            part.__doc__ = NAMES.sub(entries_of, part.__doc__)
        return part

    return decorate


def _completed(entry, values):
    """An entry with the values that a class gives, in lines of about equal length."""
    if not VALUE.search(entry):
        return entry
    head, body = VALUE.sub(lambda match: values[match[1]], entry).split("\n", 1)
    body = fill(" ".join(body.split()), 80, break_on_hyphens=False)
    return f"{head}\n{indent(body, '    ')}"


def entries(text):
    """Entries of sections in the format of numpydoc, by their names."""
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    matches = [(ENTRY.match(part), part.rstrip()) for part in parts]
    return {match["name"] or match["author"]: part for match, part in matches if match}


# Methods predict_interval and predict_set.
INTERVALS = entries("""
coverage : float or array-like of shape (n_coverages,), default=0.9
    Nominal probability that an interval contains the target of an unseen row. Several
    values give an interval for each.
ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
    Lower and upper ends, in units of y; with several coverages (n_samples, 2,
    n_coverages) or (n_samples, n_targets, 2, n_coverages).
""")
SETS = entries("""
coverage : float or array-like of shape (n_coverages,), default=0.9
    Nominal probability that a set contains the class of an unseen row. Several values
    give a set for each.
method : {"lac", "aps"}, default="lac"
    The score; a set has the classes whose score is at most a quantile of held-out
    scores (:doc:`how </guide/intervals>`). "lac": one minus the probability of the
    class [1]_. "aps": the probability of all likelier classes [2]_.
ndarray of bool, shape (n_samples, n_classes)
    Which of ``classes_`` are in the set; with several coverages (n_samples, n_classes,
    n_coverages). If fit was passed groups, the sets are for a row of a new group.
.. [1] Sadinle, Lei and Wasserman (2019), "Least ambiguous set-valued classifiers with
       bounded error levels".
.. [2] Romano, Sesia and Candes (2020), "Classification with valid and adaptive
       coverage".
""")

# All linear models.
SHARED = entries("""
alpha_path_ : ndarray of shape (n_iter_ + 1,)
    Value of alpha in the update that led to every iterate; row 0, the start, has that
    of the first update.
loo_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``loo_path_``, over the rows left out.
loo_indices_ : ndarray of shape (n_left_out,)
    Indices of the rows of X that were left out, one at a time.
loo_target_ : ndarray of shape (n_left_out,)
    Targets of these rows.
cv_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``cv_path_``, over the folds; with one fold, over its rows, or
    their groups. Folds that hold out rows repeatedly do not make it smaller.
cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
    Error of every iterate on every fold.
cv_target_ : ndarray of shape (n_held_out,)
    Targets of these rows, fold after fold.
n_features_in_ : int
    Number of features seen in fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X has string column names.
""")

LINEAR = SHARED | entries("""
standardize : bool or "auto", default=False
    Whether to scale the columns to mean zero and variance one before the run, so
    that the penalty applies to coefficients in units of standard deviations.
    ``coef_``, paths and intervals are still in units of X. Folds of ``cv`` are
    standardised by their training rows, as in a refit; leave-one-out and
    ``risk_path_`` use the scales of all rows. Sparse columns are scaled but not
    centred; constant columns are left unchanged. "auto" is True for dense X. Columns
    of sparse X in memory are then divided by the standard deviation over the fourth
    root of the share of nonzero entries, from all rows, also in folds: so rare words
    of texts do not count as much as frequent ones.
max_iter : int, default=200
    Maximum number of updates at each value of alpha. Reaching it is normal.
tol : float, default=1e-6
    Updates at a value of {strength} stop when no coefficient changes by more than
    ``tol`` times the largest coefficient in absolute value.
loo : {"auto"}, bool or int, default="auto"
    Rows to leave out, one at a time, along the path: every row (True), a given
    number of rows drawn at random, or none (False). "auto": every row if that takes
    about as long as folds, otherwise as many random rows as fit into that time, or
    none if these are too few.
cv : int, splitter or iterable, default=None
    Cross-validation folds, as in scikit-learn. All folds are fitted side by side
    with the run on all rows. None: no ``cv_path_``.
keep_data : bool, default=False
    Whether to keep a copy of the training data, which :meth:`coef_table` needs, and
    :meth:`predict_interval` for the jackknife+. Otherwise neither the fitted model
    nor its pickle contains rows of X.
n_jobs : int, default=None
    Number of blocks of held-out rows, or of folds, that are computed in parallel.
    None means 1 unless in a :func:`joblib.parallel_config` context.
verbose : int or bool, default=0
    Whether to print progress messages.
coef_ : ndarray of shape (n_features,)
    Coefficients of the iterate in use, the last after ``fit``.
intercept_ : float
    Intercept of the iterate in use.
coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
    Coefficients of every iterate: row 0 is the starting point, row t the result of
    t updates, or of t passes with batches.
intercept_path_ : ndarray of shape (n_iter_ + 1,)
    Intercept of every iterate.
objective_path_ : ndarray of shape (n_iter_ + 1,)
    Value of the objective at every iterate, for the alpha used there.
train_path_ : ndarray of shape (n_iter_ + 1,)
    Mean {loss} on the training rows.
risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
    Estimated prediction for every row by the iterates fitted without it. It is
    indexed like an array; an iterate is computed from low-rank factors when it is
    accessed.
risk_indices_ : ndarray of shape (n_rows,)
    Indices in X of the rows of ``risk_prediction_path_``.
risk_target_ : ndarray of shape (n_rows,)
    Targets of these rows.
loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
    Prediction for every left-out row by the iterates fitted without it.
cv_path_ : ndarray of shape (n_iter_ + 1,)
    Cross-validation error of every iterate: the (weighted) mean {loss} on all
    held-out rows. Exact.
cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
    Predictions for the held-out rows, fold after fold. If they are more than 4
    million numbers, or 1 million where :class:`TrajectoryEarlyStoppingCV` has
    chosen the iterate, only ``keep_data=True`` keeps them, and ``cv_indices_`` and
    ``cv_target_``.
cv_indices_ : list of ndarray of int
    Indices of the rows that every fold holds out.
n_iter_ : int
    Number of recorded updates, or of passes with batches.
iteration_ : int
    Index of the iterate in use, as a row of the paths.
step_size_ : float
    The step size used.
""")

# Linear models of the squared error.
SQUARED = LINEAR | entries("""
alpha : float, array-like or "path", default=1.0
    Strength of the penalty. A sequence of values is fitted in one warm-started
    trajectory from the largest to the smallest, whatever its order, with
    ``max_iter`` updates at each value and the momentum restarted at each.
penalty_weights : array-like of shape (n_features,), default=None
    Nonnegative factors that multiply the penalty of every coefficient. A
    coefficient with weight zero is not penalised; "path" then starts where all
    others are zero. None: all weights are one.
fit_intercept : bool, default=True
    Whether to fit an intercept, by centring X and y by their (weighted) means. X is
    not copied.
solver : {"fista", "ista"}, default="fista"
    Accelerated or plain proximal gradient descent.
step_size : float or "auto", default="auto"
    "auto" is 1 / L, where L is the largest eigenvalue of X'X / n (X centred), with
    a margin of 2% if X has more than 128 rows and columns. It is smaller if the run
    without one of the rows needs a smaller step to be stable. It depends on X only:
    the estimates do not hold for a step size that depends on y.
risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
    How the traces in ``risk_path_`` are computed: exactly; with random probes,
    added until their standard error is below the standard error of the estimate
    ("hutchinson"); or with a given number of random probes. "auto" and True:
    exactly if X has at most 100 rows or columns (and few enough active columns for
    memory), otherwise with probes. False: no ``risk_path_``.
risk_row_scales : bool, default=True
    Whether ``risk_path_`` accounts for the larger leverage of rows with a larger
    norm. False: every row has the leverage of an average row, as in the published
    estimate [1]_, which is too low for heavy-tailed rows.
warm_start : bool, default=False
    Whether fitting again continues the recorded trajectory. With a larger
    ``max_iter`` (and a single alpha, or further values), all paths equal those of
    one longer run; with another alpha, solver or step size, the trajectory
    continues with the new setting. With other data (which do not reproduce the
    recorded training errors), another ``fit_intercept`` or ``standardize``, a new
    trajectory starts from ``coef_``, with a warning.
random_state : int, RandomState instance or None, default=None
    Controls the random probes and the choice of left-out rows.
risk_path_ : ndarray of shape (n_iter_ + 1,)
    Estimated mean squared prediction error of every iterate on unseen rows, noise
    included, in squared units of y [1]_.
loo_path_ : ndarray of shape (n_iter_ + 1,)
    Leave-one-out error of every iterate, exact: the (weighted) mean over rows of
    the squared error on the row of iterate t fitted without it, with the same step
    size and number of updates at every alpha.
.. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
       algorithms in linear models with application to early stopping",
       arXiv:2404.17856.
""")

# Linear models of other losses.
CURVED = LINEAR | entries("""
alpha : float, array-like or "path", default={alpha}
    Strength of the penalty. A sequence of values is fitted in one warm-started
    trajectory from the largest to the smallest, whatever its order, with
    ``max_iter`` updates at each value and the momentum restarted at each; "path" is
    a geometric grid of 10 values, from the alpha at which the curvature of the
    penalty equals that of the loss, down to 1e-5 of that.
fit_intercept : bool, default=True
    Whether to fit an intercept: the unpenalised coefficient of a column of ones
    that is added to X. Convergence is faster with centred features.
risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
    How the traces in ``risk_path_`` are computed: exactly, which takes one
    derivative of the whole run for every row; with random signs of the rows, added
    until their standard error is below the standard error over the rows
    ("hutchinson", or True); or with a given number of random signs. "auto": with
    random signs if that takes about as long as folds, otherwise no ``risk_path_``.
    False: no ``risk_path_``.
risk_row_scales : bool, default=True
    Whether ``risk_path_`` accounts for the larger leverage of rows with a larger
    norm, if norms vary more than for Gaussian rows. False: every row has the
    leverage of an average row.
loo_correction : bool, default=True
    Whether to correct, at some iterates, the error of linearising the iterates
    without a row around the recorded ones [1]_. Iterates are linearised if there
    are more rows than columns. False is the published method.
risk_path_ : ndarray of shape (n_iter_ + 1,)
    Estimated mean {loss} of every iterate on unseen rows, from the memory matrix
    [2]_ of this loss, which is the same for all rows. No row is left out.
risk_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``risk_path_``, from the spread over rows and from the random
    signs.
risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
    Part of ``risk_se_path_`` due to the random signs; zero if traces are exact.
n_probes_ : int
    Number of random signs used for every row; 0 if traces are exact.
row_scale_share_ : float
    Share, between 0 and 1, of the spread of the row norms by which leverages are
    scaled.
loo_path_ : ndarray of shape (n_iter_ + 1,)
    Leave-one-out error of every iterate: the (weighted) mean over rows of the
    {loss} on the row of iterate t fitted without it, with the same step size and
    number of updates at every {strength}, and the same batches, if any, except for
    that row. Exact where linearising would save little time (few rows per column,
    short runs, small batches). Otherwise the iterates without a row are linearised
    around the recorded ones and corrected, or computed exactly for rows where that
    is not accurate enough.
.. [1] Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
       ICML, arXiv:2303.02732.
.. [2] Tan and Bellec (2024), "Estimating generalization performance along the
       trajectory of proximal SGD in robust regression", NeurIPS,
       arXiv:2410.02629, equations 8 to 11.
""")

# Models of other losses with solver="sgd".
STOCHASTIC = CURVED | entries("""
solver : {"nesterov", "gd", "sgd"}, default="nesterov"
    Accelerated gradient descent, gradient descent, or stochastic gradient
    descent in batches.
max_iter : int, default=200
    Maximum number of updates at each value of {strength}; with "sgd", of passes
    through the rows. Reaching it is normal.
step_size : float or "auto", default="auto"
    "auto" is 1 / L, where L is the largest eigenvalue of X'WX times the largest
    curvature of the loss ({curvature}), plus that of the penalty; with a margin of
    2% if X has more than 128 rows and columns. It depends on X only. With "sgd" it
    is half of 1 / L, where L is the expected smoothness of batches [3]_.
batch_size : int, default=32
    Number of rows in a batch of "sgd". Batches are drawn anew for each pass.
power_t : float, default=0.0
    The step of pass k of "sgd" is ``step_size / k**power_t``. With a constant step
    the iterates stay in a neighbourhood of the optimum.
warm_start : bool, default=False
    Whether fitting again continues the recorded trajectory: with a larger
    ``max_iter`` as one longer run, with another {strength} as along a sequence of
    values. A run in batches cannot be continued with updates on all rows, nor vice
    versa.
random_state : int, RandomState instance or None, default=None
    Controls the random batches and the choice of left-out rows.
.. [3] Gower et al. (2019), "SGD: general analysis and improved rates", ICML,
       section 3.1.
""")

CLASSIFIERS = entries("""
class_weight : dict, "balanced" or None, default=None
    Weights of the classes, as in scikit-learn. They do not change when rows are
    left out.
keep_data : bool, default=False
    Whether to keep a copy of the training data, which :meth:`coef_table` needs.
classes_ : ndarray of shape (n_classes,)
    Labels of the classes.
coef_ : ndarray of shape (n_outputs, n_features)
    Coefficients of the iterate in use, the last after ``fit``; one output
    for two classes, else one per class.
intercept_ : ndarray of shape (n_outputs,)
    Intercepts of the iterate in use.
coef_path_ : ndarray of shape (n_iter_ + 1, n_outputs, n_features)
    Coefficients of every iterate; row 0 is the start.
intercept_path_ : ndarray of shape (n_iter_ + 1, n_outputs)
    Intercepts of every iterate.
risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows[, n_classes])
    Estimated decision function for every row, by the iterates fitted without it. It
    is indexed like an array; an iterate is computed from low-rank factors when it
    is accessed.
loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
    Decision function for every left-out row, by the iterates fitted without it.
cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_classes])
    Decision function for the held-out rows, fold after fold. If they are more than
    4 million numbers, or 1 million where :class:`TrajectoryEarlyStoppingCV` has
    chosen the iterate, only ``keep_data=True`` keeps them, and ``cv_indices_`` and
    ``cv_target_``.
""")

# Classifiers with C times the sum of the losses.
INVERSE = (
    STOCHASTIC
    | CLASSIFIERS
    | entries("""
C : float, array-like or "path", default=1.0
    Inverse strength of the penalty, positive. A sequence of values is fitted in one
    warm-started trajectory from the smallest to the largest, whatever its order,
    with ``max_iter`` updates at each value and the momentum restarted at each.
C_path_ : ndarray of shape (n_iter_ + 1,)
    Value of C in the update that led to every iterate; row 0, the start, has that of
    the first update.
objective_path_ : ndarray of shape (n_iter_ + 1,)
    Value of the objective at every iterate, divided by C times the sum of the
    weights.
""")
)

# Linear models of any loss, penalty and schedule.
PARTS = entries("""
alpha : float, array-like or "path", default={alpha}
    Factor of the strength of the penalty. A sequence of values is fitted in one
    warm-started trajectory from the largest to the smallest, whatever its order,
    with ``max_iter`` updates at each value and the momentum restarted at each;
    "path" is a geometric grid of 30 values, from the smallest alpha that keeps all
    penalised coefficients at zero down to {smallest} of it. With "l2" it has 10
    values, from the alpha at which the curvature of the penalty equals that of the
    loss.
penalty : {"l1", "l2", "elasticnet", "mcp", "scad"}, Penalty or None, \
default="{penalty}"
    The l1 norm, half the squared Euclidean norm, their mean, the minimax concave
    penalty (gamma=3) or the smoothly clipped absolute deviation (a=3.7). Or a
    penalty from ``skacv.optim.penalties``, or a weighted or grouped one from
    ``skacv.optim.families``, or one of your own; ``alpha`` multiplies its
    ``strength``. None: no penalty.
schedule : {"nesterov", "gd", "heavy_ball", "newton"} or schedule, \
default="nesterov"
    Accelerated gradient descent, gradient descent, Polyak's heavy ball (momentum
    0.9), or Newton's method, for smooth penalties only. Or a schedule from
    ``skacv.optim.schedules`` or one of your own: a frozen dataclass whose
    ``step_size`` is replaced by the one of this estimator.
step_size : float or "auto", default="auto"
    "auto" is 1 / L (1 with "newton"), where L is the largest eigenvalue of X'WX
    times the largest curvature of the loss, plus that of the penalty; or the
    largest step at which the run without any single row is stable, if that is less.
    It depends on X only: the estimates do not hold for a step size that depends on
    y. The concave penalties "mcp" and "scad" need steps below gamma and a - 1:
    scale the columns to unit variance.
ValueError
    Raised by ``fit`` if a loss, penalty or schedule does not do what it declares,
    or if two of them cannot be combined, such as a Newton step and a penalty with a
    prox. The message says which.
""")
