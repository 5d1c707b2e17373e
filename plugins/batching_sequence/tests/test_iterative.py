from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse, InvalidArgument, SequenceInfo, Tensor, Unavailable
from tritonpy.testing import Witness
from tritonpy_batching_sequence.iterative import Iterations

from .world import IDLE_NS, World, text_of

ITERATIVE = "iterative_sequence: true"
STRATEGIES = ["direct {}", "oldest { max_candidate_sequences: 3 }"]
START_AND_END = """
control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
"""


def request(sequence: SequenceInfo | None = None) -> InferRequest:
    return InferRequest("m", {}, Witness().sink, sequence=sequence)


def test_each_request_starts_a_sequence_of_its_own() -> None:
    iterations, requests = Iterations(), [request() for _ in range(3)]
    for each in requests:
        iterations.begin(each, {})
    assert [each.sequence for each in requests] == [SequenceInfo(number, start=True) for number in (1, 2, 3)]


def test_ids_of_live_sequences_are_left_out() -> None:
    iterations, one = Iterations(), request()
    iterations.begin(one, {1: "", 2: "", "3": ""})
    assert one.sequence == SequenceInfo(3, start=True)


def test_a_clients_own_id_is_kept_with_its_start_flag_alone() -> None:
    iterations = Iterations()
    for given, kept in (
        (SequenceInfo(7, start=True, end=True), SequenceInfo(7, start=True)),
        (SequenceInfo("text"), SequenceInfo("text")),
        (SequenceInfo(0, start=True), SequenceInfo(1, start=True)),
        (SequenceInfo("", end=True), SequenceInfo(2, start=True)),
    ):
        one = request(given)
        iterations.begin(one, {})
        assert one.sequence == kept


def test_a_further_iteration_has_no_flags() -> None:
    one = request()
    Iterations().begin(one, {})
    Iterations.again(one)
    assert one.sequence == SequenceInfo(1)


def hand_back(world, batch, *requests):
    """End a batch whose `requests` are to run again."""
    world.open = [(instance, each) for instance, each in world.open if each is not batch]
    for one in batch.requests:
        if one in requests:
            one.batch = None
            world.scheduler.released(one, reschedule=True)
        else:
            one.respond(InferResponse((), "m", 1, one.id))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_request_runs_until_it_is_answered(strategy):
    world = World(text_of(strategy, more=ITERATIVE + START_AND_END))
    one = world.send(0)
    flags = []
    for _ in range(3):
        batch = world.take()
        flags.append([tensor.numpy().tolist() for tensor in batch.controls])
        hand_back(world, batch, one)
    world.run()
    assert flags == [[[[1]], [[0]]], [[[0]], [[0]]], [[[0]], [[0]]]]
    assert world.error(one) == ""
    assert world.run() is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_join_between_the_turns_of_others(strategy):
    world = World(text_of(strategy, batch=3, more=ITERATIVE))
    long = world.send("")
    batch = world.take()
    short = world.send("")
    hand_back(world, batch, long)
    batch = world.take()
    assert set(batch.requests) == {long, short}
    hand_back(world, batch, long)
    assert world.error(short) == ""
    assert world.take().requests == [long]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_seat_of_an_answered_request_is_free(strategy):
    world = World(text_of(strategy, batch=3, more=ITERATIVE))
    requests = [world.send(0) for _ in range(7)]
    while world.run():
        pass
    assert [world.error(each) for each in requests] == [""] * 7
    assert len({each.sequence.id for each in requests}) == 7


def test_an_iteration_that_is_cancelled_while_it_waits_is_dropped():
    world = World(text_of(more=ITERATIVE))
    one = world.send(0)
    hand_back(world, world.take(), one)
    one.cancelled = True
    world.scheduler.cancel(one)
    assert (world.error(one), world.run()) == ("Request cancelled", None)


def test_what_was_cancelled_while_it_ran_does_not_run_again():
    world = World(text_of(more=ITERATIVE))
    one = world.send(0)
    batch = world.take()
    one.cancelled = True
    hand_back(world, batch, one)
    assert (world.error(one), world.run()) == ("Request cancelled", None)


def test_turns_go_on_once_the_scheduler_stopped():
    world = World(text_of(more=ITERATIVE))
    one = world.send(0)
    batch = world.take()
    world.scheduler.stop()
    hand_back(world, batch, one)
    world.run()
    assert world.error(one) == ""
    with pytest.raises(Unavailable):
        world.send(0)


def test_a_turn_of_any_length_is_not_idle():
    world = World(text_of(more=ITERATIVE))
    one = world.send(0)
    batch = world.take()
    world.pass_time(3 * IDLE_NS)
    hand_back(world, batch, one)
    world.run()
    assert world.error(one) == ""


def test_a_clients_second_request_with_its_own_id_runs_after_the_first():
    world = World(text_of(more=ITERATIVE))
    first, second = world.send(5, start=True), world.send(5, start=True)
    batch = world.take()
    assert batch.requests == [first]
    hand_back(world, batch, first)
    assert world.take().requests == [first]
    world.complete()
    assert world.run() == ["5.2"]
    assert (world.error(first), world.error(second)) == ("", "")
    with pytest.raises(InvalidArgument, match="START flag"):
        world.send(5)


def test_states_go_from_turn_to_turn():
    world = World(text_of(more=ITERATIVE + ' state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 }'))
    one = world.send(0)
    seen = []
    for _ in range(3):
        batch = world.take()
        (state,) = batch.states
        seen.append(state.numpy().item())
        batch.new_states["T"] = Tensor.from_numpy("T", state.numpy() + 1)
        hand_back(world, batch, one)
    assert seen == [0, 1, 2]
