"""Losses of torch, which have the prediction first, as losses of single rows."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from skacv.torch import TorchClassifier, TorchRegressor, TrajectoryACV  # noqa: E402

from .models import linear, network  # noqa: E402


def data(targets, n_rows=30):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n_rows, 3))
    signal = X[:, 0] + 0.5 * rng.standard_normal(n_rows)
    return X, {
        "values": 2 * signal,
        "counts": rng.poisson(np.exp(signal)).astype(float),
        "labels": (signal > 0).astype(float),
        "classes": np.digitize(signal, [-0.5, 0.5]),
        "outputs": np.column_stack([signal, signal**2]),
    }[targets]


def sgd(params):
    return torch.optim.SGD(params, 0.1)


def half_squares(y, p):
    small = abs(y - p) < 0.5
    return torch.where(small, (y - p) ** 2 / 2, 0.5 * (abs(y - p) - 0.25))


def of_classes(y, p):
    return torch.logsumexp(p, dim=1) - p[torch.arange(len(y)), y]


LOSSES = {
    "MSELoss": (nn.MSELoss(), "values", lambda y, p: (y - p) ** 2),
    "L1Loss": (nn.L1Loss(), "values", lambda y, p: abs(y - p)),
    "HuberLoss": (nn.HuberLoss(delta=0.5), "values", half_squares),
    "SmoothL1Loss": (
        nn.SmoothL1Loss(beta=0.5),
        "values",
        lambda y, p: half_squares(y, p) / 0.5,
    ),
    "PoissonNLLLoss": (
        nn.PoissonNLLLoss(),
        "counts",
        lambda y, p: torch.exp(p) - y * p,
    ),
    "BCEWithLogitsLoss": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
        "labels",
        lambda y, p: 2 * y * functional.softplus(-p) + (1 - y) * functional.softplus(p),
    ),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(), "classes", of_classes),
    "outputs": (nn.MSELoss(), "outputs", lambda y, p: ((y - p) ** 2).mean(1)),
    "mse_loss": (functional.mse_loss, "values", lambda y, p: (y - p) ** 2),
    "huber_loss": (partial(functional.huber_loss, delta=0.5), "values", half_squares),
    "poisson_nll_loss": (
        functional.poisson_nll_loss,
        "counts",
        lambda y, p: torch.exp(p) - y * p,
    ),
    "cross_entropy": (functional.cross_entropy, "classes", of_classes),
    "reduction": (nn.L1Loss(reduction="none"), "values", lambda y, p: abs(y - p)),
}


def module_for(targets):
    n_outputs = {"classes": 3, "outputs": 2}.get(targets)
    return linear(3) if n_outputs is None else network(3, n_outputs)


@pytest.mark.parametrize("name", LOSSES)
def test_known_losses_are_those_written_out(name):
    loss, targets, by_hand = LOSSES[name]
    (X, y), module = data(targets), module_for(targets)
    found, expected = (
        TrajectoryACV(module, one, sgd).run(X, y, n_steps=6) for one in (loss, by_hand)
    )
    np.testing.assert_allclose(found.train_path, expected.train_path, rtol=1e-12)
    np.testing.assert_allclose(
        found.cv_path(3).path, expected.cv_path(3).path, rtol=1e-10
    )
    np.testing.assert_allclose(
        found.loo_path(rows=[0, 4]).path,
        expected.loo_path(rows=[0, 4]).path,
        rtol=1e-10,
    )


@pytest.mark.parametrize("name", ["PoissonNLLLoss", "CrossEntropyLoss"])
def test_folds_beside_a_loop_that_has_the_loss_of_torch(name):
    loss, targets, by_hand = LOSSES[name]
    (X, y), module = data(targets), module_for(targets)
    X, y = torch.as_tensor(X), torch.as_tensor(y)
    paths = []
    for one in (loss, by_hand):
        trained = deepcopy(module)
        folds = TrajectoryACV(trained, one, sgd).alongside(X, y, folds=3)
        optimizer = sgd(trained.parameters())
        for t in range(5):
            rows = torch.arange(10) + 4 * t
            optimizer.zero_grad()
            loss(trained(X[rows]), y[rows]).backward()  # as torch calls it
            optimizer.step()
            folds.step(rows)
        paths.append(folds.path_)
    np.testing.assert_allclose(*paths, rtol=1e-10)


def test_estimators_know_losses_of_torch():
    X, y = data("counts")
    loss, _, by_hand = LOSSES["PoissonNLLLoss"]
    found, expected = (
        TorchRegressor(loss=one, cv=3, max_iter=8, random_state=0).fit(X, y)
        for one in (loss, by_hand)
    )
    np.testing.assert_allclose(found.cv_path_, expected.cv_path_, rtol=1e-10)
    np.testing.assert_allclose(found.staged_loss(X, y), expected.staged_loss(X, y))
    for targets in ("labels", "classes"):
        X, y = data(targets)
        loss = nn.CrossEntropyLoss()
        if targets == "labels":
            loss = nn.BCEWithLogitsLoss()
        settings = {"cv": 3, "max_iter": 8, "random_state": 0}
        found = TorchClassifier(loss=loss, **settings).fit(X, y)
        expected = TorchClassifier(**settings).fit(X, y)  # the same loss
        np.testing.assert_allclose(found.cv_path_, expected.cv_path_, rtol=1e-10)


def test_what_is_refused_or_left_alone():
    X, y = data("values")

    def fit(loss, y=y, module=None):
        TrajectoryACV(module or linear(3), loss, sgd).run(X, y, n_steps=1)

    for loss, name in [
        (nn.HingeEmbeddingLoss(), "HingeEmbeddingLoss"),
        (nn.KLDivLoss(), "KLDivLoss"),
        (functional.soft_margin_loss, "soft_margin_loss"),
        (functional.gaussian_nll_loss, "gaussian_nll_loss"),
    ]:
        with pytest.raises(ValueError, match=f"{name} takes .* lambda y, prediction:"):
            fit(loss)
        with pytest.raises(ValueError, match=f"{name} takes .* lambda y, prediction:"):
            TorchRegressor(loss=loss, max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="MSELoss with reduction='sum' grows"):
        fit(nn.MSELoss(reduction="sum"))
    with pytest.raises(ValueError, match="CrossEntropyLoss with weight= is not a mean"):
        fit(
            nn.CrossEntropyLoss(weight=torch.ones(3)), data("classes")[1], network(3, 3)
        )
    column = nn.Linear(3, 1).double()
    with pytest.raises(
        ValueError, match=r"y, of shape \(30,\), with .* shape \(30, 1\)"
    ):
        fit(nn.MSELoss(), module=column)
    with pytest.raises(
        ValueError, match=r"a number for every class .* BCEWithLogitsLoss"
    ):
        fit(nn.CrossEntropyLoss(), data("labels")[1].astype(int))

    class Own(nn.Module):
        def forward(self, y, prediction):
            return (y - 2 * prediction) ** 2

    fit(Own())
