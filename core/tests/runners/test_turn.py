from __future__ import annotations

import threading

import pytest
from google.protobuf import text_format

from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter
from tritonpy.runners.turn import PooledTurn, Turn
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

GROUP = text_format.Parse('rate_limiter { resources { name: "R" count: 1 } }', ModelInstanceGroup())


@pytest.fixture
def limiter():
    it = ExecutionCountLimiter()
    for name in ("mine", "other"):
        it.register(name, 0, GROUP)
    return it


class Waiting:
    """A turn, a thread that takes it, and what came of that; `begun` is set where it had to wait."""

    def __init__(self, limiter, name="mine"):
        self.begun = threading.Event()
        self.turn = Turn(limiter, name, self.begun.set)
        self.said = []

    def ask(self, how):
        thread = threading.Thread(target=lambda: self.said.append(how()))
        thread.start()
        return thread


def test_a_turn_that_is_free_is_had_at_once(limiter):
    it = Waiting(limiter)
    assert it.turn.begin()
    assert it.turn.again()
    it.turn.end()
    assert not it.begun.is_set()


def test_a_thread_waits_for_its_turn_and_says_so_before(limiter):
    assert limiter.acquire("other", print)
    it = Waiting(limiter)
    thread = it.ask(it.turn.begin)
    assert it.begun.wait(10)
    assert it.said == []
    limiter.release("other")
    thread.join(10)
    assert it.said == [True]


def test_one_who_asks_again_comes_after_those_who_wait(limiter):
    it, granted = Waiting(limiter), threading.Event()
    assert it.turn.begin()
    assert not limiter.acquire("other", granted.set)
    thread = it.ask(it.turn.again)
    assert granted.wait(10)
    assert it.begun.wait(10)
    limiter.release("other")
    thread.join(10)
    assert it.said == [True]


def test_a_thread_that_waits_is_sent_away_when_its_instance_ends(limiter):
    assert limiter.acquire("other", print)
    it = Waiting(limiter)
    thread = it.ask(it.turn.begin)
    assert it.begun.wait(10)
    it.turn.give_up()
    thread.join(10)
    assert it.said == [False]
    limiter.unregister("mine")
    it.turn.end()  # there is nothing to give back any more
    limiter.release("other")
    assert limiter.acquire("other", print)


class Pooled:
    """A turn that takes no thread, and how often it was told that it was granted."""

    def __init__(self, limiter, name="mine"):
        self.grants = 0
        self.turn = PooledTurn(limiter, name, threading.RLock(), self.granted)

    def granted(self):
        self.grants += 1


def test_a_pooled_turn_that_is_free_is_had_at_once_and_again(limiter):
    it = Pooled(limiter)
    assert it.turn.take()
    assert it.turn.again()
    it.turn.release()
    assert (it.turn.held, it.grants) == (False, 0)


def test_a_pooled_turn_that_is_not_free_is_granted_later(limiter):
    other, it = Pooled(limiter, "other"), Pooled(limiter)
    assert other.turn.take()
    assert not it.turn.take()
    assert (it.turn.held, it.grants) == (False, 0)
    other.turn.release()
    assert (it.turn.held, it.grants) == (True, 1)


def test_a_grant_that_comes_before_the_answer_is_a_turn_at_once():
    class Hasty:
        def acquire(self, name, granted):
            granted()
            return False

    it = Pooled(Hasty())
    assert it.turn.take()
    assert it.grants == 0


def test_a_pooled_turn_that_is_given_up_waits_no_more_and_gives_a_late_grant_back(limiter):
    other, it = Pooled(limiter, "other"), Pooled(limiter)
    assert other.turn.take()
    assert not it.turn.take()
    assert it.turn.give_up()
    assert not it.turn.give_up()
    other.turn.release()
    assert it.grants == 0
    assert other.turn.take()
