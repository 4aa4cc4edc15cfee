"""Small products are taken by one thread, and all threads are back afterwards."""

from threading import Event, Thread

import pytest
from threadpoolctl import ThreadpoolController

from skacv import IterativeRidge
from skacv.optim import threads
from skacv.optim.threads import LARGE, in_one_thread, threads_for


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
    with threads_for((LARGE, 1)):
        assert max(n_threads()) > 1
    with threads_for((LARGE - 1, 1)):
        assert max(n_threads()) == 1


@pytest.mark.parametrize("is_small", [True, False])
def test_fits_of_few_numbers(is_small, rng, monkeypatch):
    X = rng.standard_normal((30, 3))
    if not is_small:
        monkeypatch.setattr(threads, "LARGE", 90)
    seen = []
    run = IterativeRidge._go_on

    def go_on(self, *args):
        seen.append(max(n_threads()))
        return run(self, *args)

    monkeypatch.setattr(IterativeRidge, "_go_on", go_on)
    IterativeRidge(max_iter=2).fit(X, X[:, 0])
    assert seen == [1 if is_small else 2]
