from __future__ import annotations

import numpy as np
import pytest

from .world import MS, World, text_of

READY = 'control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }'


def test_a_sequence_keeps_its_row():
    world = World(text_of())
    for each in (1, 2, 3):
        world.send(each, start=True)
    assert world.run() == ["1.1", "2.1", "3.1"]
    world.send(3)
    world.send(1)
    assert world.run() == ["1.2", None, "3.2"]
    world.send(2)
    assert world.run() == [None, "2.2"]


def test_a_model_that_does_not_batch_has_one_slot():
    world = World(text_of(batch=0))
    world.send(1, start=True)
    world.send(2, start=True, end=True)
    assert world.run() == ["1.1"]
    assert world.run() is None
    world.send(1, end=True)
    assert [world.run(), world.run()] == [["1.2"], ["2.1"]]


def test_the_requests_of_one_sequence_run_in_a_batch_each():
    world = World(text_of())
    world.send(1, start=True)
    world.send(1)
    world.send(1, end=True)
    assert [world.run(), world.run(), world.run(), world.run()] == [["1.1"], ["1.2"], ["1.3"], None]


def test_the_next_request_need_not_wait_for_the_answer_of_the_one_before():
    world = World(text_of())
    world.send(1, start=True)
    world.send(1)
    assert [world.take().requests[0].id, world.take().requests[0].id] == ["1.1", "1.2"]


def test_a_sequence_that_ends_gives_its_slot_to_the_backlog():
    world = World(text_of(batch=2))
    world.send(1, start=True, end=True)
    world.send(2, start=True)
    world.send(3, start=True)
    world.send(4, start=True)
    assert [world.run(), world.run(), world.run()] == [["1.1", "2.1"], ["3.1"], None]
    world.send(2, end=True)
    assert world.run() == [None, "2.2"]
    assert world.run() == [None, "4.1"]


@pytest.mark.parametrize(("share", "enough"), [(1.0, 4), (0.75, 3), (0.6, 3), (0.1, 1)])
def test_it_waits_until_enough_slots_are_ready(share, enough):
    world = World(text_of(f"direct {{ minimum_slot_utilization: {share} max_queue_delay_microseconds: 5000 }}"))
    for each in range(1, enough + 1):
        assert world.ready() in (False, world.now + 5 * MS)
        world.send(each, start=True)
    assert world.ready() is True


def test_a_share_of_32_bits_is_compared_as_such():
    world = World(text_of("direct { minimum_slot_utilization: 0.6 max_queue_delay_microseconds: 5000 }", batch=5))
    for each in (1, 2, 3):
        world.send(each, start=True)
    assert world.ready() is True


def test_it_waits_no_longer_than_the_delay_of_the_oldest_request():
    world = World(text_of("direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 5000 }"))
    world.send(1, start=True)
    first = world.now
    world.now += 2 * MS
    world.send(2, start=True)
    assert world.ready() == first + 5 * MS
    world.now = first + 5 * MS
    assert world.run() == ["1.1", "2.1"]


@pytest.mark.parametrize("setting", ["minimum_slot_utilization: 1", "max_queue_delay_microseconds: 5000"])
def test_a_share_without_a_delay_and_a_delay_without_a_share_mean_nothing(setting):
    world = World(text_of(f"direct {{ {setting} }}"))
    world.send(1, start=True)
    assert world.ready() is True


def test_another_shape_waits_and_leaves_its_slot_empty():
    world = World(text_of())
    world.send(1, start=True)
    world.send(2, start=True, width=2)
    world.send(3, start=True)
    assert world.run() == ["1.1", None, "3.1"]
    assert world.run() == [None, "2.1"]


def test_a_limit_leaves_out_the_highest_slots():
    world = World(text_of(more=READY))
    for each in (1, 2, 3):
        world.send(each, start=True)
    batch = world.take(limit=2)
    assert [request.id for request in batch.requests] == ["1.1", "2.1"]
    assert batch.controls[0].numpy()[:2].tolist() == [[1], [1]]
    assert world.run() == [None, None, "3.1"]


def test_empty_slots_are_not_ready():
    world = World(text_of(more=READY))
    for each in (1, 2, 3):
        world.send(each, start=True)
    world.run()
    world.send(3)
    (ready,) = world.take().controls
    assert np.array_equal(ready.numpy(), [[0], [0], [1]])
