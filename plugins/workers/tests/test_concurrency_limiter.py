from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tritonpy_workers import concurrency_limiter as module
from tritonpy_workers.concurrency_limiter import ConcurrencyLimiter, worker_capacity

QUICK, SLOW = 20_000, 20_000_000
MAX_WAIT_NS = module._MAX_WAIT_NS


class Loop:
    """An event loop that runs callbacks only on request."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], None]) -> None:
        self.later.append((delay, call))

    def next_iteration(self) -> None:
        """End the current iteration."""
        due, self.soon = self.soon, []
        for call in due:
            call()

    def wait(self) -> None:
        """Advance the time until all timers have fired."""
        due, self.later = self.later, []
        for _, call in due:
            call()


@pytest.fixture
def clock(monkeypatch):
    now = [0]
    monkeypatch.setattr(module, "now_ns", lambda: now[0])
    return now


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def limiter(loop, clock):
    """A limiter for one execution of a model that is known to be fast."""
    made = ConcurrencyLimiter(loop, 1)
    for _ in range(20):
        made.record(QUICK)
    return made


class Feed:
    """An instance with work for `times` endless executions."""

    def __init__(self, limiter: ConcurrencyLimiter, times: int = 1) -> None:
        self._limiter = limiter
        self.left = times
        self.runs = 0

    def __call__(self) -> None:
        if self._limiter.admits(self) and self.left:
            self._limiter.begin(self)
            self.left -= 1
            self.runs += 1


def test_at_least_one_worker_may_run(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert worker_capacity() == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    assert worker_capacity() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    assert worker_capacity() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert worker_capacity() == 1


def test_a_further_instance_waits_until_another_finishes(limiter, loop):
    feed = Feed(limiter)
    limiter.begin("one")
    feed()
    assert feed.runs == 0
    limiter.end("one")
    loop.next_iteration()
    assert feed.runs == 1


def test_the_longest_waiting_instance_is_first(limiter, loop):
    first, second = Feed(limiter, 2), Feed(limiter)
    limiter.begin("one")
    for waiting in (first, second, first):
        waiting()
    limiter.end("one")
    loop.next_iteration()
    assert (first.runs, second.runs) == (1, 0)
    limiter.end(first)
    loop.next_iteration()
    assert (first.runs, second.runs) == (1, 1)


def test_a_continuing_instance_delays_others_only_for_the_maximum_wait(limiter, loop, clock):
    """The waiting request may be bound to the other instance, such as one of a sequence."""
    busy, other = Feed(limiter, 99), Feed(limiter)
    busy()
    other()
    for _ in range(6):
        clock[0] += MAX_WAIT_NS // 5
        limiter.end(busy)
        busy()
        loop.next_iteration()
        loop.wait()
    assert busy.runs >= 5
    assert other.runs == 1


def test_a_removed_instance_is_not_called_again(limiter, loop):
    calls = []

    def leaves() -> None:
        if calls or not limiter.admits(leaves):
            calls.append("called")

    limiter.begin("one")
    leaves()
    for _ in range(3):
        loop.wait()
    assert len(calls) == 2


def test_a_still_waiting_instance_is_checked_again(limiter, loop, clock):
    limiter.begin("one")
    first, second = Feed(limiter), Feed(limiter)
    first()
    second()
    for _ in range(2):
        clock[0] += MAX_WAIT_NS + 1
        loop.wait()
    assert (first.runs, second.runs) == (1, 1)


def test_an_instance_without_work_leaves_its_capacity_to_the_next(limiter, loop):
    idle, waits = Feed(limiter, 0), Feed(limiter)
    limiter.begin("one")
    idle()
    waits()
    limiter.end("one")
    loop.next_iteration()
    assert (idle.runs, waits.runs) == (0, 1)


def test_a_raising_callback_does_not_block_others(limiter, loop):
    def fails() -> None:
        if limiter.admits(fails):
            raise ValueError("not today")

    waits = Feed(limiter)
    limiter.begin("one")
    fails()
    waits()
    limiter.end("one")
    with pytest.raises(ValueError, match="not today"):
        loop.next_iteration()
    loop.wait()
    assert waits.runs == 1


def test_no_instance_waits_before_executions_are_known_to_be_short(loop, clock):
    limiter = ConcurrencyLimiter(loop, 1)
    limiter.begin("one")
    assert limiter.admits(Feed(limiter))
    limiter.record(QUICK)
    assert not limiter.admits(Feed(limiter))


def test_no_instance_waits_for_long_executions(limiter):
    limiter.begin("one")
    for _ in range(20):
        limiter.record(SLOW)
    assert limiter.admits(Feed(limiter))


def test_no_instance_waits_for_an_unusually_long_execution(limiter, loop, clock):
    requested: list[bool] = []

    def ask() -> None:
        requested.append(limiter.admits(ask))

    limiter.begin("one")
    ask()
    clock[0] += MAX_WAIT_NS + 1
    loop.wait()
    assert requested == [False, True]


def test_one_timer_serves_all_waiting_instances(limiter, loop):
    limiter.begin("one")
    limiter.admits(Feed(limiter))
    limiter.admits(Feed(limiter))
    assert [delay for delay, _ in loop.later] == [MAX_WAIT_NS / 1e9]


def test_an_end_without_a_begin_admits_no_instance(limiter, loop):
    limiter.begin("one")
    limiter.admits(Feed(limiter))
    limiter.end("another")
    assert loop.soon == []
