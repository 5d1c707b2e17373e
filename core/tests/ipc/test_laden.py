from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.laden import Added, Seat, read_laden, write_laden

IDS = st.integers(0, (1 << 64) - 1) | st.text(min_size=1, max_size=5)


@st.composite
def executions(draw):
    slots = draw(st.integers(0, 9))
    taken = (
        draw(st.lists(st.integers(0, slots - 1), unique=True).map(sorted)) if slots else range(draw(st.integers(0, 4)))
    )
    seats = [Seat(draw(IDS), draw(st.booleans()), draw(st.booleans()), slot) for slot in taken]
    return Added(slots, draw(st.integers(0, 4)), draw(st.integers(0, 4))), seats


@given(st.lists(executions(), max_size=4), st.lists(st.integers(0, 5), max_size=3))
def test_what_is_written_is_read(written, before):
    words, texts = write_laden(written)
    sizes = [len(seats) for _, seats in written]
    assert read_laden([*before, *words, 99], len(before), sizes, texts) == (written, len(before) + len(words))
    assert all(0 <= word < 1 << 64 for word in words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [0, 0],
        [0, 0, 0],
        [0, 0, 0, 5],
        [0, 0, 0, 0, 4],  # a text that did not come
        [2, 0, 0, 5, 2 << 3],  # a slot that is not there
        [1 << 40, 0, 0, 5, 0],
    ],
)
def test_garbage_is_refused(words):
    with pytest.raises(ProtocolError):
        read_laden(words, 0, [1], {})


@pytest.mark.parametrize("slots", [(1, 1), (2, 1)])
def test_slots_are_taken_in_order_and_once(slots):
    words, _ = write_laden([(Added(3, 0, 0), [Seat(1, False, False, slot) for slot in slots])])
    with pytest.raises(ProtocolError, match="sit in"):
        read_laden(words, 0, [2], {})
