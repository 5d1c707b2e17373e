from __future__ import annotations

import pytest

from tritonpy import InferResponse, Internal

from .simulated_runner import SimulatedRunner, config_text, ids

STATE = 'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 }'
START_MISSING = "inference request for sequence {} to model 'm' must specify the START flag on the first request of the sequence"


def end_process(runner, instance=0):
    """End the process of an instance, as a runner reports it."""
    runner.scheduler.lost(instance)
    for number, batch in list(runner.in_flight):
        if number == instance:
            runner.in_flight.remove((number, batch))
            for request in batch.requests:
                request.respond(InferResponse.failed(request, Internal("the process ended")))


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_a_sequence_ends_with_the_process_that_held_its_state(strategy):
    runner = SimulatedRunner(config_text(strategy))
    runner.send(1, start=True)
    runner.run()
    running = runner.send(1)
    runner.take()
    waiting = runner.send(1)
    end_process(runner)
    assert runner.error(running) == "the process ended"
    assert runner.error(waiting) == START_MISSING.format(1)
    with pytest.raises(Exception, match="must specify the START flag"):
        runner.send(1)
    again = runner.send(1, start=True)
    runner.run()
    assert runner.error(again) == ""


def test_an_idle_sequence_ends_and_its_slot_is_free():
    runner = SimulatedRunner(config_text(batch=1))
    runner.send(1, start=True)
    runner.run()
    behind = runner.send(2, start=True)
    assert runner.run() is None
    end_process(runner)
    assert runner.run() == ["2.1"]
    assert runner.error(behind) == ""


def test_a_sequence_that_has_not_begun_runs_in_the_next_process():
    runner = SimulatedRunner(config_text())
    request = runner.send(1, start=True)
    end_process(runner)
    assert runner.run() == ["1.1"]
    assert runner.error(request) == ""


def test_a_waiting_start_begins_in_the_next_process():
    runner = SimulatedRunner(config_text())
    runner.send(1, start=True)
    runner.run()
    lost, restarted, end = runner.send(1), runner.send(1, start=True), runner.send(1, end=True)
    end_process(runner)
    assert runner.error(lost) == START_MISSING.format(1)
    assert [runner.run(), runner.run(), runner.run()] == [["1.3"], ["1.4"], None]
    assert (runner.error(restarted), runner.error(end)) == ("", "")
    assert not runner.scheduler.pending()


def test_other_instances_keep_their_sequences():
    runner = SimulatedRunner(config_text(batch=1), instances=2)
    runner.send(1, start=True)
    runner.send(2, start=True)
    runner.run(0)
    runner.run(1)
    end_process(runner, 0)
    kept = runner.send(2)
    runner.run(1)
    assert runner.error(kept) == ""
    with pytest.raises(Exception, match=r"sequence 1 .* must specify the START flag"):
        runner.send(1)


def test_states_that_the_server_keeps_outlive_the_process():
    runner = SimulatedRunner(config_text(more=STATE))
    runner.send(1, start=True)
    runner.run()
    runner.send(1)
    runner.take()
    end_process(runner)
    runner.send(1)
    assert ids(runner.take()) == ["1.3"]


def test_a_waiting_iteration_is_rejected():
    runner = SimulatedRunner(config_text(more="iterative_sequence: true"))
    request = runner.send(0)
    runner.take()
    runner.in_flight.clear()
    request.batch = None
    runner.scheduler.released(request, reschedule=True)
    end_process(runner)
    assert (
        runner.error(request)
        == "The instance that ran the request has ended, and its state of the request is lost"
    )
    assert runner.run() is None


def test_losing_an_unknown_instance_has_no_effect():
    runner = SimulatedRunner(config_text())
    runner.scheduler.lost(7)
    runner.send(1, start=True)
    assert runner.run() == ["1.1"]


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 1 }"])
def test_while_an_instance_is_down_sequences_begin_at_the_others(strategy):
    runner = SimulatedRunner(config_text(strategy, batch=1), instances=2)
    waiting = runner.send(1, start=True)
    end_process(runner, 0)
    assert runner.run(1) == ["1.1"]
    runner.send(1, end=True)
    runner.run(1)
    for number in (2, 3):
        runner.send(number, start=True, end=True)
        assert runner.run(1) == [f"{number}.1"]
    assert runner.error(waiting) == ""
    runner.scheduler.restored(0)
    runner.send(4, start=True)
    assert runner.run(0) == ["4.1"]


def test_a_sequence_at_a_down_instance_moves_to_the_first_free_slot():
    runner = SimulatedRunner(config_text(batch=1), instances=2)
    end_process(runner, 0)
    runner.send(1, start=True)
    first, second = runner.send(2, start=True), runner.send(3, start=True)
    assert runner.run(1) == ["1.1"]
    runner.send(1, end=True)
    assert [runner.run(1), runner.run(1)] == [["1.2"], ["2.1"]]
    runner.scheduler.restored(0)
    assert runner.run(0) == ["3.1"]
    assert (runner.error(first), runner.error(second)) == ("", "")


def test_sequences_keep_a_slot_if_every_instance_is_down():
    runner = SimulatedRunner(config_text(batch=1), instances=2)
    end_process(runner, 0)
    end_process(runner, 1)
    runner.send(1, start=True)
    runner.send(2, start=True)
    assert [runner.ready(0), runner.ready(1)] == [True, True]


def test_a_requeued_first_request_runs_at_another_instance():
    runner = SimulatedRunner(
        config_text("oldest { max_candidate_sequences: 1 }", batch=1), instances=2
    )
    request = runner.send(1, start=True)
    runner.take(0)
    runner.in_flight.clear()
    assert runner.scheduler.requeue([request]) == []
    runner.scheduler.lost(0)
    assert runner.run(1) == ["1.1"]
    assert runner.error(request) == ""


def test_a_requeued_later_request_ends_with_its_sequence():
    runner = SimulatedRunner(config_text())
    runner.send(1, start=True)
    runner.run()
    request = runner.send(1)
    runner.take()
    runner.in_flight.clear()
    assert runner.scheduler.requeue([request]) == []
    runner.scheduler.lost(0)
    assert runner.error(request) == START_MISSING.format(1)


@pytest.mark.parametrize("more", [STATE, "iterative_sequence: true"])
def test_a_request_that_ran_with_implicit_state_is_not_requeued(more):
    runner = SimulatedRunner(config_text(more=more))
    request = runner.send(1, start=True)
    runner.take()
    assert list(runner.scheduler.requeue([request])) == [request]
