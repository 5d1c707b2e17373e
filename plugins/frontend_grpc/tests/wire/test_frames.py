from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, ResourceExhausted
from tritonpy_frontend_grpc.wire.frames import LONGEST, Frame, Frames, prefix

messages = st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=30)), max_size=5)


def taken(frames):
    found = []
    while (frame := frames.next()) is not None:
        found.append(frame)
    return found


@given(messages, st.data())
def test_messages_come_out_as_they_went_in_wherever_the_chunks_are_cut(given_messages, data):
    body = b"".join([prefix(message, packed) + message for packed, message in given_messages])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    frames, found = Frames(), []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        frames.feed(body[start:end])
        found += taken(frames)
    assert found == [Frame(*one) for one in given_messages]
    assert not frames.partial


@pytest.mark.parametrize("part", [b"\0", b"\0\0\0\0\1", b"\0\0\0\0\2a"])
def test_a_part_of_a_frame_is_noticed(part):
    frames = Frames()
    frames.feed(part)
    assert frames.next() is None
    assert frames.partial


def test_a_frame_without_a_message_is_a_message():
    frames = Frames()
    frames.feed(bytes(5))
    assert frames.next() == Frame(0, b"")
    assert not frames.partial


def test_the_bytes_of_a_message_that_fills_its_chunks_are_joined_once():
    frames, chunks = Frames(), [bytes([number]) * 10 for number in range(4)]
    frames.feed(prefix(b"".join(chunks)))
    assert frames.next() is None
    for chunk in chunks:
        frames.feed(chunk)
    message = frames.next().message
    assert message == b"".join(chunks)
    assert frames._data == b""


def test_a_message_that_protobuf_cannot_carry_is_refused_as_soon_as_it_is_announced():
    frames = Frames()
    frames.feed(b"\0" + (LONGEST + 1).to_bytes(4, "big"))
    with pytest.raises(InvalidArgument, match="2147483648 bytes is announced, and 2147483647 are the most"):
        frames.next()
    frames = Frames()
    frames.feed(b"\0" + LONGEST.to_bytes(4, "big"))
    assert frames.next() is None


def test_a_message_for_which_there_is_no_memory_is_refused(monkeypatch):
    def no_memory(_frames, _count):
        raise MemoryError

    frames = Frames()
    frames.feed(b"\0\0\0\0\2a")
    assert frames.next() is None
    frames.feed(b"b")
    monkeypatch.setattr(Frames, "_take", no_memory)
    with pytest.raises(ResourceExhausted, match="no memory for a message of 2 bytes"):
        frames.next()
