from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from hpack import Decoder

from tritonpy_http2 import calls
from tritonpy_http2.http1_stream import begin_http1

HEAD = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a?b=c"),
    (b":authority", b"host:1"),
]


class FakeReservation:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0

    def grow(self, nbytes: int) -> bool:
        if nbytes > self.limit:
            return False
        self.nbytes = nbytes
        return True

    def shrink(self, nbytes: int = 0) -> None:
        self.nbytes = nbytes


class FakeAccount:
    def __init__(self, limit: int) -> None:
        self.reserved = FakeReservation(limit)

    def reservation(self) -> FakeReservation:
        return self.reserved


class RecordingStream(calls.Http2CallStream):
    """Records sent data; with `is_full`, the client does not read."""

    def __init__(self, limit: int = 2**40) -> None:
        self.sent: list[tuple[Any, bytes, bytes | None]] = []
        self.code: int | None = None
        self.held = 0
        self.is_full = False
        self.limit = limit
        self.memory = FakeAccount(limit)

    @property
    def account(self) -> Any:
        return self.memory

    def admits(self, count: int) -> bool:
        return count <= self.limit

    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        self.sent.append((headers and decoded(headers), b"".join(data), trailers))
        return not (self.is_full and any(data))

    def reset(self, code: int) -> None:
        self.code = code

    def hold(self, count: int) -> None:
        self.held += count

    def consumed(self, count: int) -> None:
        self.held -= count


class FakeConnection(asyncio.Protocol):
    """An HTTP/1.1 connection that records its input."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[Exception | None] = []
        self.writes: list[str] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)
        del self.transport

    def pause_writing(self) -> None:
        self.writes.append("pause")

    def resume_writing(self) -> None:
        self.writes.append("resume")


def decoded(block: bytes) -> dict[bytes, bytes]:
    return dict(Decoder().decode(block, raw=True))


def begun(
    headers: Sequence[tuple[bytes, bytes]] = HEAD, ended: bool = False, limit: int = 2**40
) -> tuple[RecordingStream, Any, FakeConnection]:
    stream, connection = RecordingStream(limit), FakeConnection()
    return stream, begin_http1(lambda: connection, stream, headers, ended), connection


async def callbacks_ran() -> None:
    for _ in range(2):
        await asyncio.sleep(0)


def test_a_request_without_body_is_one_head():
    async def scenario():
        _, _, connection = begun([*HEAD, (b"x", b"1"), (b"x", b"2")], ended=True)
        assert (
            connection.received == b"POST /a?b=c HTTP/1.1\r\nhost: host:1\r\nx: 1\r\nx: 2\r\n\r\n"
        )

    asyncio.run(scenario())


def test_a_body_of_unknown_length_is_sent_in_chunks():
    async def scenario():
        _, receiver, connection = begun()
        receiver.data(b"abc", False)
        receiver.data(memoryview(b"0123456789abcdef"), False)
        receiver.data(b"", True)
        head, _, body = connection.received.partition(b"\r\n\r\n")
        assert head.endswith(b"transfer-encoding: chunked")
        assert body == b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"

    asyncio.run(scenario())


def test_a_body_of_known_length_is_sent_unchanged():
    async def scenario():
        _, receiver, connection = begun([*HEAD, (b"content-length", b"6")])
        receiver.data(b"abc", False)
        receiver.data(b"def", True)
        head, _, body = connection.received.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert body == b"abcdef"

    asyncio.run(scenario())


def test_cookies_are_joined_and_hop_by_hop_headers_are_not_forwarded():
    async def scenario():
        more = [
            (b"cookie", b"a=1"),
            (b"cookie", b"b=2"),
            (b"te", b"trailers"),
            (b"expect", b"100-continue"),
        ]
        _, _, connection = begun([*HEAD, *more, (b"host", b"other")], ended=True)
        assert (
            connection.received
            == b"POST /a?b=c HTTP/1.1\r\nhost: host:1\r\ncookie: a=1; b=2\r\n\r\n"
        )

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "changed",
    [
        (b":method", b"GET / HTTP/1.1"),
        (b":method", b""),
        (b":path", b"/ HTTP/1.1"),
        (b":path", b"/\t"),
        (b":path", b"/\x7f"),
        (b":path", b""),
        (b":authority", b"a b"),
        (b":authority", b"\xff"),
    ],
)
def test_pseudo_headers_that_http1_cannot_express_are_answered_400(changed):
    async def scenario():
        headers = [pair for pair in HEAD if pair[0] != changed[0]] + [changed]
        stream, receiver, connection = begun(headers)
        assert connection.received == b""
        assert [(headers, data, decoded(end)) for headers, data, end in stream.sent] == [
            (None, b"", {b":status": b"400"})
        ]
        receiver.data(b"ignored", True)
        receiver.reset()

    asyncio.run(scenario())


def test_a_response_becomes_headers_data_and_the_end_of_the_stream():
    async def scenario():
        stream, _, connection = begun(ended=True)
        connection.transport.write(
            b"HTTP/1.1 201 Created\r\nX-A: 1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
        )
        assert stream.sent == [({b":status": b"201", b"x-a": b"1"}, b"abc", None)]
        connection.transport.write(b"2\r\nde\r\n0\r\n\r\n")
        assert stream.sent[1:] == [(None, b"de", None), (None, b"", calls.NO_TRAILERS)]
        await callbacks_ran()
        assert connection.lost == [None]
        assert stream.code is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "response"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ],
)
def test_a_response_without_body_is_headers_alone(method, response):
    async def scenario():
        stream, _, connection = begun([(b":method", method), *HEAD[1:]], ended=True)
        connection.transport.write(response)
        (headers, data, end), *rest = stream.sent
        assert (headers, data, rest) == (None, b"", [])
        assert decoded(end)[b":status"] in (b"200", b"204")
        await callbacks_ran()
        assert connection.lost == [None]

    asyncio.run(scenario())


@pytest.mark.parametrize(("method", "code"), [("close", 2), ("abort", 8)])
def test_a_connection_that_ends_before_its_response_resets_the_stream(method, code):
    async def scenario():
        stream, receiver, connection = begun()
        getattr(connection.transport, method)()
        assert connection.transport.is_closing()
        await callbacks_ran()
        assert (stream.code, connection.lost) == (code, [None])
        receiver.data(b"late", True)
        assert connection.received.endswith(b"\r\n\r\n")

    asyncio.run(scenario())


def test_a_cancelled_stream_ends_the_connection_once():
    async def scenario():
        stream, receiver, connection = begun()
        receiver.reset()
        receiver.reset()
        await callbacks_ran()
        assert [type(error) for error in connection.lost] == [ConnectionResetError]
        assert stream.sent == []

    asyncio.run(scenario())


def test_input_is_held_while_the_connection_pauses_reading():
    async def scenario():
        stream, receiver, connection = begun([*HEAD, (b"content-length", b"6")])
        before = len(connection.received)
        connection.transport.pause_reading()
        receiver.data(b"abc", False)
        receiver.data(b"def", True)
        assert (stream.held, len(connection.received)) == (6, before)
        connection.transport.resume_reading()
        assert (stream.held, connection.received[before:]) == (0, b"abcdef")

    asyncio.run(scenario())


def test_held_input_without_memory_resets_the_stream():
    async def scenario():
        stream, receiver, connection = begun(limit=100_000)
        connection.transport.pause_reading()
        receiver.data(bytes(90_000), False)
        assert stream.memory.reserved.nbytes == 90_000
        receiver.data(bytes(20_000), False)
        assert stream.code == 11
        assert [type(error) for error in connection.lost] == [ConnectionAbortedError]

    asyncio.run(scenario())


def test_a_slow_client_pauses_writing_until_everything_is_sent():
    async def scenario():
        stream, receiver, connection = begun(ended=True)
        stream.is_full = True
        connection.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nabcd")
        assert (connection.writes, connection.transport.get_write_buffer_size()) == (["pause"], 4)
        receiver.resume()
        assert (connection.writes, connection.transport.get_write_buffer_size()) == (
            ["pause", "resume"],
            0,
        )

    asyncio.run(scenario())


def test_a_response_without_memory_resets_the_stream():
    async def scenario():
        stream, _, connection = begun(ended=True, limit=3)
        connection.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd")
        assert (stream.code, stream.sent) == (11, [])
        await callbacks_ran()
        assert connection.lost == [None]

    asyncio.run(scenario())


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"])
def test_objects_are_freed_without_garbage_collection(response):
    async def scenario():
        stream, receiver, connection = begun()
        connection.transport.write(response)
        found = [weakref.ref(each) for each in (receiver, connection, connection.transport)]
        if not response:
            receiver.reset()
        await callbacks_ran()
        del receiver, connection, stream
        assert [each() for each in found] == [None] * 3

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()
