"""Networks of skorch: the run is that of networks fitted one by one."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged, TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression

torch = pytest.importorskip("torch", reason="needs skacv[torch]")
skorch = pytest.importorskip("skorch", reason="needs skorch")
callbacks = pytest.importorskip("skorch.callbacks")

FOLDS = KFold(3, shuffle=True, random_state=0)
HALVED = callbacks.LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=3, gamma=0.5)


class Network(torch.nn.Module):
    def __init__(self, n_outputs=1, is_normalised=False):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, 10),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(10, n_outputs),
        )
        self.is_normalised = is_normalised

    def forward(self, X):
        outputs = self.layers(X)
        return outputs.softmax(-1) if self.is_normalised else outputs


SETTINGS = {"max_epochs": 9, "batch_size": 16, "verbose": 0}
ADAM = {"optimizer": torch.optim.AdamW, "lr": 0.02, "optimizer__weight_decay": 0.1}
SGD = {"lr": 0.05, "optimizer__momentum": 0.9, "callbacks": [("halved", HALVED)]}
REGRESSORS = {
    "adam": skorch.NeuralNetRegressor(Network, **ADAM, **SETTINGS),
    "momentum and a schedule": skorch.NeuralNetRegressor(Network, **SGD, **SETTINGS),
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 3)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(60)
    return X, y.astype(np.float32)


def fitted_alone(net, X, y, n_epochs):
    torch.manual_seed(3)
    net = clone(net).set_params(train_split=None, max_epochs=n_epochs)
    return net.fit(X, y)


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_stage_is_that_of_separate_networks(name, data):
    X, y = data
    torch.manual_seed(3)
    before = torch.get_rng_state()
    model = Staged(REGRESSORS[name], cv=FOLDS).fit(X, y)
    assert torch.equal(torch.get_rng_state(), before)
    staged, losses = list(model.staged_predict(X)), []
    for t in (1, 4, 9):
        alone = fitted_alone(REGRESSORS[name], X, y[:, None], t)
        np.testing.assert_allclose(staged[t - 1], alone.predict(X)[:, 0], rtol=1e-5)
        errors = np.empty(60)
        for rows, held_out in FOLDS.split(X):
            alone = fitted_alone(REGRESSORS[name], X[rows], y[rows, None], t)
            errors[held_out] = alone.predict(X[held_out])[:, 0] - y[held_out]
        losses.append(np.mean(errors**2))
    np.testing.assert_allclose(model.cv_path_[[1, 4, 9]], losses, rtol=1e-5)


def test_the_best_epoch_is_kept_with_its_history(data):
    X, y = data
    torch.manual_seed(3)
    model = TrajectoryEarlyStoppingCV(REGRESSORS["adam"], cv=FOLDS, patience=None)
    model.fit(X, y)
    t = model.path_[1:].argmin() + 1
    assert (model.best_iter_, model.best_params_) == (t, {"max_epochs": t})
    net = model.estimator_.estimator_
    alone = fitted_alone(REGRESSORS["adam"], X, y[:, None], t)
    assert net.history[:, "train_loss"] == alone.history[:, "train_loss"]
    small = pickle.loads(pickle.dumps(model.drop_record()))
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.predict(X), net.predict(X)[:, 0])
    assert model.predict_interval(X).shape == (60, 2)
    # It goes on from there, where a new run begins anew.
    net.set_params(max_epochs=2).partial_fit(X, y[:, None])
    assert len(net.history) == t + 2


def test_classes_and_blends(data):
    X, y = data
    labels = np.digitize(y, [-0.4, 0.4])
    net = skorch.NeuralNetClassifier(
        Network, module__n_outputs=3, module__is_normalised=True, **ADAM, **SETTINGS
    )
    torch.manual_seed(3)
    model = TrajectoryEarlyStoppingCV(net, cv=FOLDS, patience=None).fit(X, labels)
    shares = np.empty((60, 3))
    for rows, held_out in FOLDS.split(X):
        alone = fitted_alone(net, X[rows], labels[rows], model.best_iter_)
        shares[held_out] = alone.predict_proba(X[held_out])
    np.testing.assert_allclose(model.held_out_prediction_, shares, rtol=1e-5)
    chosen = shares[np.arange(60), labels]
    assert model.best_score_ == pytest.approx(-np.log(chosen).mean(), rel=1e-5)
    two = skorch.NeuralNetBinaryClassifier(Network, **ADAM, **SETTINGS)
    members = [("net", two), ("path", TrajectoryLogisticRegression("path"))]
    blend = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0)
    blend.fit(X, (y > 0).astype(np.float32))
    assert blend.predict_proba(X).shape == (60, 2)


def test_pipelines_and_searches(data):
    X, y = data
    steps = make_pipeline(StandardScaler(), REGRESSORS["adam"])
    torch.manual_seed(3)
    model = TrajectoryEarlyStoppingCV(steps, cv=FOLDS, patience=None).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    alone = fitted_alone(REGRESSORS["adam"], scaled, y[:, None], model.best_iter_)
    expected = alone.predict(scaled)[:, 0]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)
    stopping = TrajectoryEarlyStoppingCV(REGRESSORS["adam"], cv=2)
    search = GridSearchCV(stopping, {"estimator__lr": [1e-6, 0.05]}, cv=2)
    assert search.fit(X, y).best_params_ == {"estimator__lr": 0.05}


def test_what_judges_the_epochs(data):
    X, y = data
    net = clone(REGRESSORS["adam"]).set_params(criterion=torch.nn.L1Loss)
    model = TrajectoryEarlyStoppingCV(net, cv=FOLDS).fit(X, y)
    error = np.abs(model.held_out_prediction_.ravel() - y).mean()
    assert model.best_score_ == pytest.approx(error)
    net.set_params(criterion=torch.nn.PoissonNLLLoss)
    with pytest.raises(ValueError, match=r"criterion=.*PoissonNLLLoss"):
        TrajectoryEarlyStoppingCV(net).fit(X, y)
    scored = TrajectoryEarlyStoppingCV(net, criterion="neg_mean_squared_error", cv=2)
    assert scored.fit(X, np.abs(y)).best_iter_ >= 1


def test_early_stopping_of_its_own_is_refused(data):
    net = clone(REGRESSORS["adam"]).set_params(callbacks=[callbacks.EarlyStopping()])
    model = TrajectoryEarlyStoppingCV(net)
    with pytest.raises(ValueError, match="has the callback EarlyStopping, which needs"):
        model.fit(*data)
    assert not hasattr(model, "estimator_")
