"""What statsmodels finds on the rows of tests/r/glm_rows.csv.

``python -m tests.statsmodels.glm``, with statsmodels 0.15.0, writes glm.csv beside it.
"""

import csv

import numpy as np
import statsmodels.api as sm

from tests.r import read_rows

from . import FOLDER

ROWS = read_rows("glm")
A = sm.add_constant(np.column_stack([ROWS[f"x{k}"] for k in range(1, 5)]))
LOG = sm.families.links.Log()
FAMILIES = {
    "binomial": ("binomial", sm.families.Binomial(), {}),
    "poisson": ("poisson", sm.families.Poisson(), {}),
    "claims": ("claims", sm.families.Poisson(), {"exposure": ROWS["exposure"]}),
    "gamma": ("gamma", sm.families.Gamma(LOG), {}),
    "tweedie 1.5": ("gamma", sm.families.Tweedie(LOG, var_power=1.5), {}),
    "negative_binomial": (
        "negative_binomial",
        sm.families.NegativeBinomial(LOG, alpha=0.5),
        {},
    ),
}


def errors(model, params):
    """Standard errors at a dispersion of one, and the dispersion.

    By second derivatives of the rows themselves, where statsmodels has expected ones by
    default.
    """
    curvature = model.hessian_factor(params, scale=1.0, observed=True)
    inverse = np.linalg.inv(-model.hessian(params, scale=1.0, observed=True))
    leverages = curvature * np.einsum("ij,jk,ik->i", A, inverse, A)
    slopes = model.score_factor(params, scale=1.0)
    dispersion = slopes @ slopes / np.sum(curvature * (1 - leverages))
    return np.sqrt(np.diag(inverse)), dispersion


def main():
    found = {}
    for name, (target, family, settings) in FAMILIES.items():
        for kind in ("plain", "weighted"):
            weights = ROWS["weight"] if kind == "weighted" else np.ones(len(A))
            model = sm.GLM(ROWS[target], A, family, var_weights=weights, **settings)
            fit = model.fit(tol=1e-15, maxiter=200, tol_criterion="params")
            found[f"{name} {kind} coef"] = fit.params
            found[f"{name} {kind} deviance"] = fit.deviance / weights.sum()
            if kind == "plain" and not settings:
                error, dispersion = errors(model, fit.params)
                found[f"{name} {kind} standard_error"] = error
                found[f"{name} {kind} dispersion"] = dispersion
    model = sm.RLM(ROWS["heavy"], A, sm.robust.norms.HuberT(1.345))
    fit = model.fit(tol=1e-14, maxiter=2000, conv="coefs")
    found["rlm 1.345 plain coef"] = fit.params
    found["rlm 1.345 plain scale"] = fit.scale
    with open(FOLDER / "glm.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "number", "value"])
        for name, values in found.items():
            for number, value in enumerate(np.ravel(values)):
                writer.writerow([name, number, f"{value:.15g}"])


if __name__ == "__main__":
    main()
