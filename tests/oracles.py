"""Slow and plain versions of what the package computes fast.

Nothing here shares code with the package but the recorded iterates, the steps
and the penalties.
"""

from math import ceil

import numpy as np
from sklearn.base import clone


def elementwise_jacobian(penalty, coef, step_size):
    """The derivative of a prox whose entries do not depend on each other."""
    return np.diag(penalty.prox_derivative(coef, step_size))


def group_jacobian(penalty, coef, step_size):
    """The derivative of the group lasso's prox: a block for each group.

    With r the norm of the point u and k the threshold, (1 - k / r) I + k u u' / r^3
    where r > k, else zeros.
    """
    found = np.zeros((len(coef), len(coef)))
    for group, weight in enumerate(penalty.weights):
        own = np.flatnonzero(penalty.groups == group)
        threshold = step_size * penalty.strength * weight
        norm = np.linalg.norm(coef[own])
        if norm > 0:
            point = coef[own] * (1 + threshold / norm)
            r = norm + threshold
            block = (1 - threshold / r) * np.eye(len(own))
            block += threshold * np.outer(point, point) / r**3
            found[np.ix_(own, own)] = block
        elif threshold == 0:
            found[own, own] = 1
    return found


def jacobians(gram, trajectory, of_prox=elementwise_jacobian):
    """M[t][s]: derivative of iterate t by a shock in the gradient at iterate s."""
    p = len(gram)
    n_updates = trajectory.n_updates
    M = np.zeros((n_updates + 1, n_updates + 1, p, p))
    identity = np.eye(p)
    for t, before, step, penalty in trajectory.updates():
        derivative = of_prox(penalty, trajectory.coef[t + 1, :, 0], step.step_size)
        ridge = penalty.smooth_gradient(np.ones(p))[:, None]
        for s in range(t + 1):
            moved = M[t, s] + step.momentum * (M[t, s] - M[before, s])
            point = M[t, s] + step.lookahead * (M[t, s] - M[before, s])
            # The gradient is taken at the affine combination of iterates.
            shock = (1 + step.lookahead) * (s == t) - step.lookahead * (s == before)
            change = gram @ point + ridge * point - shock * identity
            M[t + 1, s] = derivative @ (moved - step.step_size * change)
    return M


def memory_matrix(X, trajectory, of_prox=elementwise_jacobian):
    """A[t, s] = tr(X M_{t,s} X') / n, from full Jacobians (X centred, weighted)."""
    gram = X.T @ X / len(X)
    M = jacobians(gram, trajectory, of_prox)
    return np.einsum("tsij,ji->ts", M, gram)


def spectral_memory_matrix(eigenvalues, trajectory):
    """A of linear updates, whose Jacobians are diagonal in the eigenbasis of X'X."""
    n_iterates = trajectory.n_updates + 1
    M = np.zeros((n_iterates, n_iterates, len(eigenvalues)))
    for t, before, step, penalty in trajectory.updates():
        s = np.arange(n_iterates)[:, None]
        moved = M[t] + step.momentum * (M[t] - M[before])
        point = M[t] + step.lookahead * (M[t] - M[before])
        shock = (1 + step.lookahead) * (s == t) - step.lookahead * (s == before)
        change = (eigenvalues + penalty.curvature) * point - shock
        M[t + 1] = moved - step.step_size * change
    return M @ eigenvalues


def risk_gram(A, residuals, fit_intercept=False):
    """E'E / n over all pairs, with E = (I - A/n)^-1 F."""
    n = residuals.shape[1]
    degrees = n - 1 if fit_intercept else n
    E = np.linalg.solve(np.eye(len(A)) - A / degrees, residuals)
    return (E @ E.T) / degrees * (1 + 1 / n if fit_intercept else 1)


def risk_path_of(run, X, y, sample_weight=None, of_prox=elementwise_jacobian):
    """``risk_path_`` of a finished run (risk_row_scales=False), by Jacobians."""
    fit_intercept = run.estimator.fit_intercept
    Xw, yw = sqrt_weighted(X, y, sample_weight, fit_intercept)
    A = memory_matrix(Xw, run.trajectory, of_prox)
    residuals = yw - run.trajectory.coef[:, :, 0] @ Xw.T
    return np.diag(risk_gram(A, residuals, fit_intercept))


def row_scale_matrix(A, scales):
    """B with mean_i t_i B (I + t_i B)^-1 = A, exactly, iterate by iterate.

    With R_i = (I + t_i B)^-1, row t of B is found from the rows before it, as B
    mean_i(t_i R_i) = A, and row t of every R_i from R_i = I - t_i B R_i.
    """
    B = np.zeros_like(A)
    R = np.tile(np.eye(len(A)), (len(scales), 1, 1))
    for t in range(1, len(A)):
        mean = np.einsum("i,ist->st", scales, R[:, :t, :t]) / len(scales)
        B[t, :t] = np.linalg.solve(mean.T, A[t, :t])
        R[:, t, :t] = -scales[:, None] * (B[t, :t] @ R[:, :t, :t])
    return B


def row_scaled_path(A, residuals, scales, fit_intercept=False):
    """mean_i E_i^2 of every iterate, with E_i = (I + t_i B) F_i."""
    n = residuals.shape[1]
    degrees = n - 1 if fit_intercept else n
    B = row_scale_matrix(A / degrees, scales)
    E = residuals + scales * (B @ residuals)
    return (E**2).sum(axis=1) / degrees * (1 + 1 / n if fit_intercept else 1)


def probed_memory_matrix(X, coef_path, step_size, probes):
    """The textbook's memory matrix of ISTA: T^2 m / 2 tangent columns."""
    n, p = X.shape
    n_iterates, m = len(coef_path), probes.shape[1]
    A = np.zeros((n_iterates, n_iterates))
    source = X.T @ probes
    tangents = np.zeros((p, 0))
    for t in range(1, n_iterates):
        active = (coef_path[t] != 0)[:, None]
        tangents = tangents - step_size / n * (X.T @ (X @ tangents))
        tangents = active * np.hstack([tangents, source])
        traces = np.einsum("jm,jtm->t", source, tangents.reshape(p, t, m))
        A[t, :t] = step_size * traces / (n * m)
    return A


def sqrt_weighted(X, y, sample_weight=None, fit_intercept=False):
    """X and y centred by weighted means, rows times the root of their weight."""
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    weights = weights / weights.mean()
    if fit_intercept:
        X = X - np.average(X, axis=0, weights=weights)
        y = y - np.average(y, axis=0, weights=weights)
    root = np.sqrt(weights)
    return X * root[:, None], (y.T * root).T


def refitted_predictions(estimator, X, y, fitted, judged, sample_weight=None):
    """Predictions of every iterate of a refit on some rows, for others.

    What leave-one-out and folds are by definition: this very estimator with
    the same step size, fitted without the rows that judge it.

    Returns
    -------
    ndarray of shape (n_iter + 1, n_held_out, ...)
    """
    refit = clone(estimator).set_params(
        step_size=estimator.step_size_, risk=False, loo=False, cv=None
    )
    weights = None if sample_weight is None else sample_weight[fitted]
    refit.fit(X[fitted], y[fitted], sample_weight=weights)
    return np.array(list(refit.staged_predict(X[judged])))


def left_out_one_by_one(estimator, X, y, rows, sample_weight=None):
    """Held-out predictions of some rows, each by a refit without it."""
    every = np.arange(len(y))
    return np.concatenate(
        [
            refitted_predictions(estimator, X, y, every != i, [i], sample_weight)
            for i in rows
        ],
        axis=1,
    )


def iterates_without(problem, trajectory, row, penalty_scale=1.0):
    """Coefficients of every iterate of the recorded run, had it never seen a row.

    The weights of the others are brought back to a sum of one, but not in
    passes of batches, which keep them as they are.

    Returns
    -------
    ndarray of shape (n_iterates, n_columns, n_outputs)
    """
    X = problem.design.X
    X = X.toarray() if hasattr(X, "toarray") else X
    weights, n_rows = problem.row_weights.copy(), len(X)
    weights[row] = 0

    def gradient(rows, weights, coef):
        slope = problem.loss.derivative(problem.target[rows], X[rows] @ coef)
        return X[rows].T @ (weights[rows] * slope)

    path = [trajectory.coef[0]]
    for t, before, update, penalty in trajectory.updates():
        step = getattr(update, "update", update)  # of a pass, that on each batch
        coef = path[t] + step.momentum * (path[t] - path[before])
        point = path[t] + step.lookahead * (path[t] - path[before])
        if update.n_batches:
            parts = [(b, weights * n_rows / len(b)) for b in update.batches]
        else:
            parts = [(np.arange(n_rows), weights / weights.sum())]
        for rows, share in parts:
            point = coef if update.n_batches else point
            total = gradient(rows, share, point)
            total = total + penalty_scale * penalty.smooth_gradient(point)
            coef = coef - step.step_size * total
            coef = penalty.prox(coef, step.step_size * penalty_scale)
        path.append(coef)
    return np.array(path)


def size_nearby(held_out, residuals, new, fewest=20, smallest=0.1):
    """The size of residuals at one new prediction: a running mean, in loops.

    A window of k rows, in the order of predictions, stands at its middle row; between
    two middles there is a line, and beyond the first and the last their windows. Rows
    of equal predictions have the mean of their sizes, and so have windows at one place.
    """
    sizes = {}
    for m, r in zip(held_out, residuals):
        sizes.setdefault(m, []).append(abs(r))
    rows = [(m, np.mean(sizes[m])) for m in sorted(sizes) for _ in sizes[m]]
    n_rows = len(rows)
    k = min(n_rows, max(fewest, ceil(n_rows**0.8 / 2)))
    windows = {}
    for first in range(n_rows - k + 1):
        place = rows[first + (k - 1) // 2][0]
        mean = np.mean([size for _, size in rows[first : first + k]])
        windows.setdefault(place, []).append(mean)
    points = [(place, np.mean(windows[place])) for place in sorted(windows)]
    below = [point for point in points if point[0] <= new] or points[:1]
    above = [point for point in points if point[0] >= new] or points[-1:]
    (a, low), (b, high) = below[-1], above[0]
    found = low if a == b else low + (new - a) / (b - a) * (high - low)
    return max(found, smallest * np.mean(np.abs(residuals)))


def scaled_ends(held_out, residuals, new, coverage, units=None):
    """Intervals whose widths follow the prediction, row by row.

    Parameters
    ----------
    held_out, residuals : ndarray of shape (n_held_out,)
        Predictions and residuals of the held-out rows.
    new : ndarray of shape (n_samples,)
        Predictions of new rows.
    coverage : float
    units : ndarray of shape (n_held_out,), default=None
        Rows of one unit count as one, and are put into the same of five folds.
    """
    units = range(len(residuals)) if units is None else list(units)
    labels = list(dict.fromkeys(units))
    order = np.random.RandomState(0).permutation(len(labels))
    fold = {label: order[j] % min(5, len(labels)) for j, label in enumerate(labels)}
    ratios = []
    for m, r, unit in zip(held_out, residuals, units):
        others = np.array([fold[other] != fold[unit] for other in units])
        ratios.append(abs(r) / size_nearby(held_out[others], residuals[others], m))
    wanted = ceil(coverage * (len(labels) + 1) - 1e-9)
    ratio = least_with_mass(ratios, units, wanted)
    widths = [ratio * size_nearby(held_out, residuals, m) for m in new]
    return np.stack([new - widths, new + widths], axis=1)


def score_of_class(probabilities, k, method):
    """How little class k agrees with the probabilities of a row.

    "lac": Sadinle, Lei and Wasserman (2019). "aps": Romano, Sesia and Candes (2020),
    equation 7 with u = 1: the least tau at which the likeliest classes, up to the first
    whose sum exceeds tau, contain k.
    """
    if method == "lac":
        return 1 - probabilities[k]
    return sum(p for p in probabilities if p > probabilities[k])


def set_by_hand(known, labels, new, coverage, method, units=None):
    """The classes in the set of one row, in loops.

    Parameters
    ----------
    known : ndarray of shape (n_held_out, n_classes)
        Held-out probabilities.
    labels : ndarray of int, shape (n_held_out,)
    new : ndarray of shape (n_classes,)
    units : sequence, default=None
        Rows of one unit count as one; None: every row is one.
    """
    units = range(len(known)) if units is None else list(units)
    scores = [score_of_class(row, k, method) for row, k in zip(known, labels)]
    wanted = ceil(coverage * (len(set(units)) + 1) - 1e-9)
    quantile = least_with_mass(scores, units, wanted)
    return [k for k in range(len(new)) if score_of_class(new, k, method) <= quantile]


def least_with_mass(values, units, wanted):
    """The least value up to which so many units are, each of mass one in all."""
    units, mass = list(units), 0.0
    pairs = sorted((value, 1 / units.count(unit)) for value, unit in zip(values, units))
    for value, share in pairs:
        mass += share
        if mass >= wanted - 1e-9:
            return value
    raise AssertionError("There are too few units.")
