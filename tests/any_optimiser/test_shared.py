"""What runs of any optimiser share, in NumPy alone."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from skacv._any_optimiser.alongside import FollowedLoop
from skacv._any_optimiser.data import (
    RunRows,
    check_batches,
    pad_batches,
    shuffled_batches,
)
from skacv._any_optimiser.estimates import PathEstimate
from skacv._any_optimiser.folds import Folds

X, Y = np.zeros((10, 0)), np.arange(10.0)


def test_folds_of_a_number_are_random_and_always_the_same():
    folds = Folds.of(3, Y)
    assert sorted(folds.indices) == list(range(10))
    assert (np.diff(folds.indices) < 0).any()
    np.testing.assert_array_equal(folds.indices, Folds.of(3, Y).indices)


@pytest.mark.parametrize(
    "splitter", [KFold(3), ShuffleSplit(4, test_size=2, train_size=5, random_state=0)]
)
def test_weights_are_of_a_mean_over_the_rows_fitted_on(splitter):
    folds = Folds.of(splitter, Y)
    for own, (fitted, judged) in zip(folds.weights(), splitter.split(X)):
        np.testing.assert_allclose(own @ Y, Y[fitted].mean())
        assert not own[judged].any()


def test_rows_one_by_one_are_the_folds_of_leave_one_out():
    rows, splits = Folds.of_rows(None, np.ones(10)), Folds.of(LeaveOneOut(), Y)
    np.testing.assert_allclose(rows.weights(), splits.weights())
    np.testing.assert_array_equal(rows.indices, splits.indices)
    np.testing.assert_array_equal(Folds.of_rows([7, 2], np.ones(10)).indices, [7, 2])


@pytest.mark.parametrize("most", [1, 2, 3, 4, 50])
def test_blocks_are_alike_in_size_and_have_every_fold_once(most):
    folds = Folds.of(KFold(4), Y)  # of 3, 3, 2 and 2 rows
    blocks = list(folds.blocks(most))
    assert len({len(block) for block, _ in blocks}) == 1
    assert all(len(block) <= most for block, _ in blocks)
    found = []
    for block, n_own in blocks:
        values = block.pad(folds.most_held_out)[None, :n_own]  # of one iterate
        found.append(block.unpad(values))
    np.testing.assert_array_equal(np.concatenate(found, axis=1)[0], folds.indices)


def test_blocks_keep_to_a_number_of_bytes():
    folds = Folds.of_rows(None, np.ones(1000))
    sizes = {len(block) for block, _ in folds.blocks(n_bytes=8 * 1000 * 50)}
    assert sizes == {50}


def test_batches_are_gone_through_once_and_filled_up():
    batches = check_batches(iter([[0, 1, 2], [3]]), 10)
    np.testing.assert_array_equal(pad_batches(batches, 10), [[0, 1, 2], [3, 10, 10]])
    epoch = shuffled_batches(10, 4, n_epochs=2, seed=1)[:3]
    assert sorted(np.concatenate(epoch)) == list(range(10))
    assert check_batches(None, 10) is None


def test_an_estimate_is_the_mean_over_folds_and_its_error():
    folds = Folds.of(KFold(2), Y)
    costs = np.stack([np.arange(10.0), np.ones(10)])
    found = PathEstimate.of(costs, costs, folds)
    np.testing.assert_allclose(found.path, [4.5, 1.0])
    np.testing.assert_allclose(found.se_path, [2.5, 0.0])
    assert found.best_iteration == 1
    costs[1, 3] = np.nan
    with pytest.raises(ValueError, match="of row 3 is not finite from iterate 6 on"):
        PathEstimate.of(costs, costs, folds, first=5)


class Model:
    """One whose replicas have given held-out costs, and may part from the loop."""

    loss = None

    def __init__(self, costs):
        self.costs, self.parted = iter(costs), 0.0

    def weights(self, start, data, weights):
        return weights

    def begin_replicas(self, start, weights):
        return None

    def rows_of(self, X, rows):
        return X[rows]

    def step_replicas(self, carry, X, y, weights):
        return carry

    def reset_first(self, carry, last, now):
        return carry, self.parted, 1.0, 1e-6

    def predictions(self, carry, X, first):
        return np.full(X.shape[:2], next(self.costs))

    def to_numpy(self, array):
        return array

    def losses(self, loss, y, predictions):
        return predictions


class Follower(FollowedLoop):
    def __init__(self, costs, every=1, parted=0.0):
        self.kept, model = [], Model(costs)
        folds = Folds.of(KFold(2), Y)
        super().__init__(model, None, RunRows(X, Y, None), folds, every)
        model.parted = parted

    @property
    def _best_params(self):
        return self.kept[-1]

    @_best_params.setter
    def _best_params(self, params):
        self.kept.append(self.n_steps_)


def test_a_loop_is_judged_now_and_then_and_its_best_kept():
    live = Follower([3.0, 1.0, 2.0, 2.0], every=2)
    for _ in range(6):
        assert not live.should_stop(patience=2)
        live._follow(None, None)
    assert live.should_stop(patience=2)
    np.testing.assert_array_equal(live.path_, [3, 1, 2, 2])
    np.testing.assert_array_equal(live.iterations_, [0, 2, 4, 6])
    assert live.best_iteration_ == 2
    assert live.kept == [0, 2]


def test_a_loop_that_parts_is_noticed_at_first():
    with pytest.raises(ValueError, match="After update 1 the loop's parameters"):
        Follower(np.ones(9), parted=0.1)._follow(None, None)
    live = Follower(np.ones(20))
    for _ in range(10):
        live._follow(None, None)
    live._model.parted = 0.1  # hours later: warned of, once
    with pytest.warns(UserWarning, match="After update 11 the loop's parameters"):
        live._follow(None, None)
    live._follow(None, None)
    assert live.n_steps_ == 12
