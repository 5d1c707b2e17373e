"""Encoding of HTTP/2 frames."""

from __future__ import annotations

from struct import Struct

from tritonpy_http2.codes import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    SMALLEST_FRAME_LIMIT,
    WINDOW_UPDATE,
)

# Length and type in the first four bytes, then flags and stream.
START = Struct(">IBI")
_START_AND_NUMBER = Struct(">IBII")
_GOAWAY = Struct(">IBIII")
_SETTING = Struct(">HI")

SETTINGS_ACK = START.pack(SETTINGS, ACK, 0)


def start(kind: int, flags: int, stream: int, length: int) -> bytes:
    """Return the nine-byte frame header."""
    return START.pack(length << 8 | kind, flags, stream)


def settings(values: dict[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return start(SETTINGS, 0, 0, 6 * len(values)) + b"".join(
        [_SETTING.pack(*item) for item in values.items()]
    )


def ping(payload: bytes, *, ack: bool) -> bytes:
    """Return a PING frame; `payload` has 8 bytes."""
    return start(PING, ACK if ack else 0, 0, 8) + payload


def goaway(last_stream: int, code: int, text: bytes = b"") -> bytes:
    """Return a GOAWAY frame: streams after `last_stream` are not served."""
    return _GOAWAY.pack((8 + len(text)) << 8 | GOAWAY, 0, 0, last_stream, code) + text


def rst_stream(stream: int, code: int) -> bytes:
    """Return a RST_STREAM frame."""
    return _START_AND_NUMBER.pack(4 << 8 | RST_STREAM, 0, stream, code)


def window_update(stream: int, count: int) -> bytes:
    """Return a WINDOW_UPDATE frame; `stream` is 0 for the connection."""
    return _START_AND_NUMBER.pack(4 << 8 | WINDOW_UPDATE, 0, stream, count)


def header_block(stream: int, block: bytes, *, last: bool) -> bytes:
    """Return a header block in HEADERS and CONTINUATION frames of the minimum size limit."""
    end = END_STREAM if last else 0
    if len(block) <= SMALLEST_FRAME_LIMIT:
        return START.pack(len(block) << 8 | HEADERS, end | END_HEADERS, stream) + block
    first, rest = block[:SMALLEST_FRAME_LIMIT], block[SMALLEST_FRAME_LIMIT:]
    frames = [start(HEADERS, end, stream, len(first)), first]
    while rest:
        part, rest = rest[:SMALLEST_FRAME_LIMIT], rest[SMALLEST_FRAME_LIMIT:]
        frames += [start(CONTINUATION, 0 if rest else END_HEADERS, stream, len(part)), part]
    return b"".join(frames)


def data_start(stream: int, length: int, *, last: bool = False) -> bytes:
    """Return the header of a DATA frame; `last` ends the stream."""
    return START.pack(length << 8 | DATA, END_STREAM if last else 0, stream)
