"""Counts and amounts with exposures, and what glum makes of them.

``python -m tests.linear_model.offset_cases`` computes these numbers anew, where glum is
installed: its minima without a penalty, with ``offset``.
"""

import numpy as np

# Intercept and coefficients of glum 3.4.1.
GLUM = {
    "poisson": [
        0.3787540407162933,
        0.663933302077074,
        -0.903557236293655,
        0.1544319656250857,
    ],
    "gamma": [
        0.8051388733483291,
        0.5133516650598151,
        -0.7893513090544894,
        0.12349789385065903,
    ],
    "tweedie": [
        0.5576121120169893,
        0.669758162813057,
        -0.926714868718337,
        0.11663558056200309,
    ],
}


def drawn(kind, n_rows=300):
    """X, a target of a kind, and offsets, by formulas that need no generator's seed."""
    t = np.arange(1, n_rows + 1)
    X = np.stack([np.sin(t), np.cos(2.0 * t), np.sin(0.5 * t**1.5)], axis=1)
    offset = 1.2 * np.cos(3.0 * t) - 0.3
    mean = np.exp(X @ [0.5, -0.8, 0.2] + 0.4 + offset)
    noise = np.abs(np.sin(7.0 * t**1.3))
    counts, amounts = np.floor(mean * 2 * noise), mean * (0.2 + 2 * noise)
    y = {
        "poisson": counts,
        "gamma": amounts,
        "tweedie": np.where(counts > 0, amounts, 0.0),
    }
    return X, y[kind], offset


def fit_by_glum(kind):
    from glum import GeneralizedLinearRegressor, TweedieDistribution

    X, y, offset = drawn(kind)
    family = TweedieDistribution(1.5) if kind == "tweedie" else kind
    model = GeneralizedLinearRegressor(
        alpha=0, family=family, link="log", gradient_tol=1e-12, max_iter=1000
    )
    model.fit(X, y, offset=offset)
    return [float(model.intercept_), *model.coef_.tolist()]


if __name__ == "__main__":
    for kind in GLUM:
        print(f'    "{kind}": {fit_by_glum(kind)},')
