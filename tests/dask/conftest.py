"""Schedulers: those of one machine, and a cluster of two workers."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

SCHEDULERS = ("synchronous", "threads", "processes", "cluster")


@pytest.fixture(scope="session")
def workers():
    """Two workers on this machine, each a process of one thread."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit="2GB",
    ) as cluster:
        yield cluster


@pytest.fixture
def client(workers):
    from distributed import Client

    with Client(workers) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(params=SCHEDULERS)
def scheduler(request):
    """Every scheduler in turn, in force while the test runs."""
    if request.param == "cluster":
        request.getfixturevalue("client")
        yield request.param
        return
    import dask

    # One pool for all rounds: left alone, every round starts processes of its own.
    pool = ProcessPoolExecutor(2, get_context("spawn"))
    settings = {"pool": pool} if request.param == "processes" else {}
    with pool, dask.config.set(scheduler=request.param, num_workers=2, **settings):
        yield request.param


@pytest.fixture
def on_workers(set_limits):
    """Rows stay on workers, though moments would do for squared errors."""
    set_limits(MAX_COLUMNS_OF_COLLECTIONS=-1)


def kill_worker(client):
    """End one of the workers' processes as a machine would: without a word."""
    processes = client.run(os.getpid)
    os.kill(next(iter(processes.values())), signal.SIGKILL)
