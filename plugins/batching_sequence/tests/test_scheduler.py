from __future__ import annotations

import pytest

from tritonpy import Cancelled, InferRequest, InvalidArgument, QueueTimeout, SequenceInfo, Unavailable

from .world import IDLE_NS, MS, World, text_of

STRATEGIES = pytest.mark.parametrize("strategy", ["direct {}", "oldest {}"])


@STRATEGIES
def test_a_sequence_begins_with_its_start(strategy):
    world = World(text_of(strategy))
    with pytest.raises(InvalidArgument) as refused:
        world.send(7)
    assert refused.value.message == (
        "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the sequence"
    )
    with pytest.raises(InvalidArgument, match="sequence a b to"):
        world.send("a b", end=True)
    assert not world.scheduler.pending()


@STRATEGIES
def test_after_its_end_it_has_to_start_again(strategy):
    world = World(text_of(strategy))
    world.send(7, start=True, end=True)
    with pytest.raises(InvalidArgument, match="START"):
        world.send(7)
    assert world.run() == ["7.1"]


def test_a_request_outside_of_any_sequence_is_refused():
    world = World(text_of())
    request = InferRequest("m", {}, world.witness.sink)
    with pytest.raises(InvalidArgument, match="must specify a non-zero or non-empty correlation ID"):
        world.scheduler.enqueue(request)


def test_a_request_of_two_rows_is_refused():
    world = World(text_of())
    request = InferRequest("m", {}, world.witness.sink, sequence=SequenceInfo(1, True), batch_size=2)
    with pytest.raises(InvalidArgument, match="must specify batch-size 1 due to requirements of sequence batcher"):
        world.scheduler.enqueue(request)


@STRATEGIES
def test_a_restart_stays_where_the_sequence_is(strategy):
    world = World(text_of(strategy), instances=2)
    world.send(1, start=True)
    world.send(1, start=True)
    world.send(1, end=True)
    assert [world.run(0), world.run(0), world.run(0), world.run(1)] == [["1.1"], ["1.2"], ["1.3"], None]


@STRATEGIES
def test_low_slots_are_taken_first_at_all_instances(strategy):
    world = World(text_of(strategy, batch=2), instances=2)
    for each in (1, 2, 3, 4):
        world.send(each, start=True)
    assert [world.run(0), world.run(1)] == [["1.1", "3.1"], ["2.1", "4.1"]]


@STRATEGIES
def test_an_id_may_live_again_while_its_namesake_is_served(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    world.send(1, end=True)
    world.send(1, start=True)
    world.send(1, end=True)
    assert [world.run() for _ in range(5)] == [["1.1"], ["1.2"], ["1.3"], ["1.4"], None]


@STRATEGIES
def test_an_idle_sequence_loses_its_slot(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    world.send(2, start=True)
    world.run()
    world.ready()
    world.pass_time(IDLE_NS - MS)
    assert world.ready() is False
    world.pass_time(MS)
    assert world.run() == ["2.1"]
    with pytest.raises(InvalidArgument, match="START"):
        world.send(1)


@STRATEGIES
def test_a_sequence_that_waits_or_runs_is_not_idle(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    world.pass_time(3 * IDLE_NS)
    batch = world.take()
    world.pass_time(3 * IDLE_NS)
    world.complete(batch)
    world.pass_time(IDLE_NS // 2)
    world.send(1, end=True)
    assert world.run() == ["1.2"]


@STRATEGIES
def test_who_waits_too_long_for_a_slot_is_refused_with_the_whole_sequence(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    first = world.send(2, start=True)
    second = world.send(2, timeout_us=2_000)
    world.pass_time(2 * MS)
    text = "timeout of the corresponding sequence has been expired"
    assert [world.error(first), world.error(second)] == [text, text]
    assert isinstance(world.witness.answers(first)[0].error, QueueTimeout)
    with pytest.raises(InvalidArgument, match="START"):
        world.send(2)
    world.send(1, end=True)
    assert [world.run(), world.run(), world.run()] == [["1.1"], ["1.2"], None]


@STRATEGIES
def test_who_has_a_slot_has_all_the_time_it_needs(strategy):
    world = World(text_of(strategy, batch=1))
    late = world.send(1, start=True, timeout_us=1_000)
    world.pass_time(50 * MS)
    assert world.run() == ["1.1"]
    assert world.error(late) == ""


@STRATEGIES
def test_a_cancelled_request_takes_those_behind_it_along(strategy):
    world = World(text_of(strategy, batch=1))
    requests = [world.send(1, start=True), world.send(1), world.send(1), world.send(1)]
    other = world.send(2, start=True)
    world.scheduler.cancel(requests[2])
    assert [world.error(each) for each in requests] == [None, None, "Request cancelled", "Request cancelled"]
    assert isinstance(world.witness.answers(requests[3])[0].error, Cancelled)
    with pytest.raises(InvalidArgument, match="START"):
        world.send(1)
    assert [world.run(), world.run(), world.run()] == [["1.1"], ["1.2"], ["2.1"]]
    assert world.error(other) == ""


@STRATEGIES
def test_a_cancelled_sequence_leaves_the_backlog_as_a_whole(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    requests = [world.send(2, start=True), world.send(2)]
    world.send(3, start=True)
    world.scheduler.cancel(requests[1])
    assert [world.error(each) for each in requests] == ["Request cancelled"] * 2
    world.send(1, end=True)
    assert [world.run(), world.run(), world.run()] == [["1.1"], ["1.2"], ["3.1"]]


@STRATEGIES
def test_cancelling_what_runs_changes_nothing(strategy):
    world = World(text_of(strategy))
    request = world.send(1, start=True)
    batch = world.take()
    world.scheduler.cancel(request)
    assert world.error(request) is None
    world.complete(batch)
    world.send(1)
    assert world.run() == ["1.2"]


@STRATEGIES
def test_what_was_answered_elsewhere_is_only_forgotten(strategy):
    world = World(text_of(strategy))
    first, second = world.send(1, start=True), world.send(1)
    first.answered = True
    world.scheduler.cancel(first)
    assert world.scheduler.pending() == (second,)
    assert world.run() == ["1.2"]


@STRATEGIES
def test_once_stopped_live_sequences_go_on_and_no_new_one_begins(strategy):
    world = World(text_of(strategy))
    world.send(1, start=True)
    world.run()
    world.scheduler.stop()
    for name in (2, 1):
        with pytest.raises(Unavailable, match="has stopped accepting new inference requests"):
            world.send(name, start=True)
    assert world.scheduler.is_live()
    world.send(1, end=True)
    assert world.run()[0].startswith("1.")
    assert not world.scheduler.is_live()


@STRATEGIES
def test_when_nothing_more_can_come_those_that_wait_for_a_seat_get_it_though_nobody_ended(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    assert world.run() == ["1.1"]
    world.send(1)
    for name in (2, 3):
        world.send(name, start=True)
    world.scheduler.stop()
    world.scheduler.finish()
    assert [world.run(), world.run(), world.run(), world.run()] == [["1.2"], ["2.1"], ["3.1"], None]
    assert not world.scheduler.is_live()


@STRATEGIES
def test_a_removed_instance_finishes_what_has_begun_there(strategy):
    world = World(text_of(strategy, batch=2), instances=2)
    for each in (1, 2, 3, 4):
        world.send(each, start=True)
    assert world.run(1) == ["2.1", "4.1"]
    world.scheduler.instances_changed([0])
    assert world.scheduler.holds(1)
    world.send(5, start=True)
    world.send(2, end=True)
    assert world.run(1) == ["2.2"]
    world.send(4, end=True)
    last = world.take(1)
    world.complete(last)
    assert not world.scheduler.holds(1)
    assert [world.run(1), world.run(0), world.run(0)] == [None, ["1.1", "3.1"], None]


@STRATEGIES
def test_what_has_not_begun_moves_to_another_instance_before_the_backlog(strategy):
    world = World(text_of(strategy, batch=1), instances=2)
    for each in (1, 2, 3):
        world.send(each, start=True)
    world.scheduler.instances_changed([0])
    assert not world.scheduler.holds(1)
    assert world.run(1) is None
    world.send(1, end=True)
    world.send(2, end=True)
    assert [world.run(0) for _ in range(5)] == [["1.1"], ["1.2"], ["2.1"], ["2.2"], ["3.1"]]


@STRATEGIES
def test_a_decision_does_not_outlive_what_it_was_about(strategy):
    world = World(text_of(strategy, batch=1), instances=2)
    world.send(1, start=True)
    world.send(2, start=True)
    assert [world.ready(0), world.ready(1)] == [True, True]
    world.scheduler.instances_changed([0])
    assert [world.run(1), world.run(0)] == [None, ["1.1"]]


@STRATEGIES
def test_what_takes_the_place_of_a_forgotten_request_is_looked_at_anew(strategy):
    world = World(text_of(strategy))
    world.send(1, start=True)
    first = world.send(2, start=True)
    world.send(2, width=3)
    assert world.ready() is True
    first.answered = True
    world.scheduler.cancel(first)
    assert world.run() in (["1.1"], ["1.1", None])
    assert world.run() in (["2.2"], [None, "2.2"])


@STRATEGIES
def test_an_added_instance_serves_the_backlog(strategy):
    world = World(text_of(strategy, batch=1))
    world.send(1, start=True)
    world.send(2, start=True)
    world.scheduler.instances_changed([0, 1])
    assert [world.run(0), world.run(1)] == [["1.1"], ["2.1"]]


@STRATEGIES
def test_an_idle_sequence_does_not_hold_a_removed_instance_for_ever(strategy):
    world = World(text_of(strategy), instances=2)
    world.send(1, start=True)
    world.send(2, start=True)
    assert world.run(1) == ["2.1"]
    world.scheduler.instances_changed([0])
    world.ready(1)
    world.pass_time(IDLE_NS)
    assert not world.scheduler.holds(1)


@pytest.mark.parametrize("strategy", ["direct {}", "oldest {}"])
def test_what_cannot_be_told_to_the_model_waits_for_whoever_answers_it_and_its_seat_is_free_again(strategy):
    control = "control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }"
    world = World(text_of(strategy, batch=1, more=control))
    request = world.send("\ud800", start=True, end=True)
    with pytest.raises(UnicodeEncodeError):
        world.take()
    assert world.scheduler.pending() == (request,)
    request.answered = True
    world.scheduler.cancel(request)
    world.send("next", start=True, end=True)
    assert world.run() == ["next.1"]
