from __future__ import annotations

import threading

from tritonpy.model.cache_threads import CacheThreads


def test_no_thread_exists_before_the_first_task() -> None:
    before = set(threading.enumerate())
    threads = CacheThreads(3)
    assert set(threading.enumerate()) <= before
    threads.close()


def test_tasks_run_concurrently() -> None:
    threads, barrier = CacheThreads(2), threading.Barrier(3)
    for _ in range(2):
        assert threads.run(lambda: barrier.wait(10) and None)
    barrier.wait(10)  # all three threads meet
    threads.close()
    threads.join(10)


def test_closed_threads_finish_queued_tasks_and_accept_no_more() -> None:
    threads, done, gate = CacheThreads(1), [], threading.Event()
    threads.run(lambda: gate.wait(10) and None)
    for number in range(5):
        threads.run(lambda number=number: done.append(number))
    threads.close()
    assert not threads.run(lambda: done.append(99))
    gate.set()
    threads.join(10)
    assert done == [0, 1, 2, 3, 4]
    assert not any(thread.name.startswith("response cache") for thread in threading.enumerate())
