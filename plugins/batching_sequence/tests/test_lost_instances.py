from __future__ import annotations

import pytest

from tritonpy import InferResponse, Internal

from .world import World, ids, text_of

STATE = 'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 }'
START_MISSING = (
    "inference request for sequence {} to model 'm' must specify the START flag on the first request of the sequence"
)


def lose(world, instance=0):
    """Let the process of an instance end, as a runner tells of it."""
    world.scheduler.lost(instance)
    for number, batch in list(world.open):
        if number == instance:
            world.open.remove((number, batch))
            for request in batch.requests:
                request.respond(InferResponse.failed(request, Internal("the process ended")))


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_a_sequence_ends_with_the_process_that_remembered_it(strategy):
    world = World(text_of(strategy))
    world.send(1, start=True)
    world.run()
    running = world.send(1)
    world.take()
    waiting = world.send(1)
    lose(world)
    assert world.error(running) == "the process ended"
    assert world.error(waiting) == START_MISSING.format(1)
    with pytest.raises(Exception, match="must specify the START flag"):
        world.send(1)
    again = world.send(1, start=True)
    world.run()
    assert world.error(again) == ""


def test_an_idle_sequence_ends_too_and_its_seat_is_free():
    world = World(text_of(batch=1))
    world.send(1, start=True)
    world.run()
    behind = world.send(2, start=True)
    assert world.run() is None
    lose(world)
    assert world.run() == ["2.1"]
    assert world.error(behind) == ""


def test_what_has_not_begun_runs_in_the_next_process():
    world = World(text_of())
    request = world.send(1, start=True)
    lose(world)
    assert world.run() == ["1.1"]
    assert world.error(request) == ""


def test_a_start_that_waits_begins_in_the_next_process():
    world = World(text_of())
    world.send(1, start=True)
    world.run()
    lost, anew, end = world.send(1), world.send(1, start=True), world.send(1, end=True)
    lose(world)
    assert world.error(lost) == START_MISSING.format(1)
    assert [world.run(), world.run(), world.run()] == [["1.3"], ["1.4"], None]
    assert (world.error(anew), world.error(end)) == ("", "")
    assert not world.scheduler.pending()


def test_other_instances_keep_their_sequences():
    world = World(text_of(batch=1), instances=2)
    world.send(1, start=True)
    world.send(2, start=True)
    world.run(0)
    world.run(1)
    lose(world, 0)
    kept = world.send(2)
    world.run(1)
    assert world.error(kept) == ""
    with pytest.raises(Exception, match=r"sequence 1 .* must specify the START flag"):
        world.send(1)


def test_states_that_the_server_keeps_outlive_the_process():
    world = World(text_of(more=STATE))
    world.send(1, start=True)
    world.run()
    world.send(1)
    world.take()
    lose(world)
    world.send(1)
    assert ids(world.take()) == ["1.3"]


def test_an_iteration_that_waits_is_refused():
    world = World(text_of(more="iterative_sequence: true"))
    request = world.send(0)
    world.take()
    world.open.clear()
    request.batch = None
    world.scheduler.released(request, reschedule=True)
    lose(world)
    assert (
        world.error(request) == "The instance that ran the request has ended, and with it what it knew of the request"
    )
    assert world.run() is None


def test_an_instance_that_nobody_knows_is_no_loss():
    world = World(text_of())
    world.scheduler.lost(7)
    world.send(1, start=True)
    assert world.run() == ["1.1"]


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 1 }"])
def test_while_an_instance_is_down_sequences_begin_at_the_others(strategy):
    world = World(text_of(strategy, batch=1), instances=2)
    waiting = world.send(1, start=True)
    lose(world, 0)
    assert world.run(1) == ["1.1"]
    world.send(1, end=True)
    world.run(1)
    for number in (2, 3):
        world.send(number, start=True, end=True)
        assert world.run(1) == [f"{number}.1"]
    assert world.error(waiting) == ""
    world.scheduler.restored(0)
    world.send(4, start=True)
    assert world.run(0) == ["4.1"]


def test_a_sequence_that_had_to_sit_at_an_instance_that_is_down_moves_to_the_first_free_seat():
    world = World(text_of(batch=1), instances=2)
    lose(world, 0)
    world.send(1, start=True)
    first, second = world.send(2, start=True), world.send(3, start=True)
    assert world.run(1) == ["1.1"]
    world.send(1, end=True)
    assert [world.run(1), world.run(1)] == [["1.2"], ["2.1"]]
    world.scheduler.restored(0)
    assert world.run(0) == ["3.1"]
    assert (world.error(first), world.error(second)) == ("", "")


def test_where_every_instance_is_down_sequences_keep_a_seat_so_that_they_can_be_refused():
    world = World(text_of(batch=1), instances=2)
    lose(world, 0)
    lose(world, 1)
    world.send(1, start=True)
    world.send(2, start=True)
    assert [world.ready(0), world.ready(1)] == [True, True]


def test_a_sequence_that_was_not_executed_begins_anew_and_elsewhere():
    world = World(text_of("oldest { max_candidate_sequences: 1 }", batch=1), instances=2)
    request = world.send(1, start=True)
    world.take(0)
    world.open.clear()
    assert world.scheduler.take_back([request]) == []
    world.scheduler.lost(0)
    assert world.run(1) == ["1.1"]
    assert world.error(request) == ""


def test_a_later_request_that_was_not_executed_ends_with_its_sequence():
    world = World(text_of())
    world.send(1, start=True)
    world.run()
    request = world.send(1)
    world.take()
    world.open.clear()
    assert world.scheduler.take_back([request]) == []
    world.scheduler.lost(0)
    assert world.error(request) == START_MISSING.format(1)


@pytest.mark.parametrize("more", [STATE, "iterative_sequence: true"])
def test_what_ran_with_a_state_of_the_server_is_not_run_again(more):
    world = World(text_of(more=more))
    request = world.send(1, start=True)
    world.take()
    assert list(world.scheduler.take_back([request])) == [request]
