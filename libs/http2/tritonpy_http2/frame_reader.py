"""Splitting of received data into frames.

DATA is passed on in parts, other frames when complete.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from tritonpy_http2.codes import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    HEADERS,
    PADDED,
    PREFACE,
    PROTOCOL_ERROR,
    SETTINGS,
)
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.frames import START

Bytes = bytes | memoryview
_START_SIZE = START.size
_STREAM = 0x7FFFFFFF


@mypyc_attr(allow_interpreted_subclasses=True)
class Http2FrameSink(ABC):
    """Receives frames. Each method raises Http2ConnectionError for an invalid frame."""

    @abstractmethod
    def headers(self, flags: int, stream: int, payload: bytes) -> None:
        """Process a HEADERS frame."""

    @abstractmethod
    def data(self, stream: int, part: Bytes, ended: bool) -> None:
        """Process a part of a body, possibly empty.

        A memoryview is valid until the method returns.
        """

    @abstractmethod
    def padding(self, stream: int, count: int) -> None:
        """Process padding of a DATA frame, which counts for flow control."""

    @abstractmethod
    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Process a frame that is neither DATA nor HEADERS."""

    @abstractmethod
    def body_buffer(self, stream: int) -> memoryview | None:
        """Return a buffer to read the body of a stream into, None to use `data`."""

    @abstractmethod
    def body_buffer_updated(self, stream: int, count: int, ended: bool) -> None:
        """Process `count` bytes in the buffer from `body_buffer`."""


class Http2FrameReader:
    """Reads the frames of one connection, starting with the preface.

    No frame may be longer than `largest`. Frames other than DATA have the additional limit
    `longest_whole`, because they are buffered until they are complete.
    """

    __slots__ = (
        "_always_allowed", "_data_ends", "_data_left", "_data_stream", "_has_preface", "_largest",
        "_longest_whole", "_need", "_padding", "_rest",
        "_sink", "continuing",
    )  # fmt: skip

    def __init__(self, sink: Http2FrameSink, largest: int, longest_whole: int) -> None:
        self._sink = sink
        self._largest = largest
        self._longest_whole = longest_whole
        self._always_allowed = min(largest, longest_whole)  # length that is valid for any frame
        self._has_preface = False
        self._rest = bytearray()
        self._need = len(PREFACE) + _START_SIZE  # bytes needed to continue
        self._data_stream = 0  # stream of the current DATA frame
        self._data_left = 0  # its missing body bytes
        self._data_ends = False
        self._padding = 0  # its missing padding bytes
        self.continuing = 0  # stream whose header block continues in the next frame

    def feed(self, data: Bytes) -> None:
        """Process received data. Raises Http2ConnectionError."""
        if self._need:
            self._rest += data
            if not self._has_preface:
                self._check_preface()
            if len(self._rest) < self._need:
                return
            data = bytes(self._rest)
            self._rest.clear()
            self._need = 0
        self._read(data)

    def body_buffer(self) -> memoryview | None:
        """Return a buffer to read the next bytes into, None to use `feed`."""
        if not self._data_left:
            return None
        body_buffer = self._sink.body_buffer(self._data_stream)
        return body_buffer[: self._data_left] if body_buffer else None

    def body_buffer_updated(self, count: int) -> None:
        """Process `count` bytes in the buffer from `body_buffer`. Raises Http2ConnectionError."""
        self._data_left -= count
        self._sink.body_buffer_updated(
            self._data_stream, count, self._data_ends and not self._data_left
        )

    def _check_preface(self) -> None:
        """Check the preface and that SETTINGS follow."""
        rest = self._rest
        if not PREFACE.startswith(rest[: len(PREFACE)]):
            raise Http2ConnectionError(PROTOCOL_ERROR, "no HTTP/2 preface")
        if len(rest) >= self._need:
            if rest[len(PREFACE) + 3] != SETTINGS or rest[len(PREFACE) + 4] & ACK:
                raise Http2ConnectionError(PROTOCOL_ERROR, "no SETTINGS after the preface")
            del rest[: len(PREFACE)]
            self._need = _START_SIZE
            self._has_preface = True

    def _read(self, data: Bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            if self._data_left or self._padding:
                at = self._continue_data(data, at, end)
                continue
            body = at + _START_SIZE
            if body > end:
                self._keep(data[at:], _START_SIZE)
                return
            head, flags, stream = START.unpack_from(data, at)
            stream &= _STREAM
            kind, length = head & 0xFF, head >> 8
            after = body + length
            if length > self._always_allowed or self.continuing:
                self._check(kind, length, stream)
            if kind == DATA:
                if not flags & PADDED and after <= end:
                    self._sink.data(stream, data[body:after], flags & END_STREAM != 0)
                    at = after
                    continue
                if flags & PADDED and not length:
                    raise Http2ConnectionError(FRAME_SIZE_ERROR, "a padded frame without padding")
                if flags & PADDED and body == end:
                    self._keep(data[at:], _START_SIZE + 1)
                    return
                at = self._begin_data(data, body, flags, stream, length)
            elif after > end:
                self._keep(data[at:], after - at)
                return
            else:
                if kind == HEADERS:
                    self._sink.headers(flags, stream, bytes(data[body:after]))
                else:
                    self._sink.frame(kind, flags, stream, bytes(data[body:after]))
                at = after

    def _check(self, kind: int, length: int, stream: int) -> None:
        if length > self._largest:
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "a frame above the maximum frame size")
        if length > self._longest_whole and kind != DATA:
            raise Http2ConnectionError(
                ENHANCE_YOUR_CALM, "a frame other than DATA that is far too long"
            )
        if self.continuing and (kind != CONTINUATION or stream != self.continuing):
            raise Http2ConnectionError(PROTOCOL_ERROR, "a frame inside a header block")

    def _begin_data(self, data: Bytes, body: int, flags: int, stream: int, length: int) -> int:
        """Start a padded or incomplete DATA frame, and return the start of its body."""
        padding = 0
        if flags & PADDED:
            padding = data[body]
            if padding >= length:
                raise Http2ConnectionError(PROTOCOL_ERROR, "padding longer than the frame")
            self._sink.padding(stream, 1 + padding)
            body += 1
            length -= 1 + padding
        self._data_stream, self._data_left, self._padding = stream, length, padding
        self._data_ends = flags & END_STREAM != 0
        if not length:
            self._sink.data(stream, b"", self._data_ends)
        return body

    def _continue_data(self, data: Bytes, at: int, end: int) -> int:
        """Continue a DATA frame, and return the start of the next frame, or `end`."""
        if self._data_left:
            after = min(at + self._data_left, end)
            self._data_left -= after - at
            self._sink.data(
                self._data_stream, data[at:after], self._data_ends and not self._data_left
            )
        else:
            after = min(at + self._padding, end)
            self._padding -= after - at
        return after

    def _keep(self, rest: Bytes, need: int) -> None:
        self._rest += rest
        self._need = need
