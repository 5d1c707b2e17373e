from __future__ import annotations

import pytest

from tritonpy_frontend_h2.http2.codes import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    PADDED,
    WITH_PRIORITY,
)
from tritonpy_frontend_h2.http2.faults import ConnectionFault
from tritonpy_frontend_h2.http2.header_frames import HeaderFrames

from .talk import BLOCK, REQUEST, Server, frame


@pytest.mark.parametrize(
    ("flags", "payload"),
    [
        (0, b"block"),
        (PADDED, b"\3blockpad"),
        (PADDED, b"\0block"),
        (WITH_PRIORITY, b"12345block"),
        (PADDED | WITH_PRIORITY, b"\1" + b"12345block" + b"\0"),
    ],
)
@pytest.mark.parametrize("ended", [False, True])
def test_what_is_around_a_block_is_taken_off(flags, payload, ended):
    found = HeaderFrames(100)
    assert found.begin(flags | END_HEADERS | (END_STREAM if ended else 0), payload) == b"block"
    assert found.ended is ended


def test_a_block_may_be_spread_over_several_frames():
    found = HeaderFrames(100)
    assert found.begin(END_STREAM | PADDED, b"\1one x") is None
    assert found.go_on(0, b"two ") is None
    assert found.go_on(END_HEADERS, b"three") == b"one two three"
    assert found.ended
    assert found.begin(END_HEADERS, b"next") == b"next"


def test_a_block_has_an_end():
    found = HeaderFrames(10)
    assert found.begin(0, b"12345") is None
    assert found.go_on(0, b"12345") is None
    with pytest.raises(ConnectionFault) as fault:
        found.go_on(END_HEADERS, b"1")
    assert fault.value.code == ENHANCE_YOUR_CALM


def test_such_a_call_is_begun_like_any_other():
    server = Server().hello()
    first, rest = BLOCK[:5], BLOCK[5:]
    around = b"\2" + bytes(5) + first + bytes(2)
    server.say(
        frame(HEADERS, END_STREAM | PADDED | WITH_PRIORITY, 1, around) + frame(CONTINUATION, END_HEADERS, 1, rest)
    )
    assert server.calls.begun[0].headers == REQUEST
    assert server.calls.begun[0].ended
