from __future__ import annotations

import threading

import pytest

from tritonpy.types import Room


def full_room(max_answers: int = 4, nbytes: int = 10) -> Room:
    room = Room(max_answers, 1000)
    for _ in range(max_answers):
        room.put(nbytes)
    return room


def test_it_is_used_up_by_answers() -> None:
    room = Room(2, 1000)
    assert room.ready
    room.put(0)
    assert room.ready
    room.put(0)
    assert not room.ready
    room.take()
    assert room.ready


def test_it_is_used_up_by_bytes_and_a_large_answer_still_goes_in() -> None:
    room = Room(100, 10)
    room.put(9)
    assert room.ready
    room.put(10**6)
    assert not room.ready
    assert (room.answers, room.nbytes) == (2, 10**6 + 9)
    room.take()
    assert not room.ready
    room.take()
    assert room.ready
    assert (room.answers, room.nbytes) == (0, 0)


def test_nothing_can_be_taken_out_of_an_empty_one() -> None:
    with pytest.raises(IndexError):
        Room(1, 1).take()


def test_who_asks_while_there_is_room_is_called_at_once() -> None:
    called: list[int] = []
    Room(1, 1).when_ready(lambda: called.append(1))
    assert called == [1]


def test_who_waits_is_called_once_when_half_of_it_is_free() -> None:
    room, called = full_room(4), []
    room.when_ready(lambda: called.append("a"))
    room.when_ready(lambda: called.append("b"))
    room.take()
    assert (called, room.ready, room.holds_back) == ([], True, True)
    room.take()
    assert (called, room.holds_back) == (["a", "b"], False)
    room.take()
    assert called == ["a", "b"]


def test_who_waits_for_bytes_is_called_when_half_of_them_are_gone() -> None:
    room, called = Room(100, 10), []
    for size in (4, 4, 4):
        room.put(size)
    room.when_ready(lambda: called.append(1))
    room.take()
    assert called == []
    room.take()
    assert called == [1]


def test_a_room_for_one_answer_calls_when_it_is_empty() -> None:
    room, called = full_room(1), []
    room.when_ready(lambda: called.append(1))
    room.take()
    assert called == [1]


def test_a_released_waiter_is_called_and_the_room_stays_full() -> None:
    room, called = full_room(), []
    room.when_ready(lambda: called.append(1))
    room.release()
    assert called == [1]
    assert not room.ready


def test_nobody_waits_for_an_abandoned_one() -> None:
    room, called = full_room(), []
    room.when_ready(lambda: called.append("waited"))
    room.abandon()
    room.put(1)
    room.when_ready(lambda: called.append("came later"))
    assert called == ["waited", "came later"]
    assert room.ready


def test_a_callback_may_use_the_room() -> None:
    room, called = full_room(2), []

    def again() -> None:
        room.put(1)
        room.put(1)
        room.when_ready(lambda: called.append(1))

    room.when_ready(again)
    room.take()
    assert called == []
    room.take()
    room.take()
    assert called == [1]


def test_threads_that_wait_for_it_never_miss_their_call() -> None:
    """Four producers, one consumer: more than once the limit is never in it, and every answer comes through."""
    room, made, lock = Room(3, 10**9), [0], threading.Lock()

    def produce() -> None:
        for _ in range(500):
            free = threading.Event()
            room.when_ready(free.set)
            free.wait()
            room.put(1)
            with lock:
                made[0] += 1

    producers = [threading.Thread(target=produce) for _ in range(4)]
    for producer in producers:
        producer.start()
    taken = 0
    while taken < 2000:
        answers = room.answers
        assert answers <= 3 + 4
        if answers:
            room.take()
            taken += 1
    for producer in producers:
        producer.join()
    assert (made[0], room.answers, room.nbytes) == (2000, 0, 0)
