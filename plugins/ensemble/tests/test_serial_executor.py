from __future__ import annotations

import threading
from functools import partial

from tritonpy_ensemble.serial_executor import SerialExecutor


def test_a_function_submitted_during_a_call_runs_after_it():
    executor, done = SerialExecutor(), []

    def outer():
        executor.execute(done.append, "inner")
        done.append("outer")

    executor.execute(outer)
    assert done == ["outer", "inner"]


def test_a_long_chain_needs_no_deep_stack():
    executor, done = SerialExecutor(), []

    def next_one(number):
        done.append(number)
        if number < 100_000:
            executor.execute(next_one, number + 1)

    executor.execute(next_one, 1)
    assert len(done) == 100_000


def test_calls_of_many_threads_do_not_overlap_and_none_is_lost():
    executor, inside, done = SerialExecutor(), [], []
    start = threading.Barrier(4)

    def call(number):
        inside.append(number)
        assert inside == [number]
        done.append(number)
        inside.remove(number)

    def submit(first):
        start.wait()
        for number in range(first, first + 5000):
            executor.execute(call, number)

    threads = [
        threading.Thread(target=partial(submit, first), daemon=True)
        for first in range(0, 20_000, 5000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(20_000))


def test_each_thread_s_calls_keep_their_order():
    executor, done = SerialExecutor(), []

    def submit(name):
        for number in range(3000):
            executor.execute(done.append, (name, number))

    threads = [threading.Thread(target=submit, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for name, number in done if name == "a"] == list(range(3000))
    assert [number for name, number in done if name == "b"] == list(range(3000))
