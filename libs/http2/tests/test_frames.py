"""Tests of the encoded frames with the library hyperframe."""

from __future__ import annotations

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    SettingsFrame,
)

from tritonpy_http2 import frames


def parsed(data):
    found = []
    while data:
        frame, length = Frame.parse_frame_header(memoryview(data[:9]))
        frame.parse_body(memoryview(data[9 : 9 + length]))
        found.append(frame)
        data = data[9 + length :]
    return found


@pytest.mark.parametrize("length", [0, 10, 16_384, 16_385, 100_000])
@pytest.mark.parametrize("last", [False, True])
def test_a_long_block_is_split_into_continuations(length, last):
    block = bytes(range(256)) * (length // 256 + 1)
    first, *others = parsed(frames.header_block(3, block[:length], last=last))
    assert isinstance(first, HeadersFrame)
    assert all(isinstance(each, ContinuationFrame) for each in others)
    assert b"".join(each.data for each in (first, *others)) == block[:length]
    assert ("END_STREAM" in first.flags) == last
    assert ["END_HEADERS" in each.flags for each in (first, *others)] == [False] * len(others) + [
        True
    ]
    assert {each.stream_id for each in (first, *others)} == {3}


def test_control_frames_are_encoded():
    data = (
        frames.settings({3: 100, 4: 2**31 - 1})
        + frames.SETTINGS_ACK
        + frames.ping(b"12345678", ack=True)
        + frames.goaway(7, 11, b"why")
        + frames.rst_stream(5, 8)
        + frames.window_update(0, 2**31 - 1)
    )
    settings, ack, ping, goaway, reset, window = parsed(data)
    assert isinstance(settings, SettingsFrame)
    assert settings.settings == {3: 100, 4: 2**31 - 1}
    assert "ACK" in ack.flags
    assert isinstance(ping, PingFrame)
    assert (ping.opaque_data, "ACK" in ping.flags) == (b"12345678", True)
    assert isinstance(goaway, GoAwayFrame)
    assert (goaway.last_stream_id, goaway.error_code, goaway.additional_data) == (7, 11, b"why")
    assert (reset.stream_id, reset.error_code) == (5, 8)
    assert (window.stream_id, window.window_increment) == (0, 2**31 - 1)
