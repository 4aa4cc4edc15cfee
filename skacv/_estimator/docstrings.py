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
        filled = (_complete(texts[name], values) for name in line[2].split(", "))
        return indent("\n".join(filled), line[1])

    def decorate(part):
        # With python -OO there are no docstrings.
        if part.__doc__ is not None:
            part.__doc__ = NAMES.sub(entries_of, part.__doc__)
        return part

    return decorate


def _complete(entry, values):
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
LEVELS = entries("""
levels : array-like of shape (n_levels,), default=(0.05, 0.5, 0.95)
    Nominal probabilities, between 0 and 1, that the target of an unseen row is at most
    the quantile.
ndarray of shape (n_samples, n_levels) or (n_samples, n_targets, n_levels)
    In units of y. At a higher level a quantile is never smaller.
""")
# Regressors, in fit and for new rows.
OFFSETS = {
    "offset": """\
offset : array-like of shape (n_samples,) or float, default=None
    Known parts of the linear predictors: those of a row are x'b + offset, as with
    the logarithm of an exposure where y has counts. Losses are then those of
    changed targets and weights: of a Poisson deviance per unit of exposure.""",
    "new_offset": """\
offset : array-like of shape (n_samples,) or float, default=None
    That of these rows, which a model fitted with an offset needs.""",
}
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
    Value of alpha used for the update to each iterate; row 0, the start, has the
    first value.
loo_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``loo_path_``, over the rows left out.
loo_indices_ : ndarray of shape (n_left_out,)
    Indices of the rows of X that were left out, one at a time.
loo_target_ : ndarray of shape (n_left_out,)
    Targets of the rows left out.
cv_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``cv_path_`` over the folds; with one fold, over its rows or
    their groups. Repeated splits do not make it smaller.
cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
    Error of every iterate on every fold.
cv_target_ : ndarray of shape (n_held_out,)
    Targets of the held-out rows, fold after fold.
n_features_in_ : int
    Number of features seen in fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X has string column names.
""")

LINEAR = SHARED | entries("""
standardize : bool or "auto", default=False
    Whether to run on columns with mean zero and variance one, so that the penalty
    applies to standardised coefficients. Results stay in units of X. Sparse columns
    are only scaled, and :doc:`less by "auto" </guide/regression>`.
max_iter : int, default=200
    Maximum number of updates at each value of alpha. Reaching it is normal.
tol : float, default=1e-6
    Updates at a value of {strength} stop when no coefficient changes by more than
    ``tol`` times the largest absolute coefficient.
loo : {"auto"}, bool or int, default="auto"
    Rows to leave out, one at a time, along the path: all (True), a number of random
    rows, or none (False). "auto": as many as :doc:`take about as long as folds
    </estimates>`.
cv : int, splitter or iterable, default=None
    Cross-validation folds, as in scikit-learn, fitted side by side with the run on
    all rows. None: no ``cv_path_``.
keep_data : bool, default=False
    Whether to keep a copy of the training data, for :meth:`coef_table` and the
    jackknife+ of :meth:`predict_interval`. Otherwise neither the model nor its
    pickle contains rows of X.
n_jobs : int, default=None
    Number of folds, or of blocks of left-out rows, computed in parallel. None means
    1 unless in a :func:`joblib.parallel_config` context.
verbose : int or bool, default=0
    Whether to print progress messages.
coef_ : ndarray of shape (n_features,)
    Coefficients of the iterate in use, the last after ``fit``.
intercept_ : float
    Intercept of the iterate in use.
coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
    Coefficients of every iterate: row 0 is the start, row t the result of t
    updates, or of t passes with batches.
intercept_path_ : ndarray of shape (n_iter_ + 1,)
    Intercept of every iterate.
objective_path_ : ndarray of shape (n_iter_ + 1,)
    Value of the objective at every iterate, for the alpha used there.
train_path_ : ndarray of shape (n_iter_ + 1,)
    Mean {loss} on the training rows.
risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
    Estimated prediction for every row by the iterates fitted without it. It is
    indexed like an array and computed iterate by iterate.
risk_indices_ : ndarray of shape (n_rows,)
    Indices in X of the rows of ``risk_prediction_path_``.
risk_target_ : ndarray of shape (n_rows,)
    Targets of these rows.
loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
    Prediction for every left-out row by the iterates fitted without it.
cv_path_ : ndarray of shape (n_iter_ + 1,)
    Cross-validation error of every iterate, exact: the (weighted) mean {loss} on
    all held-out rows.
cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
    Predictions for the held-out rows, fold after fold. With more than 4 million
    numbers, or 1 million for a chosen iterate, they and ``cv_target_`` need
    ``keep_data=True``.
cv_indices_ : list of ndarray of int
    Indices of the rows held out by each fold.
record_ : Record
    What is kept of the run; other fitted attributes are read from it.
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
    Penalty strength, or a sequence of strengths for one warm-started run, from the
    largest to the smallest, with up to ``max_iter`` updates at each.
penalty_weights : array-like of shape (n_features,), default=None
    Nonnegative factors of the penalty of each coefficient; zero means unpenalised.
    None: all are one.
fit_intercept : bool, default=True
    Whether to fit an intercept, by centring X and y at their (weighted) means. X is
    not copied.
solver : {"fista", "ista"}, default="fista"
    Accelerated or plain proximal gradient descent.
step_size : float or "auto", default="auto"
    "auto" is 1 / L, with L the largest eigenvalue of X'X / n (X centred) and a
    margin of 2% for more than 128 rows and columns, or less if runs without a row
    need it. It must not depend on y.
risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
    Traces in ``risk_path_``: "exact", by random probes up to the needed precision
    ("hutchinson"), by a number of probes, or none (False). "auto" and True:
    :doc:`exact on small data, otherwise by probes </estimates>`.
risk_row_scales : bool, default=True
    Whether ``risk_path_`` accounts for rows of uneven norm. False: every row has
    the leverage of an average row, as in the published estimate [1]_, which is too
    low for heavy-tailed rows.
warm_start : bool, default=False
    Whether ``fit`` continues the recorded run, as one longer run or :doc:`with new
    settings </guide/regression>`. Other data, ``fit_intercept`` or ``standardize``
    start a new run from ``coef_``, with a warning.
random_state : int, RandomState instance or None, default=None
    Controls the random probes and the choice of left-out rows.
risk_path_ : ndarray of shape (n_iter_ + 1,)
    Estimated mean squared prediction error of every iterate on unseen rows, noise
    included, in squared units of y [1]_.
loo_path_ : ndarray of shape (n_iter_ + 1,)
    Leave-one-out error of every iterate, exact: the (weighted) mean squared error
    on row i of iterate t fitted without row i, with the same step size and numbers
    of updates.
.. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
       algorithms in linear models with application to early stopping",
       arXiv:2404.17856.
""")

# Linear models of other losses.
CURVED = LINEAR | entries("""
alpha : float, array-like or "path", default={alpha}
    Penalty strength, or a sequence of strengths for one warm-started run, from the
    largest to the smallest, with up to ``max_iter`` updates at each. "path": 10
    values, down from where penalty and loss have equal curvature.
fit_intercept : bool, default=True
    Whether to fit an intercept, the unpenalised coefficient of a column of ones.
    Convergence is faster with centred features.
risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
    Traces in ``risk_path_``: "exact", by random signs of the rows up to the needed
    precision ("hutchinson", True), by a number of signs, or none (False). "auto":
    :doc:`by signs if as fast as folds </estimates>`, otherwise none.
risk_row_scales : bool, default=True
    Whether ``risk_path_`` accounts for rows of uneven norm, if norms vary more than
    for Gaussian rows. False: every row has the leverage of an average row.
loo_correction : bool, default=True
    Whether to correct the :doc:`linearised </estimates>` leave-one-out runs at some
    iterates. False is the published method [1]_.
risk_path_ : ndarray of shape (n_iter_ + 1,)
    Estimated mean {loss} of every iterate on unseen rows, from the memory matrix
    [2]_ of this loss. No row is left out.
risk_se_path_ : ndarray of shape (n_iter_ + 1,)
    Standard error of ``risk_path_``, from the spread over rows and the random
    signs.
risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
    Part of ``risk_se_path_`` due to the random signs; zero if traces are exact.
n_probes_ : int
    Number of random signs used for every row; 0 if traces are exact.
row_scale_share_ : float
    Share, between 0 and 1, of the spread of row norms by which leverages are
    scaled.
loo_path_ : ndarray of shape (n_iter_ + 1,)
    Leave-one-out error of every iterate: the (weighted) mean {loss} on row i of
    iterate t fitted without row i. :doc:`Exact or linearised and corrected
    </estimates>`, whichever is cheap and accurate.
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
    Maximum number of updates at each value of {strength}, or of passes over the
    rows with "sgd". Reaching it is normal.
step_size : float or "auto", default="auto"
    "auto" is 1 / L, with L the largest eigenvalue of X'WX times the largest
    curvature of the loss ({curvature}), plus that of the penalty; with "sgd" half
    of 1 / L for batches [3]_.
batch_size : int, default=32
    Number of rows per batch of "sgd". New batches are drawn for each pass.
power_t : float, default=0.0
    The step of pass k of "sgd" is ``step_size / k**power_t``. With a constant step
    the iterates stay in a neighbourhood of the optimum.
warm_start : bool, default=False
    Whether ``fit`` continues the recorded run: with a larger ``max_iter`` as one
    longer run, with another {strength} as along a sequence. Runs with and without
    batches cannot continue each other.
random_state : int, RandomState instance or None, default=None
    Controls the random batches and the choice of left-out rows.
.. [3] Gower et al. (2019), "SGD: general analysis and improved rates", ICML,
       section 3.1.
""")

CLASSIFIERS = entries("""
class_weight : dict, "balanced" or None, default=None
    Class weights, as in scikit-learn. They do not change when rows are left out.
keep_data : bool, default=False
    Whether to keep a copy of the training data, which :meth:`coef_table` needs.
classes_ : ndarray of shape (n_classes,)
    Labels of the classes.
coef_ : ndarray of shape (n_outputs, n_features)
    Coefficients of the iterate in use, the last after ``fit``; one output for two
    classes, otherwise one per class.
intercept_ : ndarray of shape (n_outputs,)
    Intercepts of the iterate in use.
coef_path_ : ndarray of shape (n_iter_ + 1, n_outputs, n_features)
    Coefficients of every iterate; row 0 is the start.
intercept_path_ : ndarray of shape (n_iter_ + 1, n_outputs)
    Intercepts of every iterate.
risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows[, n_classes])
    Estimated decision function for every row, by the iterates fitted without it. It
    is indexed like an array and computed iterate by iterate.
loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
    Decision function for every left-out row, by the iterates fitted without it.
cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_classes])
    Decision function for the held-out rows, fold after fold. With more than 4
    million numbers, or 1 million for a chosen iterate, it and ``cv_target_`` need
    ``keep_data=True``.
""")

# Classifiers with C times the sum of the losses.
INVERSE = (
    STOCHASTIC
    | CLASSIFIERS
    | entries("""
C : float, array-like or "path", default=1.0
    Inverse penalty strength, or a sequence for one warm-started run, from the
    smallest to the largest, with up to ``max_iter`` updates at each.
C_path_ : ndarray of shape (n_iter_ + 1,)
    Value of C used for the update to each iterate; row 0, the start, has the first
    value.
objective_path_ : ndarray of shape (n_iter_ + 1,)
    Objective at every iterate, divided by C times the sum of the weights.
""")
)

# Linear models of any loss, penalty and schedule.
PARTS = entries("""
alpha : float, array-like or "path", default={alpha}
    Penalty strength, or a sequence for one warm-started run, largest first. "path":
    30 values from the smallest that keeps penalised coefficients at zero down to
    {smallest} of it; with "l2" 10 values.
penalty : {"l1", "l2", "elasticnet", "mcp", "scad", "group_lasso"}, Penalty or None, \
default="{penalty}"
    The l1 norm, half the squared Euclidean norm, their mean, MCP (gamma=3), SCAD
    (a=3.7) or the sum of the norms of ``groups`` times the square roots of their sizes;
    a penalty of ``skacv.optim``; or :doc:`your own </extending>`. ``alpha`` multiplies
    its ``strength``. None: no penalty.
groups : int, array-like of shape (n_features,) or list of array-like, default=1
    The groups of "group_lasso", which other penalties ignore: a label for every
    feature; or a list of feature indices for every group; or the size of consecutive
    groups.
schedule : {"nesterov", "gd", "heavy_ball", "newton"} or schedule, \
default="nesterov"
    Accelerated or plain gradient descent, Polyak's heavy ball (momentum 0.9) or
    Newton's method (smooth penalties only); one of ``skacv.optim.schedules``; or
    :doc:`your own </extending>`.
step_size : float or "auto", default="auto"
    "auto" is 1 / L (1 with "newton"), with L the largest eigenvalue of X'WX times
    the largest curvature of the loss (of each row, under a log link), plus that of
    the penalty. It must not depend on y; "mcp" and "scad" need it below gamma and
    a - 1.
ValueError
    Raised by ``fit`` if a loss, penalty or schedule does not do what it declares,
    or two of them cannot be combined, such as a Newton step and a penalty with a
    prox.
""")
