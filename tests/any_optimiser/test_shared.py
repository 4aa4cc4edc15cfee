"""What runs of any optimiser share, in NumPy alone."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from skacv._any_optimiser.alongside import AlongsideLoop
from skacv._any_optimiser.batches import (
    checked_batches,
    padded_batches,
    shuffled_batches,
)
from skacv._any_optimiser.estimates import PathEstimate
from skacv._any_optimiser.folds import Folds
from skacv._any_optimiser.memory_matrix import (
    blocks_of_modes,
    check_against_exact,
    groups_of_probes,
)

X, Y = np.zeros((10, 0)), np.arange(10.0)


def test_folds_of_a_number_are_random_and_always_the_same():
    folds = Folds.of(3, X, Y)
    assert sorted(folds.indices) == list(range(10))
    assert (np.diff(folds.indices) < 0).any()
    np.testing.assert_array_equal(folds.indices, Folds.of(3, X, Y).indices)


@pytest.mark.parametrize(
    "splitter", [KFold(3), ShuffleSplit(4, test_size=2, train_size=5, random_state=0)]
)
def test_weights_are_of_a_mean_over_the_rows_fitted_on(splitter):
    folds = Folds.of(splitter, X, Y)
    for own, (fitted, judged) in zip(folds.weights(), splitter.split(X)):
        np.testing.assert_allclose(own @ Y, Y[fitted].mean())
        assert not own[judged].any()


def test_rows_one_by_one_are_the_folds_of_leave_one_out():
    rows, splits = Folds.of_rows(None, 10), Folds.of(LeaveOneOut(), X, Y)
    np.testing.assert_allclose(rows.weights(), splits.weights())
    np.testing.assert_array_equal(rows.indices, splits.indices)
    np.testing.assert_array_equal(Folds.of_rows([7, 2], 10).indices, [7, 2])


@pytest.mark.parametrize("most", [1, 2, 3, 4, 50])
def test_blocks_are_alike_in_size_and_have_every_fold_once(most):
    folds = Folds.of(KFold(4), X, Y)  # of 3, 3, 2 and 2 rows
    blocks = list(folds.blocks(most))
    assert len({len(block) for block, _ in blocks}) == 1
    assert all(len(block) <= most for block, _ in blocks)
    found = []
    for block, n_own in blocks:
        values = block.padded(folds.most_held_out)[:n_own, None]  # of one iterate
        found.append(block.unpadded(values))
    np.testing.assert_array_equal(np.concatenate(found, axis=1)[0], folds.indices)


def test_blocks_keep_to_a_number_of_bytes():
    folds = Folds.of_rows(None, 1000)
    sizes = {len(block) for block, _ in folds.blocks(n_bytes=8 * 1000 * 50)}
    assert sizes == {50}


def test_batches_are_gone_through_once_and_filled_up():
    batches = checked_batches(iter([[0, 1, 2], [3]]), 10)
    np.testing.assert_array_equal(padded_batches(batches, 10), [[0, 1, 2], [3, 10, 10]])
    epoch = shuffled_batches(10, 4, n_epochs=2, seed=1)[:3]
    assert sorted(np.concatenate(epoch)) == list(range(10))
    assert checked_batches(None, 10) is None


def test_an_estimate_is_the_mean_over_folds_and_its_error():
    folds = Folds.of(KFold(2), X, Y)
    costs = np.stack([np.arange(10.0), np.ones(10)])
    found = PathEstimate.of(costs, costs, folds)
    np.testing.assert_allclose(found.path, [4.5, 1.0])
    np.testing.assert_allclose(found.se_path, [2.5, 0.0])
    assert found.best_iteration == 1
    costs[1, 3] = np.nan
    with pytest.raises(ValueError, match="of row 3 is not finite from iterate 6 on"):
        PathEstimate.of(costs, costs, folds, first=5)


class Follower(AlongsideLoop):
    """One whose held-out costs are given, and whose loop may part from it."""

    def __init__(self, costs, every=1, parted=0.0):
        self.costs, self.parted, self.kept = iter(costs), parted, []
        super().__init__(Folds.of(KFold(2), X, Y), every)

    def _advance(self, rows):
        pass

    def _parted(self):
        return self.parted, 1.0, 1e-6

    def _held_out(self):
        costs = np.full((1, 10), next(self.costs))
        return costs, costs

    def _keep(self):
        self.kept.append(self.n_steps_)


def test_a_loop_is_judged_now_and_then_and_its_best_kept():
    live = Follower([3.0, 1.0, 2.0, 2.0], every=2)
    for _ in range(6):
        assert not live.should_stop(patience=2)
        live._follow(None)
    assert live.should_stop(patience=2)
    np.testing.assert_array_equal(live.path_, [3, 1, 2, 2])
    np.testing.assert_array_equal(live.iterations_, [0, 2, 4, 6])
    assert live.best_iteration_ == 2
    assert live.kept == [0, 2]


def test_a_loop_that_parts_is_noticed_at_first():
    with pytest.raises(ValueError, match="After update 1 the loop's parameters"):
        Follower(np.ones(9), parted=0.1)._follow(None)
    live = Follower(np.ones(20))
    for _ in range(10):
        live._follow(None)
    live.parted = 0.1  # hours later: warned of, once
    with pytest.warns(UserWarning, match="After update 11 the loop's parameters"):
        live._follow(None)
    live._follow(None)
    assert live.n_steps_ == 12


def test_a_complete_basis_has_traces_without_error(rng):
    matrix = rng.standard_normal((6, 6))
    (basis,) = groups_of_probes("exact", 3, 2, seed=0)
    flat = basis.reshape(len(basis), 6)
    trace = np.einsum("ri,ij,rj->r", flat, matrix, flat).mean()
    np.testing.assert_allclose(trace, np.trace(matrix))
    groups = list(groups_of_probes(40, 3, 2, seed=0))
    assert [group.shape for group in groups] == [(10, 3, 2)] * 4
    assert (np.abs(groups) == 1).all()


def test_blocks_of_modes_are_all_modes(rng):
    temporal = rng.standard_normal((5, 7))
    blocks = blocks_of_modes(temporal, n_probes=10, n_entries=1 << 18)
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), temporal)


def test_what_is_off_exact_rows_is_warned_of_or_refused():
    exact = np.ones(3)
    check_against_exact(np.array([1.0, 1.2, 0.8]), exact)
    with pytest.warns(UserWarning, match="a loss of 1.4 for iterate 1 on rows "):
        check_against_exact(np.array([1.0, 1.4, 0.8]), exact)
    with pytest.raises(ValueError, match=r"loss of 0.2 for iterate 2 .* Take cv_path"):
        check_against_exact(np.array([1.0, 1.4, 0.2]), exact)
