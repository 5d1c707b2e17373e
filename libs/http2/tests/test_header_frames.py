from __future__ import annotations

import pytest

from tritonpy_http2.codes import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    PADDED,
    WITH_PRIORITY,
)
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.header_frames import HeaderBlockAssembler

from .raw_client import BLOCK, REQUEST, Server, frame


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
def test_padding_and_priority_are_removed(flags, payload, ended):
    found = HeaderBlockAssembler(100)
    assert found.begin(flags | END_HEADERS | (END_STREAM if ended else 0), payload) == b"block"
    assert found.ended is ended


def test_a_block_may_be_spread_over_several_frames():
    found = HeaderBlockAssembler(100)
    assert found.begin(END_STREAM | PADDED, b"\1one x") is None
    assert found.continue_block(0, b"two ") is None
    assert found.continue_block(END_HEADERS, b"three") == b"one two three"
    assert found.ended
    assert found.begin(END_HEADERS, b"next") == b"next"


def test_a_block_above_the_limit_is_refused():
    found = HeaderBlockAssembler(10)
    assert found.begin(0, b"12345") is None
    assert found.continue_block(0, b"12345") is None
    with pytest.raises(Http2ConnectionError) as error:
        found.continue_block(END_HEADERS, b"1")
    assert error.value.code == ENHANCE_YOUR_CALM


def test_a_call_with_a_fragmented_head_is_started():
    server = Server().handshake()
    first, rest = BLOCK[:5], BLOCK[5:]
    around = b"\2" + bytes(5) + first + bytes(2)
    server.deliver(
        frame(HEADERS, END_STREAM | PADDED | WITH_PRIORITY, 1, around)
        + frame(CONTINUATION, END_HEADERS, 1, rest)
    )
    assert server.calls.started[0].headers == REQUEST
    assert server.calls.started[0].ended
