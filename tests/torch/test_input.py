"""What is refused, by one sentence each."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from skacv.torch import TrajectoryACV  # noqa: E402

from .models import linear, log_loss, squared  # noqa: E402

SGD = partial(torch.optim.SGD, lr=0.1)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_parameters_are_floats(logistic_data):
    frozen = linear(5).requires_grad_(False)
    with pytest.raises(ValueError, match="but there are none"):
        TrajectoryACV(frozen, log_loss, SGD).run(*logistic_data, 2)
    module = linear(5).to(torch.complex128)
    with pytest.raises(ValueError, match=r"but 0.weight is torch.complex128"):
        TrajectoryACV(module, log_loss, SGD).run(*logistic_data, 2)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda y, z: squared(y, z).mean(), r"got shape \(\): do not average"),
        (lambda y, z: squared(y, z[:, None]), r"got shape \(40, 40\): predictions"),
    ],
)
def test_losses_are_one_number_a_row(loss, said, logistic_data):
    with pytest.raises(ValueError, match=said):
        TrajectoryACV(linear(5), loss, SGD).run(*logistic_data, 2)


def sequence(layer):
    torch.manual_seed(0)
    last = torch.nn.Linear(5, 1), torch.nn.Flatten(0)
    return torch.nn.Sequential(layer, *last).double()


@pytest.mark.parametrize(
    "layer",
    [torch.nn.BatchNorm1d(5, track_running_stats=False), torch.nn.Dropout(0.5)],
    ids=["batch normalisation", "dropout"],
)
def test_rows_are_independent_of_each_other_and_of_chance(layer, logistic_data):
    acv = TrajectoryACV(sequence(layer), log_loss, SGD)
    with pytest.raises(
        ValueError, match=r"or on chance .*weight decay.*LayerNorm.*eval"
    ):
        acv.run(*logistic_data, 2)
    acv.module.eval()  # of dropout it then depends on the row alone


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_data_are_finite(value, logistic_data):
    X, y = logistic_data
    acv, wrong = TrajectoryACV(linear(5), log_loss, SGD), X.copy()
    wrong[3, 1] = value
    with pytest.raises(ValueError, match="X has entries that are NaN or infinite"):
        acv.run(wrong, y, 2)
    with pytest.raises(ValueError, match="y has entries that are NaN or infinite"):
        acv.run(X, np.where(y == 1, value, y), 2)


def test_runs_that_diverge_say_where(logistic_data):
    acv = TrajectoryACV(linear(5), squared, partial(torch.optim.SGD, lr=1e200))
    with pytest.raises(ValueError, match=r"not finite from iterate [12] on"):
        acv.run(*logistic_data, 5)


def test_batches_and_folds_are_rows(logistic_data):
    acv = TrajectoryACV(linear(5), log_loss, SGD)
    with pytest.raises(ValueError, match="Batch 0 has rows beyond the 40"):
        acv.run(*logistic_data, 2, [[0, 40]])
    run = acv.run(*logistic_data, 2)
    with pytest.raises(ValueError, match="folds=41"):
        run.cv_path(41)
    with pytest.raises(ValueError, match="method must be one of"):
        run.loo_path(method="newton")


def test_weights_are_of_rows(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear(5), log_loss, SGD)
    with pytest.raises(ValueError, match="sample_weight has 39 numbers"):
        acv.run(X, y, 2, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="sample_weight is zero on all rows"):
        acv.alongside(X, y, sample_weight=np.zeros(40))
    run = acv.run(X, y, 2, sample_weight=np.arange(40))
    with pytest.raises(ValueError, match="row 0, whose sample_weight is zero"):
        run.loo_path([3, 0])
    assert run.loo_path().indices.tolist() == list(range(1, 40))


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_arrays_that_are_reused_change_no_estimate(kind, logistic_data):
    acv = TrajectoryACV(linear(5), log_loss, SGD)
    expected = acv.run(*logistic_data, 5).cv_path(3).path
    X, y = (kind(np.asarray(array)) for array in logistic_data)
    run = acv.run(X, y, 5)
    X[:], y[:] = 7, 1
    np.testing.assert_array_equal(run.cv_path(3).path, expected)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("name", ["to_sparse_csr", "to_sparse_coo"])
def test_sparse_tensors_are_refused(name, logistic_data):
    X, y = logistic_data
    X = getattr(torch.tensor(X), name)()
    with pytest.raises(TypeError, match=r"sparse tensor has no rows .*to_dense"):
        TrajectoryACV(linear(5), log_loss, SGD).run(X, y, 2)


def test_a_norm_of_gradients_that_is_clipped_is_noticed(logistic_data):
    X, y = map(torch.tensor, logistic_data)
    module = linear(5)
    acv = TrajectoryACV(module, log_loss, SGD).alongside(X, y, folds=3)
    optimizer = SGD(module.parameters())
    log_loss(y, module(X)).mean().backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1e-3)
    optimizer.step()
    with pytest.raises(ValueError, match="differ from those of the same update"):
        acv.step()
