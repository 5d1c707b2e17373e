from __future__ import annotations

from .world import MS, World, text_of


def test_candidates_run_together_without_holes():
    world = World(text_of("oldest {}"))
    for each in (1, 2, 3):
        world.send(each, start=True)
    assert world.run() == ["1.1", "2.1", "3.1"]
    world.send(3)
    world.send(1)
    assert world.run() == ["3.2", "1.2"]


def test_the_next_request_waits_for_the_answer_of_the_one_before():
    world = World(text_of("oldest {}"))
    world.send(1, start=True)
    world.send(1)
    first = world.take()
    assert world.take() is None
    world.complete(first)
    assert world.run() == ["1.2"]


def test_who_was_answered_stands_behind_who_still_waits():
    world = World(text_of("oldest { max_candidate_sequences: 3 }", batch=1))
    for each in (1, 2, 3):
        world.send(each, start=True)
        world.send(each)
    assert [world.run() for _ in range(6)] == [["1.1"], ["2.1"], ["3.1"], ["1.2"], ["2.2"], ["3.2"]]


def test_there_are_so_many_candidates_and_the_others_follow_in_order():
    world = World(text_of("oldest { max_candidate_sequences: 2 }"))
    for each in (1, 2, 3, 4):
        world.send(each, start=True)
    assert [world.run(), world.run()] == [["1.1", "2.1"], None]
    world.send(2, end=True)
    assert [world.run(), world.run()] == [["2.2"], ["3.1"]]
    world.send(1, end=True)
    assert [world.run(), world.run()] == [["1.2"], ["4.1"]]


def test_there_may_be_more_candidates_than_rows():
    world = World(text_of("oldest { max_candidate_sequences: 6 }", batch=4))
    for each in range(1, 7):
        world.send(each, start=True)
    assert [world.run(), world.run()] == [["1.1", "2.1", "3.1", "4.1"], ["5.1", "6.1"]]


def test_a_candidate_has_its_place_until_its_last_answer():
    world = World(text_of("oldest { max_candidate_sequences: 1 }"))
    world.send(1, start=True, end=True)
    world.send(2, start=True)
    first = world.take()
    assert world.take() is None
    world.complete(first)
    assert world.run() == ["2.1"]


def test_it_waits_for_a_preferred_size_but_not_for_ever():
    world = World(text_of("oldest { preferred_batch_size: 2 max_queue_delay_microseconds: 5000 }"))
    world.send(1, start=True)
    assert world.ready() == world.now + 5 * MS
    world.now += 2 * MS
    world.send(2, start=True)
    assert world.run() == ["1.1", "2.1"]


def test_the_delay_counts_from_when_a_request_could_have_run():
    world = World(text_of("oldest { preferred_batch_size: 2 max_queue_delay_microseconds: 5000 }"))
    world.send(1, start=True)
    world.send(1)
    world.now += 5 * MS
    first = world.take()
    world.now += 3 * MS
    world.complete(first)
    assert world.ready() == world.now + 5 * MS


def test_only_who_is_like_the_first_of_the_line_joins():
    world = World(text_of("oldest {}"))
    for each, width in ((1, 1), (2, 1), (3, 2), (4, 1)):
        world.send(each, start=True, width=width)
    assert [world.run(), world.run(), world.run()] == [["1.1", "2.1"], ["3.1"], ["4.1"]]
