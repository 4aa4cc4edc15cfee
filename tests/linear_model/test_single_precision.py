"""Single precision stays single: double precision beside it would copy X each time."""

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.optim.arrays import DenseDesign

N_ROWS, N_COLUMNS = 60, 90
MODELS = {
    "lasso": TrajectoryLasso("path", max_iter=4),
    "elastic_net": TrajectoryElasticNet([0.3, 0.1], max_iter=4),
    "ridge": IterativeRidge(1.0, solver="nesterov", max_iter=6),
    "heavy_ball": IterativeRidge(0.0, solver="heavy_ball", max_iter=6),
    "huber": TrajectoryHuberRegressor(max_iter=6),
    "poisson": TrajectoryPoissonRegressor(max_iter=6),
    "logistic": TrajectoryLogisticRegression(max_iter=6),
    "l1": TrajectoryLogisticRegression("path", l1_ratio=1.0, max_iter=3),
    "svc": TrajectoryLinearSVC(max_iter=6),
}


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_run_and_its_folds(name, cv, monkeypatch, rng):
    """What is read afterwards may take few of its products in double precision."""
    taken = []
    for product in ("_times", "_transpose_times"):
        plain = getattr(DenseDesign, product)

        def noted(self, vectors, plain=plain):
            taken.append((self.X.dtype, vectors.dtype))
            return plain(self, vectors)

        monkeypatch.setattr(DenseDesign, product, noted)
    X = rng.standard_normal((N_ROWS, N_COLUMNS)).astype(np.float32)
    y = rng.poisson(1, N_ROWS)
    model = clone(MODELS[name]).set_params(cv=cv, loo=False)
    if "risk" in model.get_params():
        model.set_params(risk=False)
    model.fit(X, np.minimum(y, 1) if hasattr(model, "decision_function") else y)
    assert len(taken) > 4
    assert set(taken) == {(np.dtype(np.float32), np.dtype(np.float32))}
    assert model.coef_path_.dtype == np.float32
