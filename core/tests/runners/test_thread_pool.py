from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from core.tests.toys.waiting import wait_until
from tritonpy.runners import thread_pool
from tritonpy.runners.thread_pool import KEPT, ThreadPool

WAIT_S = 10
Pools = Callable[..., ThreadPool]


@pytest.fixture
def pools() -> Iterator[Pools]:
    made: list[ThreadPool] = []

    def make(max_threads: int = 8) -> ThreadPool:
        made.append(ThreadPool("pool", max_threads))
        return made[-1]

    yield make
    for pool in made:
        pool.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pool ")]


class Work:
    """A function that records its threads and may block until the test releases it."""

    def __init__(self, *, held: bool = False) -> None:
        self.threads: list[threading.Thread] = []
        self.began = threading.Semaphore(0)
        self.let = threading.Event()
        if not held:
            self.let.set()

    def __call__(self) -> None:
        self.threads.append(threading.current_thread())
        self.began.release()
        assert self.let.wait(WAIT_S)

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.began.acquire(timeout=WAIT_S)


def test_sequential_functions_share_threads(pools: Pools) -> None:
    pool, work = pools(), Work()
    pool.prepare()
    for _ in range(50):
        wait_until(lambda: pool._idle)
        pool.run(work)
        work.wait()
    assert len(set(work.threads)) <= KEPT
    assert {thread.name.split()[0] for thread in work.threads} == {"pool"}


def test_concurrent_functions_have_a_thread_each(pools: Pools) -> None:
    pool, work = pools(), Work(held=True)
    for _ in range(5):
        pool.run(work)
    work.wait(5)
    assert len(set(work.threads)) == 5
    work.let.set()


def test_beyond_the_bound_functions_wait_in_order(pools: Pools) -> None:
    pool, held = pools(2), Work(held=True)
    done: list[int] = []
    for _ in range(2):
        pool.run(held)
    held.wait(2)
    assert not pool.saturated
    ended = threading.Semaphore(0)
    for number in range(20):
        pool.run(lambda number=number: (done.append(number), ended.release()))  # type: ignore[misc]
    assert pool.saturated
    assert done == []
    held.let.set()
    for _ in range(20):
        assert ended.acquire(timeout=WAIT_S)
    assert sorted(done) == list(range(20))
    assert len(pool._threads) <= 2


def test_idle_threads_end_except_for_a_few(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "IDLE_S", 0.01)
    pool, work = pools(), Work(held=True)
    for _ in range(6):
        pool.run(work)
    work.wait(6)
    work.let.set()
    wait_until(lambda: len(pool._threads) <= KEPT)
    pool.run(work)
    work.wait()


def test_a_failure_is_logged_and_the_thread_continues(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    pool, work = pools(1), Work()

    def fail() -> None:
        raise ValueError("broken")

    pool.run(fail)
    pool.run(work)
    work.wait()
    assert "broken" in caplog.text


def test_many_callers_at_once_lose_no_function(
    pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "IDLE_S", 0.0001)  # threads end all the time
    monkeypatch.setattr(thread_pool, "KEPT", 0)
    pool, work = pools(3), Work()
    callers = [
        threading.Thread(target=lambda: [pool.run(work) for _ in range(300)]) for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    work.wait(1200)
    for caller in callers:
        caller.join()


def test_a_closed_pool_still_runs_late_functions(pools: Pools) -> None:
    pool, work = pools(), Work()
    pool.run(work)
    pool.close()
    pool.run(work)
    work.wait(2)
