from __future__ import annotations

from .simulated_runner import MS, SimulatedRunner, config_text


def test_candidates_run_together_without_holes():
    runner = SimulatedRunner(config_text("oldest {}"))
    for each in (1, 2, 3):
        runner.send(each, start=True)
    assert runner.run() == ["1.1", "2.1", "3.1"]
    runner.send(3)
    runner.send(1)
    assert runner.run() == ["3.2", "1.2"]


def test_the_next_request_waits_for_the_previous_response():
    runner = SimulatedRunner(config_text("oldest {}"))
    runner.send(1, start=True)
    runner.send(1)
    first = runner.take()
    assert runner.take() is None
    runner.complete(first)
    assert runner.run() == ["1.2"]


def test_a_finished_candidate_moves_behind_those_that_wait():
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 3 }", batch=1))
    for each in (1, 2, 3):
        runner.send(each, start=True)
        runner.send(each)
    assert [runner.run() for _ in range(6)] == [
        ["1.1"],
        ["2.1"],
        ["3.1"],
        ["1.2"],
        ["2.2"],
        ["3.2"],
    ]


def test_surplus_sequences_wait_in_order_for_a_candidate_slot():
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 2 }"))
    for each in (1, 2, 3, 4):
        runner.send(each, start=True)
    assert [runner.run(), runner.run()] == [["1.1", "2.1"], None]
    runner.send(2, end=True)
    assert [runner.run(), runner.run()] == [["2.2"], ["3.1"]]
    runner.send(1, end=True)
    assert [runner.run(), runner.run()] == [["1.2"], ["4.1"]]


def test_there_may_be_more_candidates_than_rows():
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 6 }", batch=4))
    for each in range(1, 7):
        runner.send(each, start=True)
    assert [runner.run(), runner.run()] == [["1.1", "2.1", "3.1", "4.1"], ["5.1", "6.1"]]


def test_a_candidate_keeps_its_slot_until_its_last_response():
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 1 }"))
    runner.send(1, start=True, end=True)
    runner.send(2, start=True)
    first = runner.take()
    assert runner.take() is None
    runner.complete(first)
    assert runner.run() == ["2.1"]


def test_it_waits_for_a_preferred_size_until_the_delay_ends():
    runner = SimulatedRunner(
        config_text("oldest { preferred_batch_size: 2 max_queue_delay_microseconds: 5000 }")
    )
    runner.send(1, start=True)
    assert runner.ready() == runner.now + 5 * MS
    runner.now += 2 * MS
    runner.send(2, start=True)
    assert runner.run() == ["1.1", "2.1"]


def test_the_delay_counts_from_when_a_request_could_have_run():
    runner = SimulatedRunner(
        config_text("oldest { preferred_batch_size: 2 max_queue_delay_microseconds: 5000 }")
    )
    runner.send(1, start=True)
    runner.send(1)
    runner.now += 5 * MS
    first = runner.take()
    runner.now += 3 * MS
    runner.complete(first)
    assert runner.ready() == runner.now + 5 * MS


def test_only_requests_compatible_with_the_first_join():
    runner = SimulatedRunner(config_text("oldest {}"))
    for each, width in ((1, 1), (2, 1), (3, 2), (4, 1)):
        runner.send(each, start=True, width=width)
    assert [runner.run(), runner.run(), runner.run()] == [["1.1", "2.1"], ["3.1"], ["4.1"]]
