from __future__ import annotations

import threading
from functools import partial

from tritonpy_ensemble.turns import Turns


def test_what_a_call_asks_for_comes_after_it():
    turns, done = Turns(), []

    def outer():
        turns.take(done.append, "inner")
        done.append("outer")

    turns.take(outer)
    assert done == ["outer", "inner"]


def test_a_long_chain_needs_no_deep_stack():
    turns, done = Turns(), []

    def next_one(number):
        done.append(number)
        if number < 100_000:
            turns.take(next_one, number + 1)

    turns.take(next_one, 1)
    assert len(done) == 100_000


def test_calls_of_many_threads_never_overlap_and_none_is_lost():
    turns, inside, done = Turns(), [], []
    start = threading.Barrier(4)

    def call(number):
        inside.append(number)
        assert inside == [number]
        done.append(number)
        inside.remove(number)

    def ask(first):
        start.wait()
        for number in range(first, first + 5000):
            turns.take(call, number)

    threads = [threading.Thread(target=partial(ask, first), daemon=True) for first in range(0, 20_000, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(20_000))


def test_each_thread_s_calls_keep_their_order():
    turns, done = Turns(), []

    def ask(name):
        for number in range(3000):
            turns.take(done.append, (name, number))

    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for name, number in done if name == "a"] == list(range(3000))
    assert [number for name, number in done if name == "b"] == list(range(3000))
