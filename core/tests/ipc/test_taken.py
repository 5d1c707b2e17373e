from __future__ import annotations

import pytest

from tritonpy.ipc.taken import Taken
from tritonpy.ipc.windows import MAX_ANSWERS, MAX_BYTES
from tritonpy.types import Room


def test_half_a_window_of_answers_is_one_word():
    taken = Taken()
    assert [taken.add(0) for _ in range(MAX_ANSWERS)] == ([0] * (MAX_ANSWERS // 2 - 1) + [MAX_ANSWERS // 2]) * 2


def test_half_a_window_of_bytes_is_one_word():
    taken = Taken()
    assert [taken.add(MAX_BYTES // 4) for _ in range(4)] == [0, 2, 0, 2]
    assert taken.add(2 * MAX_BYTES) == 1


@pytest.mark.parametrize(
    "size", [0, 1, MAX_BYTES // 3, MAX_BYTES // 2 - 1, MAX_BYTES // 2, MAX_BYTES * 2 // 3, MAX_BYTES, 5 * MAX_BYTES]
)
def test_who_takes_everything_always_makes_room(size):
    room, taken, woken = Room(MAX_ANSWERS, MAX_BYTES), Taken(), []
    while room.ready:
        room.put(size)
    room.when_ready(lambda: woken.append(1))
    for _ in range(room.answers):
        for _ in range(taken.add(size)):
            room.take()
    assert woken == [1]
