from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, ResourceExhausted
from tritonpy_frontend_grpc.h2.message_frames import (
    MAX_MESSAGE_BYTES,
    MessageFrame,
    MessageReader,
    prefix,
)

messages = st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=30)), max_size=5)


def taken(frames):
    found = []
    while (frame := frames.next()) is not None:
        found.append(frame)
    return found


@given(messages, st.data())
def test_messages_round_trip_for_any_chunks(given_messages, data):
    body = b"".join(
        [prefix(message, compressed) + message for compressed, message in given_messages]
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    frames, found = MessageReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        frames.feed(body[start:end])
        found += taken(frames)
    assert found == [MessageFrame(*one) for one in given_messages]
    assert not frames.partial


@pytest.mark.parametrize("part", [b"\0", b"\0\0\0\0\1", b"\0\0\0\0\2a"])
def test_a_partial_frame_is_detected(part):
    frames = MessageReader()
    frames.feed(part)
    assert frames.next() is None
    assert frames.partial


def test_a_frame_without_a_message_is_a_message():
    frames = MessageReader()
    frames.feed(bytes(5))
    assert frames.next() == MessageFrame(0, b"")
    assert not frames.partial


def test_the_chunks_of_a_message_are_joined_once():
    frames, chunks = MessageReader(), [bytes([number]) * 10 for number in range(4)]
    frames.feed(prefix(b"".join(chunks)))
    assert frames.next() is None
    for chunk in chunks:
        frames.feed(chunk)
    message = frames.next().message
    assert message == b"".join(chunks)
    assert frames._data == b""


def test_a_message_above_the_protobuf_limit_is_refused_by_its_length():
    frames = MessageReader()
    frames.feed(b"\0" + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(
        InvalidArgument, match="2147483648 bytes was announced, and the maximum is 2147483647 bytes"
    ):
        frames.next()
    frames = MessageReader()
    frames.feed(b"\0" + MAX_MESSAGE_BYTES.to_bytes(4, "big"))
    assert frames.next() is None


def test_a_message_for_which_there_is_no_memory_is_refused():
    part = bytes(1 << 24)
    frames = MessageReader()
    frames.feed(b"\0" + (64 * len(part)).to_bytes(4, "big"))
    for _ in range(64):
        assert frames.next() is None
        frames.feed(part)
    usual = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + 20 * len(part), usual[1])
    )
    try:
        with pytest.raises(ResourceExhausted, match="no memory for a message of 1073741824 bytes"):
            frames.next()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)
