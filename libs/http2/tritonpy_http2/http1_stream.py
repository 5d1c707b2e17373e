"""HTTP requests over HTTP/2.

An in-memory HTTP/1.1 connection serves each stream that is not gRPC.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httptools

from tritonpy_http2.calls import IGNORED_BODY, NO_TRAILERS, UNCOUNTED, Receiver
from tritonpy_http2.codes import CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR
from tritonpy_http2.encode import encode

if TYPE_CHECKING:
    from tritonpy_http2.calls import ClientReservation, Headers, Http2CallStream

_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"[\x21-\x7e\x80-\xff]+")
_AUTHORITY = re.compile(rb"[\x21-\x7e]*")
_BAD_REQUEST = encode([(b":status", b"400")])
# HTTP/2 has its own framing, and clients do not need "100 Continue".
_NOT_FORWARDED = frozenset({b"host", b"cookie", b"expect", b"te"})
_CONNECTION_SPECIFIC = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"}
)
_WITHOUT_BODY = frozenset({204, 304})


class Http1Stream(Receiver):
    """Passes one request to an HTTP/1.1 protocol object.

    The protocol object responds through a `StreamTransport`.
    """

    def __init__(self, stream: Http2CallStream) -> None:
        self._stream = stream
        self._paused = False
        # Input held while reading is paused, and its flow-control bytes.
        self._held: deque[tuple[bytes, int]] = deque()
        self._held_bytes = 0
        self._memory: ClientReservation | None = None
        self._is_chunked = False
        self._connection: asyncio.Protocol | None = None
        self._transport: StreamTransport | None = None

    def begin(self, connection: asyncio.Protocol, headers: Headers, ended: bool) -> None:
        """Send the head of the request to `connection`; `ended` means that it has no body."""
        transport = StreamTransport(self, self._stream, _value(headers, b":method") == b"HEAD")
        self._connection, self._transport = connection, transport
        self._is_chunked = not ended and not any(name == b"content-length" for name, _ in headers)
        connection.connection_made(transport)
        self._feed(_request_head(headers, is_chunked=self._is_chunked), 0)

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        part = bytes(data)
        if part:
            self._feed(b"%x\r\n%b\r\n" % (len(part), part) if self._is_chunked else part, len(part))
        if ended and self._is_chunked:
            self._feed(b"0\r\n\r\n", 0)

    def reset(self) -> None:
        self.close(ConnectionResetError("the client cancelled the request"))

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.sent()

    def pause_reading(self) -> None:
        """Hold received data and shrink the window of the client."""
        self._paused = True

    def resume_reading(self) -> None:
        """Pass on the held data."""
        self._paused = False
        while self._held and not self._paused and self._connection is not None:
            part, count = self._held.popleft()
            self._held_bytes -= count
            self._stream.consumed(count)
            self._deliver(part)
        if self._memory is not None:
            self._memory.shrink(self._held_bytes)

    def close(self, error: Exception | None = None) -> None:
        """Close the HTTP/1.1 connection.

        This breaks the reference cycle of stream, transport and parser.
        """
        connection, self._connection = self._connection, None
        transport, self._transport = self._transport, None
        self._held.clear()
        self._memory = None
        if transport is not None:
            transport.detach()
        if connection is not None:
            connection.connection_lost(error)

    def pause_writing(self) -> None:
        """Pause the connection's writing."""
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Resume the connection's writing."""
        if self._connection is not None:
            self._connection.resume_writing()

    def _feed(self, part: bytes, count: int) -> None:
        if self._connection is None:
            return
        if not self._paused:
            self._deliver(part)
        elif self._reserve(self._held_bytes + count):
            self._stream.hold(count)
            self._held_bytes += count
            self._held.append((part, count))
        else:
            self._stream.reset(ENHANCE_YOUR_CALM)
            self.close(ConnectionAbortedError("no memory for the request"))

    def _deliver(self, part: bytes) -> None:
        if self._connection is not None:
            self._connection.data_received(part)

    def _reserve(self, nbytes: int) -> bool:
        account = self._stream.account
        if nbytes <= UNCOUNTED or account is None:
            return True
        if self._memory is None:
            self._memory = account.reservation()
        return self._memory.grow(nbytes)


class StreamTransport(asyncio.Transport):
    """The transport of an in-memory HTTP/1.1 connection.

    It converts the response to HTTP/2 frames.
    """

    def __init__(self, receiver: Http1Stream, stream: Http2CallStream, is_head: bool) -> None:
        super().__init__()
        self._is_closing = False
        self._receiver: Http1Stream | None = receiver
        self._stream = stream
        self._is_head = is_head
        self._parser: Any = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._block: bytes | None = (
            None  # the response's header block, until it is sent with the first data
        )
        self._is_complete = False
        self._unsent = 0

    # Interface for the HTTP/1.1 connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not (self._is_closing or self._is_complete):
            self._parser.feed_data(data)

    def close(self) -> None:
        self._end(INTERNAL_ERROR)

    def abort(self) -> None:
        self._end(CANCEL)

    def is_closing(self) -> bool:
        return self._is_closing

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        if self._receiver is not None:
            self._receiver.pause_reading()

    def resume_reading(self) -> None:
        if self._receiver is not None:
            self._receiver.resume_reading()

    def is_reading(self) -> bool:
        return not self._is_closing

    def get_write_buffer_size(self) -> int:
        return self._unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: HTTP/2 windows are the limits."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "is_multiplexed":
            return True
        if name == "client_memory":
            return self._stream.account
        return self._stream.extra_info(name, default)

    def sent(self) -> None:
        """Resume writing: all data was sent."""
        self._unsent = 0
        if self._receiver is not None:
            self._receiver.resume_writing()

    def detach(self) -> None:
        """Drop the references that form cycles with this transport."""
        self._is_closing = True
        self._receiver = self._parser = None

    # Callbacks of the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name not in _CONNECTION_SPECIFIC:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._block = encode([(b":status", b"%d" % status), *self._headers])
        if self._is_head or status in _WITHOUT_BODY:
            self._complete()

    def on_body(self, body: bytes) -> None:
        if self._is_closing or self._is_complete:
            return
        if not self._stream.admits(len(body)):
            self._end(ENHANCE_YOUR_CALM)
            return
        block, self._block = self._block, None
        if not self._stream.send(block, (body,), None):
            is_first = not self._unsent
            self._unsent += len(body)
            if is_first and self._receiver is not None:
                self._receiver.pause_writing()

    def on_message_complete(self) -> None:
        if not (self._is_closing or self._is_complete):
            self._complete()

    def _complete(self) -> None:
        """End the response, and close the connection after the current callback."""
        self._is_complete = True
        if self._block is not None:
            self._stream.send(None, (), self._block)
        else:
            self._stream.send(None, (), NO_TRAILERS)
        self._close_soon()

    def _end(self, code: int) -> None:
        """Close the connection; reset the stream with `code` if its response is not complete."""
        if not self._is_closing:
            self._is_closing = True
            if not self._is_complete:
                self._stream.reset(code)
            self._close_soon()

    def _close_soon(self) -> None:
        if self._receiver is not None:
            asyncio.get_running_loop().call_soon(self._receiver.close)


def begin_http1(
    connection: Callable[[], asyncio.Protocol],
    stream: Http2CallStream,
    headers: Headers,
    ended: bool,
) -> Receiver:
    """Serve a valid HTTP/2 request with a new HTTP/1.1 connection.

    Respond with 400 if HTTP/1.1 cannot express the request.
    """
    if not _is_expressible(headers):
        stream.send(None, (), _BAD_REQUEST)
        return IGNORED_BODY
    receiver = Http1Stream(stream)
    receiver.begin(connection(), headers, ended)
    return receiver


def _is_expressible(headers: Headers) -> bool:
    """Return whether the pseudo-headers are valid in an HTTP/1.1 request line.

    They must not contain spaces.
    """
    return (
        _METHOD.fullmatch(_value(headers, b":method")) is not None
        and _TARGET.fullmatch(_value(headers, b":path")) is not None
        and _AUTHORITY.fullmatch(_value(headers, b":authority")) is not None
    )


def _request_head(headers: Headers, *, is_chunked: bool) -> bytes:
    """Return the HTTP/1.1 head of the request."""
    authority = _value(headers, b":authority") or _value(headers, b"host")
    lines = [
        b"%b %b HTTP/1.1" % (_value(headers, b":method"), _value(headers, b":path")),
        b"host: %b" % authority,
        *[
            b"%b: %b" % pair
            for pair in headers
            if pair[0][:1] != b":" and pair[0] not in _NOT_FORWARDED
        ],
    ]
    cookies = [value for name, value in headers if name == b"cookie"]
    if cookies:
        lines.append(b"cookie: " + b"; ".join(cookies))  # RFC 9113, section 8.2.3
    if is_chunked:
        lines.append(b"transfer-encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _value(headers: Headers, name: bytes) -> bytes:
    return next((value for found, value in headers if found == name), b"")
