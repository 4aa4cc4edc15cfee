"""How far from the best iterate do rules stop that need no held-out rows?"""

import numpy as np

from skacv import IterativeRidge

from ..framework import header, line

N_UPDATES = 400
RULES = ("risk", "loo", "cv", "discrepancy", "GCV", "evidence")


def drawn(n_rows, n_columns, decay, noise, rng):
    """Rows with a decaying spectrum, targets, coefficients, scales of the columns."""
    scales = np.arange(1, n_columns + 1.0) ** (-decay / 2)
    X = rng.standard_normal((n_rows, n_columns)) * scales
    coef = rng.standard_normal(n_columns)
    coef /= np.sqrt(np.sum((coef * scales) ** 2))
    return X, X @ coef + noise * rng.standard_normal(n_rows), coef, scales


def chosen(X, y, noise):
    """The run, and the iterate that every rule chooses."""
    model = IterativeRidge(
        0.0,
        solver="gd",
        max_iter=N_UPDATES,
        tol=0,
        fit_intercept=False,
        risk=True,
        loo=True,
        cv=5,
    ).fit(X, y)
    residuals = y - model.coef_path_ @ X.T
    means = np.mean(residuals**2, axis=1)
    # The trace of the matrix that takes y to the fit: of the spectrum.
    curvatures = np.linalg.svd(X, compute_uv=False) ** 2 / len(y)
    powers = np.arange(len(means))[:, None]
    trace = np.sum(1 - (1 - model.step_size_ * curvatures) ** powers, axis=1)
    # Gradients of single rows have this variance; the gradient is stopped where it is
    # as small as its noise (Mahsereci, Balles, Lassner and Hennig 2017).
    gradients = residuals @ X / len(y)
    variances = residuals**2 @ X**2 / len(y) - gradients**2
    evidence = 1 - len(y) * np.mean(gradients**2 / variances, axis=1)
    rules = {
        "risk": model.risk_path_.argmin(),
        "loo": model.loo_path_.argmin(),
        "cv": model.cv_path_.argmin(),
        "discrepancy": first_of(means <= noise**2),
        "GCV": np.argmin(means / (1 - trace / len(y)) ** 2),
        "evidence": first_of(evidence > 0),
    }
    return model, rules


def first_of(mask):
    """The index of the first that is true, or the last index."""
    return int(np.argmax(mask)) if mask.any() else len(mask) - 1


def stopping_rules(n_draws=50):
    """Where does gradient descent for least squares stop, by rules without refits?

    The excess risk of the iterate that a rule chooses over that of the best iterate of
    the run, mean of 50 draws, and in brackets the median iterate. Columns are normal
    with variances k^-decay, coefficients normal, scaled to a signal of variance one.
    "risk", "loo" and "cv" are those of skacv. "Discrepancy" is the discrepancy
    principle, the first iterate whose mean squared residual is at most the variance of
    the noise, which it is given (Blanchard, Hoffmann and Reiss 2018; the package
    EarlyStoppingPy); "GCV" generalised cross-validation along the path (Patil, Wu and
    Tibshirani 2024); "evidence" the rule of Mahsereci, Balles, Lassner and Hennig
    (2017), "Early stopping without a validation set".
    """
    yield from header("rows x columns", "decay", "noise", "best", *RULES)
    for n_rows, n_columns in ((200, 50), (200, 200), (200, 600)):
        for decay in (0, 1):
            for noise in (0.5, 2.0):
                ratios, iterates = [], []
                for seed in range(n_draws):
                    rng = np.random.default_rng(seed)
                    X, y, coef, scales = drawn(n_rows, n_columns, decay, noise, rng)
                    model, rules = chosen(X, y, noise)
                    errors = ((model.coef_path_ - coef) * scales) ** 2
                    excess = errors.sum(axis=1)
                    picked = [rules[name] for name in RULES]
                    ratios.append(excess[picked] / excess.min())
                    iterates.append([excess.argmin(), *picked])
                best, *medians = np.median(iterates, axis=0).astype(int)
                means = np.mean(ratios, axis=0)
                cells = (f"{ratio:.2f} ({t})" for ratio, t in zip(means, medians))
                yield line(f"{n_rows} x {n_columns}", decay, noise, best, *cells)
    yield ""
