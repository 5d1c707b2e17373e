from __future__ import annotations

import threading

import pytest
from google.protobuf import text_format

from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter
from tritonpy.runners.turn import Turn
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
