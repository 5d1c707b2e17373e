from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse, InvalidArgument, SequenceInfo, Tensor, Unavailable
from tritonpy_batching_sequence.iterative import Iterations
from tritonpy_testing import RecordingSink

from .simulated_runner import IDLE_NS, SimulatedRunner, config_text

ITERATIVE = "iterative_sequence: true"
STRATEGIES = ["direct {}", "oldest { max_candidate_sequences: 3 }"]
START_AND_END = """
control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
"""


def request(sequence: SequenceInfo | None = None) -> InferRequest:
    return InferRequest("m", {}, RecordingSink().sink, sequence=sequence)


def test_each_request_starts_a_separate_sequence() -> None:
    iterations, requests = Iterations(), [request() for _ in range(3)]
    for each in requests:
        iterations.begin(each, {})
    assert [each.sequence for each in requests] == [
        SequenceInfo(number, start=True) for number in (1, 2, 3)
    ]


def test_ids_of_live_sequences_are_left_out() -> None:
    iterations, one = Iterations(), request()
    iterations.begin(one, {1: "", 2: "", "3": ""})
    assert one.sequence == SequenceInfo(3, start=True)


def test_an_id_from_the_client_is_kept_with_its_start_flag() -> None:
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
    Iterations.next_iteration(one)
    assert one.sequence == SequenceInfo(1)


def reschedule(runner, batch, *requests):
    """Complete a batch whose `requests` are to run again."""
    runner.in_flight = [
        (instance, each) for instance, each in runner.in_flight if each is not batch
    ]
    for one in batch.requests:
        if one in requests:
            one.batch = None
            runner.scheduler.released(one, reschedule=True)
        else:
            one.respond(InferResponse((), "m", 1, one.id))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_request_runs_until_its_final_response(strategy):
    runner = SimulatedRunner(config_text(strategy, more=ITERATIVE + START_AND_END))
    one = runner.send(0)
    flags = []
    for _ in range(3):
        batch = runner.take()
        flags.append([tensor.numpy().tolist() for tensor in batch.controls])
        reschedule(runner, batch, one)
    runner.run()
    assert flags == [[[[1]], [[0]]], [[[0]], [[0]]], [[[0]], [[0]]]]
    assert runner.error(one) == ""
    assert runner.run() is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_join_between_iterations_of_others(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=3, more=ITERATIVE))
    long = runner.send("")
    batch = runner.take()
    short = runner.send("")
    reschedule(runner, batch, long)
    batch = runner.take()
    assert set(batch.requests) == {long, short}
    reschedule(runner, batch, long)
    assert runner.error(short) == ""
    assert runner.take().requests == [long]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_slot_of_a_finished_request_is_free(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=3, more=ITERATIVE))
    requests = [runner.send(0) for _ in range(7)]
    while runner.run():
        pass
    assert [runner.error(each) for each in requests] == [""] * 7
    assert len({each.sequence.id for each in requests}) == 7


def test_an_iteration_that_is_cancelled_while_it_waits_is_dropped():
    runner = SimulatedRunner(config_text(more=ITERATIVE))
    one = runner.send(0)
    reschedule(runner, runner.take(), one)
    one.cancelled = True
    runner.scheduler.cancel(one)
    assert (runner.error(one), runner.run()) == ("Request cancelled", None)


def test_an_iteration_cancelled_while_running_does_not_run_again():
    runner = SimulatedRunner(config_text(more=ITERATIVE))
    one = runner.send(0)
    batch = runner.take()
    one.cancelled = True
    reschedule(runner, batch, one)
    assert (runner.error(one), runner.run()) == ("Request cancelled", None)


def test_iterations_continue_after_the_scheduler_stopped():
    runner = SimulatedRunner(config_text(more=ITERATIVE))
    one = runner.send(0)
    batch = runner.take()
    runner.scheduler.stop()
    reschedule(runner, batch, one)
    runner.run()
    assert runner.error(one) == ""
    with pytest.raises(Unavailable):
        runner.send(0)


def test_a_long_iteration_is_not_idle():
    runner = SimulatedRunner(config_text(more=ITERATIVE))
    one = runner.send(0)
    batch = runner.take()
    runner.advance(3 * IDLE_NS)
    reschedule(runner, batch, one)
    runner.run()
    assert runner.error(one) == ""


def test_a_second_request_with_the_same_client_id_runs_after_the_first():
    runner = SimulatedRunner(config_text(more=ITERATIVE))
    first, second = runner.send(5, start=True), runner.send(5, start=True)
    batch = runner.take()
    assert batch.requests == [first]
    reschedule(runner, batch, first)
    assert runner.take().requests == [first]
    runner.complete()
    assert runner.run() == ["5.2"]
    assert (runner.error(first), runner.error(second)) == ("", "")
    with pytest.raises(InvalidArgument, match="START flag"):
        runner.send(5)


def test_states_are_passed_to_the_next_iteration():
    runner = SimulatedRunner(
        config_text(
            more=ITERATIVE
            + ' state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 }'
        )
    )
    one = runner.send(0)
    seen = []
    for _ in range(3):
        batch = runner.take()
        (state,) = batch.states
        seen.append(state.numpy().item())
        batch.new_states["T"] = Tensor.from_numpy("T", state.numpy() + 1)
        reschedule(runner, batch, one)
    assert seen == [0, 1, 2]
