"""Cuts what a client sends into frames. What is in a DATA frame is handed on as it comes, other frames when they are whole."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tritonpy_frontend_h2.http2.codes import (
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
from tritonpy_frontend_h2.http2.faults import ConnectionFault
from tritonpy_frontend_h2.http2.frames import START

Bytes = bytes | memoryview
_START_SIZE = START.size
_STREAM = 0x7FFFFFFF


class FrameSink(ABC):
    """Takes frames. Each method raises ConnectionFault where a frame may not be."""

    @abstractmethod
    def headers(self, flags: int, stream: int, payload: bytes) -> None:
        """Take a HEADERS frame."""

    @abstractmethod
    def data(self, stream: int, part: Bytes, ended: bool) -> None:
        """Take a part of a body, an empty one too; a memoryview is valid until the method returns."""

    @abstractmethod
    def padding(self, stream: int, count: int) -> None:
        """Take note of bytes of a DATA frame that are no body, but count like it."""

    @abstractmethod
    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Take a frame that is neither DATA nor HEADERS."""

    @abstractmethod
    def room(self, stream: int) -> memoryview | None:
        """Return where the body of a stream may be read to at once, None where it is taken by `data`."""

    @abstractmethod
    def filled(self, stream: int, count: int, ended: bool) -> None:
        """Take note that `count` bytes of the body were read to `room`."""


class FrameReader:
    """Reads one connection from its preface on. `largest` is the longest frame that may come, `longest_whole` the longest that is no DATA."""

    __slots__ = (
        "_always_allowed", "_data_ends", "_data_left", "_data_stream", "_greeted", "_largest", "_longest_whole", "_need", "_padding", "_rest",
        "_sink", "continuing",
    )  # fmt: skip

    def __init__(self, sink: FrameSink, largest: int, longest_whole: int) -> None:
        self._sink = sink
        self._largest = largest
        self._longest_whole = longest_whole
        self._always_allowed = min(largest, longest_whole)  # bytes of a frame of any kind
        self._greeted = False
        self._rest = bytearray()
        self._need = len(PREFACE) + _START_SIZE  # how much has to be there before it goes on
        self._data_stream = 0  # that of the DATA frame that is being read
        self._data_left = 0  # what is to come of its body
        self._data_ends = False
        self._padding = 0  # what is to come behind it
        self.continuing = 0  # the stream whose header block goes on in the next frame

    def feed(self, data: Bytes) -> None:
        """Read on. Raises ConnectionFault."""
        if self._need:
            self._rest += data
            if not self._greeted:
                self._greet()
            if len(self._rest) < self._need:
                return
            data = bytes(self._rest)
            self._rest.clear()
            self._need = 0
        self._read(data)

    def room(self) -> memoryview | None:
        """Return where the bytes that come next may be read to, None where they are to be fed."""
        if not self._data_left:
            return None
        room = self._sink.room(self._data_stream)
        return room[: self._data_left] if room else None

    def filled(self, count: int) -> None:
        """Take note that `count` bytes were read to `room`. Raises ConnectionFault."""
        self._data_left -= count
        self._sink.filled(self._data_stream, count, self._data_ends and not self._data_left)

    def _greet(self) -> None:
        """Take the preface, and look that SETTINGS follow."""
        rest = self._rest
        if not PREFACE.startswith(rest[: len(PREFACE)]):
            raise ConnectionFault(PROTOCOL_ERROR, "a client that does not speak HTTP/2")
        if len(rest) >= self._need:
            if rest[len(PREFACE) + 3] != SETTINGS or rest[len(PREFACE) + 4] & ACK:
                raise ConnectionFault(PROTOCOL_ERROR, "a client that does not begin with its settings")
            del rest[: len(PREFACE)]
            self._need = _START_SIZE
            self._greeted = True

    def _read(self, data: Bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            if self._data_left or self._padding:
                at = self._go_on(data, at, end)
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
                    raise ConnectionFault(FRAME_SIZE_ERROR, "a padded frame that is too short")
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
            raise ConnectionFault(FRAME_SIZE_ERROR, "a frame that is too long")
        if length > self._longest_whole and kind != DATA:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "a frame without data that is far too long")
        if self.continuing and (kind != CONTINUATION or stream != self.continuing):
            raise ConnectionFault(PROTOCOL_ERROR, "a frame in the middle of a header block")

    def _begin_data(self, data: Bytes, body: int, flags: int, stream: int, length: int) -> int:
        """Begin a DATA frame that is padded or not all there, and return where its body begins."""
        padding = 0
        if flags & PADDED:
            padding = data[body]
            if padding >= length:
                raise ConnectionFault(PROTOCOL_ERROR, "more padding than frame")
            self._sink.padding(stream, 1 + padding)
            body += 1
            length -= 1 + padding
        self._data_stream, self._data_left, self._padding = stream, length, padding
        self._data_ends = flags & END_STREAM != 0
        if not length:
            self._sink.data(stream, b"", self._data_ends)
        return body

    def _go_on(self, data: Bytes, at: int, end: int) -> int:
        """Go on in a DATA frame, and return where the next begins, or `end`."""
        if self._data_left:
            after = min(at + self._data_left, end)
            self._data_left -= after - at
            self._sink.data(self._data_stream, data[at:after], self._data_ends and not self._data_left)
        else:
            after = min(at + self._padding, end)
            self._padding -= after - at
        return after

    def _keep(self, rest: Bytes, need: int) -> None:
        self._rest += rest
        self._need = need
