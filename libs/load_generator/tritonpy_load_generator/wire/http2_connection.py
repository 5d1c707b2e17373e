"""An HTTP/2 client connection (RFC 9113) for load generation; it skips unread data."""

from __future__ import annotations

import asyncio
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError

from tritonpy_load_generator.loops.exchange import LostConnection

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME = struct.Struct(">IBI")  # length << 8 | type, flags, stream
_SETTING = struct.Struct(">HI")
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = (
    0,
    1,
    3,
    4,
    6,
    7,
    8,
    9,
)
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_HEADER_TABLE_SIZE, _ENABLE_PUSH, _MAX_CONCURRENT_STREAMS, _INITIAL_WINDOW_SIZE, _MAX_FRAME_SIZE = (
    1,
    2,
    3,
    4,
    5,
)
_DEFAULT_WINDOW = 65535
_LARGEST_WINDOW = 2**31 - 1
_LAST_STREAM = 2**31 - 3
_WINDOW_UPDATE_AT = 2**29
"""Received bytes after which a WINDOW_UPDATE frame is sent."""
_LARGEST_TABLE = 4096
_KEPT_BLOCKS = 64
_CANCEL = 8
_ERROR_CODES = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
    "STREAM_CLOSED", "FRAME_SIZE_ERROR",
    "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)  # fmt: skip


class ClientStream(ABC):
    """A request and its response. The connection assigns its id and calls it on the event loop."""

    stream_id = 0
    send_window = 0
    received = 0
    """Bytes of DATA frames since the last WINDOW_UPDATE frame."""
    sent_end = False
    reads_data = True
    """False drops the content of DATA frames."""

    def __init__(self) -> None:
        self.unsent: deque[memoryview] = deque()
        self.end_after_unsent = False

    @abstractmethod
    def headers_received(self, headers: dict[str, str]) -> None:
        """Process the headers or trailers of the response."""

    def data_received(self, data: bytes) -> None:
        """Process a piece of the response's body."""

    @abstractmethod
    def ended(self, error: str | None) -> None:
        """Process the end of the stream; `error` is None if the response is complete.

        Otherwise it is the name of an HTTP/2 error code, or a `LostConnection` text.
        """


class ClientConnection(asyncio.Protocol):
    """Sends every request with the same `headers`.

    `await ready` returns when the server's settings have arrived.
    """

    def __init__(self, headers: Sequence[tuple[str, str]]) -> None:
        self._headers = headers
        self._encoder = Encoder()
        # Without a dynamic table on the server's side, equal blocks have equal headers and are
        # decoded once.
        self._decoder = Decoder()
        self._decoder.header_table_size = self._decoder.max_allowed_table_size = 0
        self._decoded: dict[bytes, dict[str, str]] = {}
        self._streams: dict[int, ClientStream] = {}
        self._waiting: deque[tuple[ClientStream, bytes, bool]] = deque()
        self._next_id = 1
        self._last_block = b""
        self._block_repeats = False
        self._send_window = _DEFAULT_WINDOW
        self._initial_window = _DEFAULT_WINDOW
        self._most_streams = _LARGEST_WINDOW
        self._largest_frame = 16384
        self._received = 0
        self._remainder = b""
        self._unfinished_block: tuple[int, int, bytes] | None = None
        self._reading = False
        self._unwritten: list[bytes] = []
        self._failure: str | None = None
        self.usable = True
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # Called by senders

    def start(self, stream: ClientStream, body: bytes, end: bool) -> None:
        """Send a request with the first bytes of its body, or all of them if `end`.

        It waits while the server allows no further streams.
        """
        if len(self._streams) >= self._most_streams:
            self._waiting.append((stream, body, end))
            return
        stream.stream_id = stream_id = self._next_id
        self._next_id += 2
        if self._next_id > _LAST_STREAM:
            self.usable = False
        stream.send_window, stream.received, stream.sent_end = self._initial_window, 0, False
        self._streams[stream_id] = stream
        self._write_block(stream_id)
        self.send(stream, body, end)

    def send(self, stream: ClientStream, body: bytes, end: bool) -> None:
        """Send more bytes of a started request, within the server's flow-control windows."""
        size = len(body)
        if (
            not stream.unsent
            and size <= self._largest_frame
            and size <= min(self._send_window, stream.send_window)
        ):
            self._send_window -= size
            stream.send_window -= size
            stream.sent_end = end
            self._write(
                _FRAME.pack(size << 8 | _DATA, _END_STREAM if end else 0, stream.stream_id) + body
            )
            return
        stream.unsent.append(memoryview(body))
        stream.end_after_unsent = end
        self._send_unsent(stream)

    def cancel(self, stream: ClientStream) -> None:
        """Reset a stream; none of its methods is called again."""
        if self._streams.get(stream.stream_id) is stream:
            del self._streams[stream.stream_id]
            stream.unsent.clear()
            self._write(
                _FRAME.pack(4 << 8 | _RST_STREAM, 0, stream.stream_id) + struct.pack(">I", _CANCEL)
            )
        else:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not stream)

    def close(self) -> None:
        """Reset unfinished requests and close the connection; no method is called again."""
        self.usable = False
        self._waiting.clear()
        for stream in [each for each in self._streams.values() if not each.sent_end]:
            self.cancel(stream)
        self._streams.clear()
        self._write(_FRAME.pack(8 << 8 | _GOAWAY, 0, 0) + bytes(8))
        self.transport.close()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the preface and settings: no header table, no push, and maximum windows."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # a stream's
        settings = b"".join(
            _SETTING.pack(*entry)
            for entry in (
                (_HEADER_TABLE_SIZE, 0),
                (_ENABLE_PUSH, 0),
                (_INITIAL_WINDOW_SIZE, _LARGEST_WINDOW),
                (_MAX_FRAME_SIZE, 65536),
            )
        )
        window = _FRAME.pack(4 << 8 | _WINDOW_UPDATE, 0, 0) + struct.pack(
            ">I", _LARGEST_WINDOW - _DEFAULT_WINDOW
        )
        head = _PREFACE + _FRAME.pack(len(settings) << 8 | _SETTINGS, 0, 0)
        transport.write(head + settings + window)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Process the complete frames; frames sent in response are written together."""
        self._reading = True
        try:
            self._handle_frames(self._remainder + data if self._remainder else data)
        except (HPACKError, ValueError, struct.error, IndexError) as error:
            self._failure = f"the server does not speak HTTP/2: {error or type(error).__name__}"
            self.usable = False
            self.transport.abort()
        finally:
            self._reading = False
            if self._unwritten:
                self.transport.write(b"".join(self._unwritten))
                self._unwritten.clear()

    def connection_lost(self, error: Exception | None) -> None:
        """End every stream."""
        text = self._failure or (
            "the server closed the connection before it responded"
            if error is None
            else f"connection lost: {error}"
        )
        self.usable = False
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(text))
        streams = [*self._streams.values(), *(entry[0] for entry in self._waiting)]
        self._streams.clear()
        self._waiting.clear()
        for stream in streams:
            stream.unsent.clear()
            stream.ended(LostConnection(text))

    # Frames

    def _handle_frames(self, data: bytes) -> None:
        at, end = 0, len(data)
        while end - at >= 9:
            head, flags, stream_id = _FRAME.unpack_from(data, at)
            begin = at + 9
            stop = begin + (head >> 8)
            if stop > end:
                break
            at = stop
            kind = head & 255
            if kind == _DATA:
                self._handle_data(flags, stream_id, data, begin, stop)
            elif kind in {_HEADERS, _CONTINUATION}:
                self._handle_block(kind, flags, stream_id, data, begin, stop)
            else:
                self._handle_other(kind, flags, stream_id & _LARGEST_WINDOW, data[begin:stop])
        self._remainder = data[at:]

    def _handle_data(self, flags: int, stream_id: int, data: bytes, begin: int, stop: int) -> None:
        size = stop - begin
        self._received += size
        if self._received >= _WINDOW_UPDATE_AT:
            self._return_window(0, self._received)
            self._received = 0
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if flags & _PADDED:
            begin, stop = begin + 1, stop - data[begin]
        if stream.reads_data:
            stream.data_received(data[begin:stop])
        if flags & _END_STREAM:
            self._end(stream)
            return
        stream.received += size
        if stream.received >= _WINDOW_UPDATE_AT:
            self._return_window(stream_id, stream.received)
            stream.received = 0

    def _handle_block(
        self, kind: int, flags: int, stream_id: int, data: bytes, begin: int, stop: int
    ) -> None:
        if kind == _HEADERS:
            if flags & _PADDED:
                begin, stop = begin + 1, stop - data[begin]
            if flags & _PRIORITY:
                begin += 5
            block, ends = data[begin:stop], flags & _END_STREAM
        else:
            if self._unfinished_block is None or self._unfinished_block[0] != stream_id:
                raise ValueError("a CONTINUATION frame continues nothing")
            _, ends, block = self._unfinished_block
            block += data[begin:stop]
        if not flags & _END_HEADERS:
            self._unfinished_block = (stream_id, ends, block)
            return
        self._unfinished_block = None
        headers = self._decoded.get(block)
        if headers is None:
            if len(self._decoded) >= _KEPT_BLOCKS:
                self._decoded.clear()
            headers = self._decoded[block] = {
                str(field[0]): str(field[1]) for field in self._decoder.decode(block)
            }
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.headers_received(headers)
            if ends:
                self._end(stream)

    def _handle_other(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            self._handle_settings(payload)
        elif kind == _PING and not flags & _ACK:
            self._write(_FRAME.pack(len(payload) << 8 | _PING, _ACK, 0) + payload)
        elif kind == _WINDOW_UPDATE:
            self._handle_window(stream_id, struct.unpack(">I", payload)[0])
        elif kind == _RST_STREAM:
            stream = self._streams.pop(stream_id, None)
            if stream is not None:
                stream.unsent.clear()
                stream.ended(error_code_name(struct.unpack(">I", payload)[0]))
                self._start_waiting()
        elif kind == _GOAWAY:
            self._handle_goaway(struct.unpack_from(">I", payload)[0])

    def _handle_settings(self, payload: bytes) -> None:
        for setting, value in _SETTING.iter_unpack(payload):
            if setting == _HEADER_TABLE_SIZE:
                self._encoder.header_table_size = min(value, _LARGEST_TABLE)
                self._block_repeats = False
            elif setting == _MAX_CONCURRENT_STREAMS:
                self._most_streams = value
            elif setting == _MAX_FRAME_SIZE:
                self._largest_frame = value
            elif setting == _INITIAL_WINDOW_SIZE:
                for stream in self._streams.values():
                    stream.send_window += value - self._initial_window
                self._initial_window = value
        self._write(_FRAME.pack(_SETTINGS, _ACK, 0))
        if not self.ready.done():
            self.ready.set_result(None)
        self._send_all_unsent()
        self._start_waiting()

    def _handle_window(self, stream_id: int, increment: int) -> None:
        if stream_id == 0:
            self._send_window += increment
            self._send_all_unsent()
        elif (stream := self._streams.get(stream_id)) is not None:
            stream.send_window += increment
            self._send_unsent(stream)

    def _handle_goaway(self, last: int) -> None:
        """Fail streams above `last`, which the server did not process; lower ones get responses."""
        self.usable = False
        refused = [
            stream
            for stream_id, stream in self._streams.items()
            if stream_id > last & _LARGEST_WINDOW
        ]
        refused += [entry[0] for entry in self._waiting]
        self._waiting.clear()
        for stream in refused:
            self._streams.pop(stream.stream_id, None)
            stream.unsent.clear()
            stream.ended(LostConnection("the server is closing the connection"))
        if not self._streams:
            self.transport.close()

    def _end(self, stream: ClientStream) -> None:
        del self._streams[stream.stream_id]
        if not stream.sent_end:  # the response came before the end of the request
            stream.unsent.clear()
            self._write(
                _FRAME.pack(4 << 8 | _RST_STREAM, 0, stream.stream_id) + struct.pack(">I", _CANCEL)
            )
        stream.ended(None)
        if self._waiting:
            self._start_waiting()
        elif not self.usable and not self._streams:
            self.transport.close()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._streams) < self._most_streams:
            self.start(*self._waiting.popleft())

    def _send_all_unsent(self) -> None:
        for stream in list(self._streams.values()):
            if stream.unsent:
                self._send_unsent(stream)

    def _send_unsent(self, stream: ClientStream) -> None:
        """Send what both windows allow."""
        unsent = stream.unsent
        while unsent:
            piece = unsent[0]
            size = min(len(piece), self._largest_frame, self._send_window, stream.send_window)
            if size <= 0 and len(piece):
                return
            self._send_window -= size
            stream.send_window -= size
            if size == len(piece):
                unsent.popleft()
                stream.sent_end = stream.end_after_unsent and not unsent
            else:
                unsent[0] = piece[size:]
            head = _FRAME.pack(
                size << 8 | _DATA, _END_STREAM if stream.sent_end else 0, stream.stream_id
            )
            self._write(head + piece[:size])

    def _write_block(self, stream_id: int) -> None:
        block = self._last_block
        if (
            not self._block_repeats
        ):  # the first blocks fill the server's header table; later ones refer to it
            self._last_block = self._encoder.encode(self._headers)
            self._block_repeats = self._last_block == block
            block = self._last_block
        if len(block) <= self._largest_frame:
            self._write(_FRAME.pack(len(block) << 8 | _HEADERS, _END_HEADERS, stream_id) + block)
            return
        for at in range(0, len(block), self._largest_frame):
            piece = block[at : at + self._largest_frame]
            last = at + len(piece) == len(block)
            kind = _CONTINUATION if at else _HEADERS
            self._write(
                _FRAME.pack(len(piece) << 8 | kind, _END_HEADERS if last else 0, stream_id) + piece
            )

    def _return_window(self, stream_id: int, size: int) -> None:
        self._write(_FRAME.pack(4 << 8 | _WINDOW_UPDATE, 0, stream_id) + struct.pack(">I", size))

    def _write(self, frame: bytes) -> None:
        if self._reading:
            self._unwritten.append(frame)
        else:
            self.transport.write(frame)


def error_code_name(code: int) -> str:
    """Return the name of an HTTP/2 error code (RFC 9113, section 7)."""
    return _ERROR_CODES[code] if code < len(_ERROR_CODES) else f"error code {code}"
