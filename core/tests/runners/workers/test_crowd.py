from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tritonpy.runners.workers import crowd as module
from tritonpy.runners.workers.crowd import Crowd, room_for_workers

QUICK, SLOW = 20_000, 20_000_000
PATIENCE_NS = module._PATIENCE_NS


class Loop:
    """Runs nothing by itself."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], None]) -> None:
        self.later.append((delay, call))

    def turn(self) -> None:
        """Come to the end of the turn."""
        due, self.soon = self.soon, []
        for call in due:
            call()

    def wait(self) -> None:
        """Let the time come of everything that waits for one."""
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
def crowd(loop, clock):
    """One that has room for one, of a model that is known to be quick."""
    made = Crowd(loop, 1)
    for _ in range(20):
        made.took(QUICK)
    return made


class Feed:
    """An instance that has something to do, `times` times, and executes it without an end."""

    def __init__(self, crowd: Crowd, times: int = 1) -> None:
        self._crowd = crowd
        self.left = times
        self.runs = 0

    def __call__(self) -> None:
        if self._crowd.admits(self) and self.left:
            self._crowd.began(self)
            self.left -= 1
            self.runs += 1


def test_there_is_room_for_at_least_one_beside_the_server(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert room_for_workers() == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    assert room_for_workers() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    assert room_for_workers() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert room_for_workers() == 1


def test_one_more_waits_until_another_is_done(crowd, loop):
    feed = Feed(crowd)
    crowd.began("one")
    feed()
    assert feed.runs == 0
    crowd.ended("one")
    loop.turn()
    assert feed.runs == 1


def test_who_waits_longest_comes_first_and_each_once(crowd, loop):
    first, second = Feed(crowd, 2), Feed(crowd)
    crowd.began("one")
    for waiting in (first, second, first):
        waiting()
    crowd.ended("one")
    loop.turn()
    assert (first.runs, second.runs) == (1, 0)
    crowd.ended(first)
    loop.turn()
    assert (first.runs, second.runs) == (1, 1)


def test_who_goes_on_at_once_keeps_others_waiting_for_a_moment_only(crowd, loop, clock):
    """What waits for the other may be for nobody else: a sequence that is bound to it."""
    busy, other = Feed(crowd, 99), Feed(crowd)
    busy()
    other()
    for _ in range(6):
        clock[0] += PATIENCE_NS // 5
        crowd.ended(busy)
        busy()
        loop.turn()
        loop.wait()
    assert busy.runs >= 5
    assert other.runs == 1


def test_who_is_gone_when_it_is_called_is_called_no_more(crowd, loop):
    calls = []

    def leaves() -> None:
        if calls or not crowd.admits(leaves):
            calls.append("called")

    crowd.began("one")
    leaves()
    for _ in range(3):
        loop.wait()
    assert len(calls) == 2


def test_who_still_waits_when_it_is_looked_at_is_looked_at_again(crowd, loop, clock):
    crowd.began("one")
    first, second = Feed(crowd), Feed(crowd)
    first()
    second()
    for _ in range(2):
        clock[0] += PATIENCE_NS + 1
        loop.wait()
    assert (first.runs, second.runs) == (1, 1)


def test_who_has_nothing_to_do_any_more_leaves_the_room_to_the_next(crowd, loop):
    idle, waits = Feed(crowd, 0), Feed(crowd)
    crowd.began("one")
    idle()
    waits()
    crowd.ended("one")
    loop.turn()
    assert (idle.runs, waits.runs) == (0, 1)


def test_one_that_raises_when_it_is_called_leaves_nobody_waiting(crowd, loop):
    def fails() -> None:
        if crowd.admits(fails):
            raise ValueError("not today")

    waits = Feed(crowd)
    crowd.began("one")
    fails()
    waits()
    crowd.ended("one")
    with pytest.raises(ValueError, match="not today"):
        loop.turn()
    loop.wait()
    assert waits.runs == 1


def test_nobody_waits_before_executions_are_known_to_be_quick(loop, clock):
    crowd = Crowd(loop, 1)
    crowd.began("one")
    assert crowd.admits(Feed(crowd))
    crowd.took(QUICK)
    assert not crowd.admits(Feed(crowd))


def test_nobody_waits_for_a_model_that_takes_its_time(crowd):
    crowd.began("one")
    for _ in range(20):
        crowd.took(SLOW)
    assert crowd.admits(Feed(crowd))


def test_nobody_waits_for_an_execution_that_is_not_as_quick_as_those_before(crowd, loop, clock):
    asked: list[bool] = []

    def ask() -> None:
        asked.append(crowd.admits(ask))

    crowd.began("one")
    ask()
    clock[0] += PATIENCE_NS + 1
    loop.wait()
    assert asked == [False, True]


def test_the_time_is_looked_at_once_for_all_who_wait(crowd, loop):
    crowd.began("one")
    crowd.admits(Feed(crowd))
    crowd.admits(Feed(crowd))
    assert [delay for delay, _ in loop.later] == [PATIENCE_NS / 1e9]


def test_an_end_that_had_no_begin_lets_nobody_in(crowd, loop):
    crowd.began("one")
    crowd.admits(Feed(crowd))
    crowd.ended("another")
    assert loop.soon == []
