from __future__ import annotations

import pytest

from tritonpy import InvalidArgument

from .simulated_runner import SimulatedRunner, config_text


@pytest.fixture
def runner(monkeypatch):
    def make(requests, backlog=None, strategy="direct {}", instances=1, batch=4):
        monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", str(requests))
        if backlog is not None:
            monkeypatch.setenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", str(backlog))
        return SimulatedRunner(config_text(strategy, batch), instances)

    return make


def test_direct_batches_wait_until_enough_requests_are_queued_once(runner):
    held = runner(3)
    held.send(1, start=True)
    held.send(1)
    assert (held.ready(), held.run()) == (False, None)
    held.send(2, start=True)
    assert [held.run(), held.run()] == [["1.1", "2.1"], ["1.2"]]
    held.send(2)
    assert held.run() == [None, "2.2"]


def test_requests_of_all_instances_count(runner):
    held = runner(2, instances=2, batch=1)
    held.send(1, start=True)
    assert held.ready(0) is held.ready(1) is False
    held.send(2, start=True)
    assert [held.run(0), held.run(1)] == [["1.1"], ["2.1"]]


def test_the_backlog_must_be_long_enough(runner):
    held = runner(1, backlog=2, batch=1)
    held.send(1, start=True, end=True)
    held.send(2, start=True)
    assert held.run() is None
    held.send(2, end=True)
    assert [held.run(), held.run(), held.run()] == [["1.1"], ["2.1"], ["2.2"]]


def test_requests_of_the_backlog_do_not_count_as_queued(runner):
    held = runner(2, batch=1)
    held.send(1, start=True)
    held.send(2, start=True)
    assert held.run() is None
    held.send(1)
    assert held.run() == ["1.1"]


def test_other_instances_continue_when_the_backlog_shrinks(runner):
    held = runner(2, backlog=1, instances=2, batch=1)
    held.send(1, start=True, end=True)
    held.send(2, start=True, end=True)
    held.send(3, start=True, end=True)
    assert [held.run(0), held.run(1), held.run(0)] == [["1.1"], ["2.1"], ["3.1"]]


def test_the_backlog_variable_alone_holds_nothing(runner, monkeypatch):
    held = runner(0, backlog=5)
    held.send(1, start=True)
    assert held.run() == ["1.1"]


def test_with_the_oldest_strategy_each_instance_waits_separately(runner):
    held = runner(2, backlog=9, strategy="oldest {}", instances=2)
    held.send(1, start=True)  # at the first instance
    held.send(1)  # becomes a candidate when the previous request has ended
    held.send(2, start=True)  # at the second
    assert held.ready(0) is held.ready(1) is False
    held.send(3, start=True)
    assert (held.run(0), held.ready(1)) == (["1.1", "3.1"], False)
    assert held.run(0) == ["1.2"]
    held.send(4, start=True)
    assert held.run(1) == ["2.1", "4.1"]


def test_a_delayed_sequence_of_the_backlog_still_expires(runner):
    held = runner(9, batch=1)
    held.send(1, start=True)
    late = held.send(2, start=True, timeout_us=1000)
    held.advance(2_000_000)
    assert held.error(late) == "timeout of the corresponding sequence has been expired"


@pytest.mark.parametrize(
    "variable", ["TRITONSERVER_DELAY_SCHEDULER", "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"]
)
def test_a_variable_that_is_not_a_number_is_rejected(monkeypatch, variable):
    monkeypatch.setenv(variable, "many")
    with pytest.raises(
        InvalidArgument, match=f"{variable} must be a number of requests, it is 'many'"
    ):
        SimulatedRunner(config_text())
