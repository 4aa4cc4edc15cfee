"""Some rows of a batch, and the rows of the batches of a loader."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from skacv.torch.batches import record_rows, take_rows  # noqa: E402

Pair = namedtuple("Pair", "X y")
X = torch.arange(6.0).reshape(3, 2)
BATCHES = {
    "a tensor": (X, X[[0, 2]]),
    "an array": (X.numpy(), X.numpy()[[0, 2]]),
    "a mapping": (OrderedDict(X=X, n=3), OrderedDict(X=X[[0, 2]], n=3)),
    "pairs": (Pair(X, X[:, 0]), Pair(X[[0, 2]], X[[0, 2], 0])),
    "texts": ([X, ["a", "b", "c"]], [X[[0, 2]], ["a", "c"]]),
    "as many parts as rows": ((X, X, None), (X[[0, 2]], X[[0, 2]], None)),
}


def assert_equal(own, other):
    assert type(own) is type(other)
    if isinstance(own, dict):
        own, other = list(own.values()), list(other.values())
    if isinstance(own, list | tuple):
        assert len(own) == len(other)
        for pair in zip(own, other):
            assert_equal(*pair)
    elif own is not None:
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("name", BATCHES)
def test_rows_are_taken_of_everything_that_has_rows(name):
    batch, expected = BATCHES[name]
    assert_equal(take_rows(batch, torch.tensor([0, 2]), 3), expected)


@pytest.mark.parametrize("batch", [{"X": X, "weights": torch.ones(4)}, [X, object()]])
def test_what_has_other_rows_is_refused(batch):
    with pytest.raises(ValueError, match="pass take_rows"):
        take_rows(batch, torch.tensor([0, 2]), 3)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_tells_the_rows_of_its_batches(num_workers):
    data = TensorDataset(torch.arange(20))
    loader = DataLoader(data, batch_size=6, shuffle=True, num_workers=num_workers)
    recorded = record_rows(loader)
    assert record_rows(loader) is recorded
    for _ in range(2):  # of two epochs the first is not read to its end
        for n_read, (values,) in enumerate(loader):
            np.testing.assert_array_equal(recorded.rows.popleft(), values)
            if n_read == 2:
                break
    assert len(loader) == 4
    assert recorded.drop_last is False
