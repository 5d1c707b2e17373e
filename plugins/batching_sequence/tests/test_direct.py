from __future__ import annotations

import numpy as np
import pytest

from .simulated_runner import MS, SimulatedRunner, config_text

READY = 'control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }'


def test_a_sequence_keeps_its_row():
    runner = SimulatedRunner(config_text())
    for each in (1, 2, 3):
        runner.send(each, start=True)
    assert runner.run() == ["1.1", "2.1", "3.1"]
    runner.send(3)
    runner.send(1)
    assert runner.run() == ["1.2", None, "3.2"]
    runner.send(2)
    assert runner.run() == [None, "2.2"]


def test_a_model_that_does_not_batch_has_one_slot():
    runner = SimulatedRunner(config_text(batch=0))
    runner.send(1, start=True)
    runner.send(2, start=True, end=True)
    assert runner.run() == ["1.1"]
    assert runner.run() is None
    runner.send(1, end=True)
    assert [runner.run(), runner.run()] == [["1.2"], ["2.1"]]


def test_the_requests_of_one_sequence_run_in_a_batch_each():
    runner = SimulatedRunner(config_text())
    runner.send(1, start=True)
    runner.send(1)
    runner.send(1, end=True)
    assert [runner.run(), runner.run(), runner.run(), runner.run()] == [
        ["1.1"],
        ["1.2"],
        ["1.3"],
        None,
    ]


def test_the_next_request_does_not_wait_for_the_previous_response():
    runner = SimulatedRunner(config_text())
    runner.send(1, start=True)
    runner.send(1)
    assert [runner.take().requests[0].id, runner.take().requests[0].id] == ["1.1", "1.2"]


def test_the_slot_of_an_ended_sequence_goes_to_the_backlog():
    runner = SimulatedRunner(config_text(batch=2))
    runner.send(1, start=True, end=True)
    runner.send(2, start=True)
    runner.send(3, start=True)
    runner.send(4, start=True)
    assert [runner.run(), runner.run(), runner.run()] == [["1.1", "2.1"], ["3.1"], None]
    runner.send(2, end=True)
    assert runner.run() == [None, "2.2"]
    assert runner.run() == [None, "4.1"]


@pytest.mark.parametrize(("share", "enough"), [(1.0, 4), (0.75, 3), (0.6, 3), (0.1, 1)])
def test_it_waits_until_enough_slots_are_ready(share, enough):
    runner = SimulatedRunner(
        config_text(
            f"direct {{ minimum_slot_utilization: {share} max_queue_delay_microseconds: 5000 }}"
        )
    )
    for each in range(1, enough + 1):
        assert runner.ready() in (False, runner.now + 5 * MS)
        runner.send(each, start=True)
    assert runner.ready() is True


def test_slot_utilization_is_compared_as_float32():
    runner = SimulatedRunner(
        config_text(
            "direct { minimum_slot_utilization: 0.6 max_queue_delay_microseconds: 5000 }", batch=5
        )
    )
    for each in (1, 2, 3):
        runner.send(each, start=True)
    assert runner.ready() is True


def test_it_waits_no_longer_than_the_delay_of_the_oldest_request():
    runner = SimulatedRunner(
        config_text("direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 5000 }")
    )
    runner.send(1, start=True)
    first = runner.now
    runner.now += 2 * MS
    runner.send(2, start=True)
    assert runner.ready() == first + 5 * MS
    runner.now = first + 5 * MS
    assert runner.run() == ["1.1", "2.1"]


@pytest.mark.parametrize(
    "setting", ["minimum_slot_utilization: 1", "max_queue_delay_microseconds: 5000"]
)
def test_utilization_and_delay_only_work_together(setting):
    runner = SimulatedRunner(config_text(f"direct {{ {setting} }}"))
    runner.send(1, start=True)
    assert runner.ready() is True


def test_a_request_of_another_shape_waits_and_its_slot_is_empty():
    runner = SimulatedRunner(config_text())
    runner.send(1, start=True)
    runner.send(2, start=True, width=2)
    runner.send(3, start=True)
    assert runner.run() == ["1.1", None, "3.1"]
    assert runner.run() == [None, "2.1"]


def test_a_limit_leaves_out_the_highest_slots():
    runner = SimulatedRunner(config_text(more=READY))
    for each in (1, 2, 3):
        runner.send(each, start=True)
    batch = runner.take(limit=2)
    assert [request.id for request in batch.requests] == ["1.1", "2.1"]
    assert batch.controls[0].numpy()[:2].tolist() == [[1], [1]]
    assert runner.run() == [None, None, "3.1"]


def test_empty_slots_are_not_ready():
    runner = SimulatedRunner(config_text(more=READY))
    for each in (1, 2, 3):
        runner.send(each, start=True)
    runner.run()
    runner.send(3)
    (ready,) = runner.take().controls
    assert np.array_equal(ready.numpy(), [[0], [0], [1]])
