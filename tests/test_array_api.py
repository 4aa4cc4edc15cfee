"""Arrays of other libraries: designs on a device, and estimators that take them."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
from sklearn.utils.fixes import parse_version

from skacv.optim.arrays import design_of
from skacv.optim.device import DeviceDesign
from skacv.optim.losses import Logistic, SquaredError
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.phases import Phase
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Nesterov, StochasticGradient
from skacv.risk.left_out.choice import leave_folds_out
from skacv.risk.memory.curved import CurvedMemoryMatrix
from skacv.risk.memory.memory_matrix import estimate_risk
from skacv.risk.reader import read
from skacv.risk.refit import UNCENTRED

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is missing")
pytest.importorskip("array_api_compat", reason="array-api-compat is missing")


@pytest.mark.parametrize("shape", [(60, 20), (30, 80)])
@pytest.mark.parametrize("penalty", [L1(0.05), SquaredL2(0.1)], ids=repr)
@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=repr)
def test_runs_and_estimates_are_those_of_numpy(loss, penalty, shape, rng):
    X = rng.standard_normal(shape)
    y = (X[:, :1] + rng.standard_normal((shape[0], 1)) > 0).astype(float)
    weights = np.full((shape[0], 1), 1 / shape[0])
    found = []
    for array in (X, strict.asarray(X)):
        design = design_of(array).centered(weights)
        problem = Problem(design, y, weights, loss)
        step = 1 / problem.smoothness
        plan = [Phase(penalty, Nesterov(step), 30)]
        own = run(problem, plan, np.zeros((1, shape[1], 1)))
        batches = StochasticGradient(0.2 * step, 0.0, shape[0], 10, 0)
        passes = run(problem, [Phase(penalty, batches, 3)], own.coef[:1])
        folds = [(np.arange(10, shape[0]), np.arange(10))]
        held_out = leave_folds_out(problem, own, folds, UNCENTRED)[0]
        reader = CurvedMemoryMatrix(10, rng=np.random.default_rng(0))
        risks = [read(reader, problem, each, UNCENTRED).path for each in (own, passes)]
        if loss.is_quadratic:
            risks.append(estimate_risk(problem, own, method="exact").path)
        found.append([own.coef, passes.coef, held_out, *risks])
    assert type(design) is DeviceDesign
    for expected, same in zip(*found):
        np.testing.assert_allclose(same, expected, rtol=1e-6, atol=1e-9)


def test_products_with_fewer_digits_are_refused(rng, monkeypatch):
    """As TF32 rounds factors: ten bits."""
    plain = DeviceDesign._here

    def rounded(self, array):
        found = plain(self, array)
        return found if found.shape[0] != found.shape[1] else found * (1 + 2.0**-11)

    X = strict.asarray(rng.standard_normal((30, 20)).astype(np.float32))
    assert type(design_of(X)) is DeviceDesign
    monkeypatch.setattr(DeviceDesign, "_here", rounded)
    with pytest.raises(ValueError, match="fewer digits"):
        design_of(X)


TAKES_ARRAYS = """
import array_api_strict as xp, numpy as np, sklearn, warnings
from skacv import *
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
y, c = X[:, 0] + rng.standard_normal(60), (X[:, 0] > 0).astype(int)
models = [
    (TrajectoryLasso(0.1), y), (TrajectoryLogisticRegression(max_iter=20), c),
    (KernelEigenProRegressor(max_iter=20, random_state=0), y),
    (TrajectoryEarlyStoppingCV(TrajectoryLasso("path")), y),
]
with sklearn.config_context(array_api_dispatch=True):
    for model, target in models:
        expected = model.fit(X, target).predict(X)
        found = model.fit(xp.asarray(X), xp.asarray(target)).predict(xp.asarray(X))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
"""


@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="scikit-learn dispatches on arrays with SciPy 1.14 or newer only",
)
def test_estimators_convert_what_scikit_learn_dispatches_on():
    """In a process of its own: SciPy asks for a variable before it is imported."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run(
        [sys.executable, "-c", TAKES_ARRAYS], check=True, env=environment, timeout=300
    )
