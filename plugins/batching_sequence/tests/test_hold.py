from __future__ import annotations

import pytest

from tritonpy import InvalidArgument

from .world import World, text_of


@pytest.fixture
def world(monkeypatch):
    def make(requests, backlog=None, strategy="direct {}", instances=1, batch=4):
        monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", str(requests))
        if backlog is not None:
            monkeypatch.setenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", str(backlog))
        return World(text_of(strategy, batch), instances)

    return make


def test_direct_batches_wait_until_enough_requests_are_queued_once(world):
    held = world(3)
    held.send(1, start=True)
    held.send(1)
    assert (held.ready(), held.run()) == (False, None)
    held.send(2, start=True)
    assert [held.run(), held.run()] == [["1.1", "2.1"], ["1.2"]]
    held.send(2)
    assert held.run() == [None, "2.2"]


def test_requests_of_all_instances_count(world):
    held = world(2, instances=2, batch=1)
    held.send(1, start=True)
    assert held.ready(0) is held.ready(1) is False
    held.send(2, start=True)
    assert [held.run(0), held.run(1)] == [["1.1"], ["2.1"]]


def test_the_backlog_must_be_long_enough_too(world):
    held = world(1, backlog=2, batch=1)
    held.send(1, start=True, end=True)
    held.send(2, start=True)
    assert held.run() is None
    held.send(2, end=True)
    assert [held.run(), held.run(), held.run()] == [["1.1"], ["2.1"], ["2.2"]]


def test_requests_of_the_backlog_do_not_count_as_queued(world):
    held = world(2, batch=1)
    held.send(1, start=True)
    held.send(2, start=True)
    assert held.run() is None
    held.send(1)
    assert held.run() == ["1.1"]


def test_the_other_instances_run_on_when_the_backlog_moves_up(world):
    held = world(2, backlog=1, instances=2, batch=1)
    held.send(1, start=True, end=True)
    held.send(2, start=True, end=True)
    held.send(3, start=True, end=True)
    assert [held.run(0), held.run(1), held.run(0)] == [["1.1"], ["2.1"], ["3.1"]]


def test_the_backlog_variable_alone_holds_nothing(world, monkeypatch):
    held = world(0, backlog=5)
    held.send(1, start=True)
    assert held.run() == ["1.1"]


def test_with_the_oldest_strategy_each_instance_waits_for_sequences_of_its_own(world):
    held = world(2, backlog=9, strategy="oldest {}", instances=2)
    held.send(1, start=True)  # at the first instance
    held.send(1)  # is no candidate before the request ahead of it has ended
    held.send(2, start=True)  # at the second
    assert held.ready(0) is held.ready(1) is False
    held.send(3, start=True)
    assert (held.run(0), held.ready(1)) == (["1.1", "3.1"], False)
    assert held.run(0) == ["1.2"]
    held.send(4, start=True)
    assert held.run(1) == ["2.1", "4.1"]


def test_a_sequence_of_the_backlog_expires_all_the_same(world):
    held = world(9, batch=1)
    held.send(1, start=True)
    late = held.send(2, start=True, timeout_us=1000)
    held.pass_time(2_000_000)
    assert held.error(late) == "timeout of the corresponding sequence has been expired"


@pytest.mark.parametrize("variable", ["TRITONSERVER_DELAY_SCHEDULER", "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"])
def test_a_variable_that_is_no_number_is_refused(monkeypatch, variable):
    monkeypatch.setenv(variable, "many")
    with pytest.raises(InvalidArgument, match=f"{variable} must be a number of requests, it is 'many'"):
        World(text_of())
