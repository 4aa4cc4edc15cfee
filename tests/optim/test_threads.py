"""Small products are taken by one thread, and all threads are back afterwards."""

from dataclasses import dataclass, field
from threading import Event, Thread, get_ident
from time import sleep

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from skacv import TrajectoryRegressor
from skacv.optim.blocks import CACHE_BYTES, in_one_thread, in_threads, threads_for
from skacv.optim.losses import SquaredError


def n_threads():
    blas = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.num_threads for library in blas]


@pytest.fixture(autouse=True)
def several():
    """More than one thread, on any machine."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if max(n_threads()) < 2:
            pytest.skip("this BLAS has one thread")
        yield


def test_one_thread_inside():
    before = n_threads()
    with in_one_thread():
        with in_one_thread():
            assert max(n_threads()) == 1
        assert max(n_threads()) == 1
    assert n_threads() == before


def test_all_threads_are_back_where_two_fits_overlap():
    before, is_inside, may_leave = n_threads(), Event(), Event()

    def other():
        with in_one_thread():
            is_inside.set()
            may_leave.wait()

    with in_one_thread():
        thread = Thread(target=other)
        thread.start()
        is_inside.wait()
        assert max(n_threads()) == 1
    assert n_threads() == before
    may_leave.set()
    thread.join()
    assert n_threads() == before
    with in_one_thread():
        assert max(n_threads()) == 1
    assert n_threads() == before


def test_all_threads_are_back_after_an_error():
    before = n_threads()
    with pytest.raises(ZeroDivisionError), in_one_thread():
        _ = 1 / 0
    assert n_threads() == before


def test_large_products_have_all_threads():
    with threads_for((CACHE_BYTES // 8, 1)):
        assert max(n_threads()) > 1
    with threads_for((CACHE_BYTES // 8 - 1, 1)):
        assert max(n_threads()) == 1


@dataclass(frozen=True)
class Noting(SquaredError):
    """Half the squared error, which notes how many threads its derivative has."""

    seen: list = field(default_factory=list, compare=False)

    def derivative(self, target, predictor):
        self.seen.append(max(n_threads()))
        return super().derivative(target, predictor)


@pytest.mark.parametrize("is_small", [True, False])
def test_fits_of_few_numbers(is_small, rng, set_limits):
    X = rng.standard_normal((30, 3))
    if not is_small:
        set_limits(CACHE_BYTES=8 * 90)
    loss = Noting()
    TrajectoryRegressor(loss=loss, max_iter=2, loo=False, risk=False).fit(X, X[:, 0])
    assert set(loss.seen) == {1 if is_small else 2}


def test_results_of_threads_are_in_order():
    """Later items, which take less time, wait for earlier ones."""
    before, seen = n_threads(), set()

    def half(item):
        seen.add(get_ident())
        assert max(n_threads()) == 1
        sleep(0.02 / (item + 1))
        return item / 2

    assert [*in_threads(half, range(12))] == [item / 2 for item in range(12)]
    assert get_ident() not in seen
    assert n_threads() == before


def test_one_item_or_one_thread_needs_no_other():
    own = {get_ident()}
    assert {*in_threads(lambda item: get_ident(), [0])} == own
    with in_one_thread():
        assert {*in_threads(lambda item: get_ident(), range(3))} == own


def test_threads_have_the_settings_of_their_caller():
    """Overflow is ignored, or an error, in them as outside."""

    def overflowing(item):
        return np.array([1e300]) ** item

    with np.errstate(over="ignore"):
        assert np.isinf([*in_threads(overflowing, [2, 3])]).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        list(in_threads(overflowing, [2, 3]))
    assert max(n_threads()) > 1
