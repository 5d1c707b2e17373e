from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ipc import ProtocolError
from tritonpy_ipc.sequence_frame import (
    SequenceHeader,
    SequenceSlot,
    read_sequence_frame,
    write_sequence_frame,
)

IDS = st.integers(0, (1 << 64) - 1) | st.text(min_size=1, max_size=5)


@st.composite
def executions(draw):
    slots = draw(st.integers(0, 9))
    taken = (
        draw(st.lists(st.integers(0, slots - 1), unique=True).map(sorted))
        if slots
        else range(draw(st.integers(0, 4)))
    )
    sequence_slots = [
        SequenceSlot(draw(IDS), draw(st.booleans()), draw(st.booleans()), slot) for slot in taken
    ]
    return SequenceHeader(slots, draw(st.integers(0, 4)), draw(st.integers(0, 4))), sequence_slots


@given(st.lists(executions(), max_size=4), st.lists(st.integers(0, 5), max_size=3))
def test_sequence_words_are_decoded_as_encoded(written, before):
    words, texts = write_sequence_frame(written)
    sizes = [len(sequence_slots) for _, sequence_slots in written]
    assert read_sequence_frame([*before, *words, 99], len(before), sizes, texts) == (
        written,
        len(before) + len(words),
    )
    assert all(0 <= word < 1 << 64 for word in words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [0, 0],
        [0, 0, 0],
        [0, 0, 0, 5],
        [0, 0, 0, 0, 4],  # a string id that is missing
        [2, 0, 0, 5, 2 << 3],  # a slot that does not exist
        [1 << 40, 0, 0, 5, 0],
    ],
)
def test_garbage_is_refused(words):
    with pytest.raises(ProtocolError):
        read_sequence_frame(words, 0, [1], {})


@pytest.mark.parametrize("slots", [(1, 1), (2, 1)])
def test_slots_are_taken_in_order_and_once(slots):
    words, _ = write_sequence_frame(
        [(SequenceHeader(3, 0, 0), [SequenceSlot(1, False, False, slot) for slot in slots])]
    )
    with pytest.raises(ProtocolError, match="have the slots"):
        read_sequence_frame(words, 0, [2], {})
