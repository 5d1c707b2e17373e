from __future__ import annotations

import asyncio

import pytest

from plugins.frontend_grpc.tests.fake_engine import eventually
from tritonpy_frontend_envoy.embedded import patrol as module
from tritonpy_frontend_envoy.embedded.patrol import Patrol


class Watched:
    def __init__(self):
        self.looks = 0
        self.watched = False

    def look(self):
        self.looks += 1


class ToyLoop:
    """Keeps what is to be called later; `walk` calls it."""

    def __init__(self):
        self.later = []
        self.soon = []
        self.woken = 0
        self.closed = False

    def call_later(self, _seconds, callback):
        self.later.append(callback)

    def call_soon_threadsafe(self, callback):
        if self.closed:
            raise RuntimeError
        self.woken += 1
        self.soon.append(callback)

    def walk(self):
        due, self.soon = self.soon, []
        for callback in due:
            callback()
        due, self.later = self.later, []
        for callback in due:
            callback()


@pytest.fixture
def loop():
    return ToyLoop()


@pytest.fixture
def patrol(loop):
    return Patrol(loop)


def test_what_is_over_before_the_second_round_is_never_looked_at(loop, patrol):
    quick = Watched()
    patrol.watch(quick)
    loop.walk()
    patrol.forget(quick)
    loop.walk()
    assert quick.looks == 0


def test_what_lasts_is_looked_at_in_every_round_until_it_is_forgotten(loop, patrol):
    slow = Watched()
    patrol.watch(slow)
    for _ in range(4):
        loop.walk()
    assert slow.looks == 3
    patrol.forget(slow)
    loop.walk()
    assert slow.looks == 3


def test_nothing_is_done_while_nothing_is_watched(loop, patrol):
    watched = Watched()
    patrol.watch(watched)
    patrol.forget(watched)
    patrol.forget(watched)
    loop.walk()
    assert loop.later == []
    patrol.watch(watched)
    assert len(loop.later) == 1
    patrol.watch(Watched())
    assert len(loop.later) == 1


def test_many_are_looked_at_in_turn(loop, patrol, monkeypatch):
    monkeypatch.setattr(module, "MOST_LOOKS", 2)
    several = [Watched() for _ in range(5)]
    for watched in several:
        patrol.watch(watched)
    loop.walk()
    for _ in range(5):
        loop.walk()
    assert [watched.looks for watched in several] == [2] * 5


def test_one_that_forgets_itself_while_it_is_looked_at_does_no_harm(loop, patrol):
    class Ending(Watched):
        def look(self):
            super().look()
            patrol.forget(self)

    several = [Ending(), Ending()]
    for watched in several:
        patrol.watch(watched)
    loop.walk()
    loop.walk()
    assert [watched.looks for watched in several] == [1, 1]
    loop.walk()
    assert loop.later == []


def test_a_look_that_fails_does_not_end_the_rounds(loop, patrol):
    class Failing(Watched):
        def look(self):
            super().look()
            raise RuntimeError("gone")

    failing = Failing()
    patrol.watch(failing)
    loop.walk()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gone"):
            loop.walk()
    assert failing.looks == 2


def test_what_is_expected_and_never_watched_is_looked_at_as_well(loop, patrol):
    silent = Watched()
    patrol.expect(silent)
    assert loop.woken == 1
    for _ in range(4):
        loop.walk()
    assert silent.looks == 3
    patrol.forget(silent)
    loop.walk()
    assert loop.later == []


def test_what_was_watched_in_the_meantime_is_expected_no_more(loop, patrol):
    quick = Watched()
    patrol.expect(quick)
    quick.watched = True
    patrol.watch(quick)
    patrol.forget(quick)
    for _ in range(3):
        loop.walk()
    assert (quick.looks, loop.later) == (0, [])


def test_many_that_are_expected_wake_the_loop_once_per_round(loop, patrol):
    for _ in range(3):
        for _ in range(10):
            each = Watched()
            patrol.expect(each)
            each.watched = True
        loop.walk()
    assert loop.woken == 3


def test_on_a_closed_loop_nobody_is_expected(loop, patrol):
    loop.closed = True
    patrol.expect(Watched())
    assert loop.woken == 0


def test_one_that_is_expected_while_a_round_begins_is_not_lost(loop, patrol):
    late = Watched()

    class Expecting(Watched):
        def __init__(self):
            super().__init__()
            self.asked = False

        @property
        def watched(self):  # asked for while the round takes what was expected
            if not self.asked:
                self.asked = True
                patrol.expect(late)
            return True

        @watched.setter
        def watched(self, _value):
            pass

    patrol.expect(Expecting())
    for _ in range(3):
        loop.walk()
    assert late.looks > 0


def test_threads_and_the_loop_lose_nothing_that_is_expected(monkeypatch):
    monkeypatch.setattr(module, "PERIOD_S", 0.0001)

    class Silent(Watched):
        def look(self):
            super().look()
            patrols[0].forget(self)

    patrols = []

    async def watch():
        patrols.append(Patrol(asyncio.get_running_loop()))
        silent = [Silent() for _ in range(3000)]

        def expect(some):
            for each in some:
                patrols[0].expect(each)

        await asyncio.gather(*(asyncio.to_thread(expect, silent[first::3]) for first in range(3)))
        await eventually(lambda: all(each.looks for each in silent))
        assert {each.looks for each in silent} == {1}

    asyncio.run(watch())


def test_it_walks_on_a_real_loop(monkeypatch):
    monkeypatch.setattr(module, "PERIOD_S", 0.001)

    async def watch():
        seen = asyncio.Event()

        class Noticed:
            def look(self):
                seen.set()

        Patrol(asyncio.get_running_loop()).watch(Noticed())
        await asyncio.wait_for(seen.wait(), 30)

    asyncio.run(watch())
