from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tritonpy.runners.workers import crowd as module
from tritonpy.runners.workers.crowd import Crowd, room_for_workers

QUICK, SLOW = 20_000, 20_000_000


class Loop:
    """Runs nothing by itself."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], None]) -> None:
        self.later.append((delay, call))

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


def feed() -> None: ...


def other_feed() -> None: ...


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
    assert crowd.admits(feed)
    crowd.began("one")
    assert not crowd.admits(feed)
    crowd.ended("one")
    assert loop.soon == [feed]
    assert crowd.admits(feed)


def test_who_waits_longest_comes_first_and_each_once(crowd, loop):
    crowd.began("one")
    for waiting in (feed, other_feed, feed):
        assert not crowd.admits(waiting)
    crowd.ended("one")
    crowd.began("two")
    crowd.ended("two")
    crowd.began("three")
    crowd.ended("three")
    assert loop.soon == [feed, other_feed]


def test_nobody_waits_before_executions_are_known_to_be_quick(loop, clock):
    crowd = Crowd(loop, 1)
    crowd.began("one")
    assert crowd.admits(feed)
    crowd.took(QUICK)
    assert not crowd.admits(feed)


def test_nobody_waits_for_a_model_that_takes_its_time(crowd):
    crowd.began("one")
    for _ in range(20):
        crowd.took(SLOW)
    assert crowd.admits(feed)


def test_nobody_waits_for_an_execution_that_is_not_as_quick_as_those_before(crowd, loop, clock):
    asked: list[bool] = []

    def ask() -> None:
        asked.append(crowd.admits(ask))

    crowd.began("one")
    ask()
    clock[0] += 600_000
    loop.wait()
    assert asked == [False, True]


def test_the_time_is_looked_at_once_for_all_who_wait(crowd, loop):
    crowd.began("one")
    crowd.admits(feed)
    crowd.admits(other_feed)
    assert [delay for delay, _ in loop.later] == [0.0005]


def test_an_end_that_had_no_begin_lets_nobody_in(crowd, loop):
    crowd.began("one")
    crowd.admits(feed)
    crowd.ended("another")
    assert loop.soon == []
