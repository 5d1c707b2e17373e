from __future__ import annotations

import pytest

from tritonpy import (
    Cancelled,
    InferRequest,
    InvalidArgument,
    QueueTimeout,
    SequenceInfo,
    Unavailable,
)

from .simulated_runner import IDLE_NS, MS, SimulatedRunner, config_text

STRATEGIES = pytest.mark.parametrize("strategy", ["direct {}", "oldest {}"])


@STRATEGIES
def test_a_sequence_begins_with_its_start(strategy):
    runner = SimulatedRunner(config_text(strategy))
    with pytest.raises(InvalidArgument) as refused:
        runner.send(7)
    assert refused.value.message == (
        "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the sequence"
    )
    with pytest.raises(InvalidArgument, match="sequence a b to"):
        runner.send("a b", end=True)
    assert not runner.scheduler.pending()


@STRATEGIES
def test_an_ended_sequence_has_to_start_again(strategy):
    runner = SimulatedRunner(config_text(strategy))
    runner.send(7, start=True, end=True)
    with pytest.raises(InvalidArgument, match="START"):
        runner.send(7)
    assert runner.run() == ["7.1"]


def test_a_request_without_a_sequence_is_rejected():
    runner = SimulatedRunner(config_text())
    request = InferRequest("m", {}, runner.recorder.sink)
    with pytest.raises(
        InvalidArgument, match="must specify a non-zero or non-empty correlation ID"
    ):
        runner.scheduler.enqueue(request)


def test_a_request_of_two_rows_is_rejected():
    runner = SimulatedRunner(config_text())
    request = InferRequest(
        "m", {}, runner.recorder.sink, sequence=SequenceInfo(1, True), batch_size=2
    )
    with pytest.raises(
        InvalidArgument, match="must specify batch-size 1 due to requirements of sequence batcher"
    ):
        runner.scheduler.enqueue(request)


@STRATEGIES
def test_a_restart_stays_where_the_sequence_is(strategy):
    runner = SimulatedRunner(config_text(strategy), instances=2)
    runner.send(1, start=True)
    runner.send(1, start=True)
    runner.send(1, end=True)
    assert [runner.run(0), runner.run(0), runner.run(0), runner.run(1)] == [
        ["1.1"],
        ["1.2"],
        ["1.3"],
        None,
    ]


@STRATEGIES
def test_low_slots_are_taken_first_at_all_instances(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=2), instances=2)
    for each in (1, 2, 3, 4):
        runner.send(each, start=True)
    assert [runner.run(0), runner.run(1)] == [["1.1", "3.1"], ["2.1", "4.1"]]


@STRATEGIES
def test_an_id_may_start_again_while_its_previous_sequence_is_served(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    runner.send(1, end=True)
    runner.send(1, start=True)
    runner.send(1, end=True)
    assert [runner.run() for _ in range(5)] == [["1.1"], ["1.2"], ["1.3"], ["1.4"], None]


@STRATEGIES
def test_an_idle_sequence_loses_its_slot(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    runner.send(2, start=True)
    runner.run()
    runner.ready()
    runner.advance(IDLE_NS - MS)
    assert runner.ready() is False
    runner.advance(MS)
    assert runner.run() == ["2.1"]
    with pytest.raises(InvalidArgument, match="START"):
        runner.send(1)


@STRATEGIES
def test_a_sequence_that_waits_or_runs_is_not_idle(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    runner.advance(3 * IDLE_NS)
    batch = runner.take()
    runner.advance(3 * IDLE_NS)
    runner.complete(batch)
    runner.advance(IDLE_NS // 2)
    runner.send(1, end=True)
    assert runner.run() == ["1.2"]


@STRATEGIES
def test_a_sequence_that_waits_too_long_for_a_slot_is_rejected(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    first = runner.send(2, start=True)
    second = runner.send(2, timeout_us=2_000)
    runner.advance(2 * MS)
    text = "timeout of the corresponding sequence has been expired"
    assert [runner.error(first), runner.error(second)] == [text, text]
    assert isinstance(runner.recorder.responses(first)[0].error, QueueTimeout)
    with pytest.raises(InvalidArgument, match="START"):
        runner.send(2)
    runner.send(1, end=True)
    assert [runner.run(), runner.run(), runner.run()] == [["1.1"], ["1.2"], None]


@STRATEGIES
def test_a_sequence_with_a_slot_does_not_time_out(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    late = runner.send(1, start=True, timeout_us=1_000)
    runner.advance(50 * MS)
    assert runner.run() == ["1.1"]
    assert runner.error(late) == ""


@STRATEGIES
def test_cancelling_a_request_cancels_those_behind_it(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    requests = [runner.send(1, start=True), runner.send(1), runner.send(1), runner.send(1)]
    other = runner.send(2, start=True)
    runner.scheduler.cancel(requests[2])
    assert [runner.error(each) for each in requests] == [
        None,
        None,
        "Request cancelled",
        "Request cancelled",
    ]
    assert isinstance(runner.recorder.responses(requests[3])[0].error, Cancelled)
    with pytest.raises(InvalidArgument, match="START"):
        runner.send(1)
    assert [runner.run(), runner.run(), runner.run()] == [["1.1"], ["1.2"], ["2.1"]]
    assert runner.error(other) == ""


@STRATEGIES
def test_a_cancelled_sequence_leaves_the_backlog_as_a_whole(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    requests = [runner.send(2, start=True), runner.send(2)]
    runner.send(3, start=True)
    runner.scheduler.cancel(requests[1])
    assert [runner.error(each) for each in requests] == ["Request cancelled"] * 2
    runner.send(1, end=True)
    assert [runner.run(), runner.run(), runner.run()] == [["1.1"], ["1.2"], ["3.1"]]


@STRATEGIES
def test_cancelling_a_running_request_changes_nothing(strategy):
    runner = SimulatedRunner(config_text(strategy))
    request = runner.send(1, start=True)
    batch = runner.take()
    runner.scheduler.cancel(request)
    assert runner.error(request) is None
    runner.complete(batch)
    runner.send(1)
    assert runner.run() == ["1.2"]


@STRATEGIES
def test_a_request_that_already_has_its_response_is_only_removed(strategy):
    runner = SimulatedRunner(config_text(strategy))
    first, second = runner.send(1, start=True), runner.send(1)
    first.finished = True
    runner.scheduler.cancel(first)
    assert runner.scheduler.pending() == (second,)
    assert runner.run() == ["1.2"]


@STRATEGIES
def test_a_stopped_scheduler_continues_live_sequences_only(strategy):
    runner = SimulatedRunner(config_text(strategy))
    runner.send(1, start=True)
    runner.run()
    runner.scheduler.stop()
    for name in (2, 1):
        with pytest.raises(Unavailable, match="has stopped accepting new inference requests"):
            runner.send(name, start=True)
    assert runner.scheduler.is_live()
    runner.send(1, end=True)
    assert runner.run()[0].startswith("1.")
    assert not runner.scheduler.is_live()


@STRATEGIES
def test_finish_gives_slots_to_waiting_sequences(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    assert runner.run() == ["1.1"]
    runner.send(1)
    for name in (2, 3):
        runner.send(name, start=True)
    runner.scheduler.stop()
    runner.scheduler.finish()
    assert [runner.run(), runner.run(), runner.run(), runner.run()] == [
        ["1.2"],
        ["2.1"],
        ["3.1"],
        None,
    ]
    assert not runner.scheduler.is_live()


@STRATEGIES
def test_a_removed_instance_finishes_its_begun_sequences(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=2), instances=2)
    for each in (1, 2, 3, 4):
        runner.send(each, start=True)
    assert runner.run(1) == ["2.1", "4.1"]
    runner.scheduler.instances_changed([0])
    assert runner.scheduler.holds(1)
    runner.send(5, start=True)
    runner.send(2, end=True)
    assert runner.run(1) == ["2.2"]
    runner.send(4, end=True)
    last = runner.take(1)
    runner.complete(last)
    assert not runner.scheduler.holds(1)
    assert [runner.run(1), runner.run(0), runner.run(0)] == [None, ["1.1", "3.1"], None]


@STRATEGIES
def test_sequences_that_have_not_begun_move_before_the_backlog(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1), instances=2)
    for each in (1, 2, 3):
        runner.send(each, start=True)
    runner.scheduler.instances_changed([0])
    assert not runner.scheduler.holds(1)
    assert runner.run(1) is None
    runner.send(1, end=True)
    runner.send(2, end=True)
    assert [runner.run(0) for _ in range(5)] == [["1.1"], ["1.2"], ["2.1"], ["2.2"], ["3.1"]]


@STRATEGIES
def test_a_decision_is_discarded_when_its_sequences_move(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1), instances=2)
    runner.send(1, start=True)
    runner.send(2, start=True)
    assert [runner.ready(0), runner.ready(1)] == [True, True]
    runner.scheduler.instances_changed([0])
    assert [runner.run(1), runner.run(0)] == [None, ["1.1"]]


@STRATEGIES
def test_removing_a_request_discards_the_decision(strategy):
    runner = SimulatedRunner(config_text(strategy))
    runner.send(1, start=True)
    first = runner.send(2, start=True)
    runner.send(2, width=3)
    assert runner.ready() is True
    first.finished = True
    runner.scheduler.cancel(first)
    assert runner.run() in (["1.1"], ["1.1", None])
    assert runner.run() in (["2.2"], [None, "2.2"])


@STRATEGIES
def test_an_added_instance_serves_the_backlog(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1))
    runner.send(1, start=True)
    runner.send(2, start=True)
    runner.scheduler.instances_changed([0, 1])
    assert [runner.run(0), runner.run(1)] == [["1.1"], ["2.1"]]


@STRATEGIES
def test_a_removed_instance_is_released_by_idle_sequences(strategy):
    runner = SimulatedRunner(config_text(strategy), instances=2)
    runner.send(1, start=True)
    runner.send(2, start=True)
    assert runner.run(1) == ["2.1"]
    runner.scheduler.instances_changed([0])
    runner.ready(1)
    runner.advance(IDLE_NS)
    assert not runner.scheduler.holds(1)


@pytest.mark.parametrize("strategy", ["direct {}", "oldest {}"])
def test_a_request_with_invalid_controls_stays_pending_and_releases_its_slot(strategy):
    control = "control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }"
    runner = SimulatedRunner(config_text(strategy, batch=1, more=control))
    request = runner.send("\ud800", start=True, end=True)
    with pytest.raises(UnicodeEncodeError):
        runner.take()
    assert runner.scheduler.pending() == (request,)
    request.finished = True
    runner.scheduler.cancel(request)
    runner.send("next", start=True, end=True)
    assert runner.run() == ["next.1"]
