from __future__ import annotations

import asyncio

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, PingAckReceived, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from tritonpy_bench.load.exchange import Lost
from tritonpy_bench.wire.http2_connection import Http2Connection, Http2Stream

HEADERS = [(":method", "POST"), (":scheme", "http"), (":path", "/call"), (":authority", "host:1"), ("x-key", "v" * 40)]


class Recorded(Http2Stream):
    """A stream that keeps what its connection says."""

    def __init__(self):
        super().__init__()
        self.headers = []
        self.body = b""
        self.ends = []

    def headers_received(self, headers):
        self.headers.append(headers)

    def data_received(self, data):
        self.body += data

    def ended(self, error):
        self.ends.append(error)


class Wire:
    """A connection beside a server made of the h2 library; bytes are carried when `pump` is called."""

    def __init__(self, settings=None):
        self.server = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.server.initiate_connection()
        if settings:
            self.server.update_settings(settings)
        self.events = []
        self.sent = b""
        self.closed = False
        self.client = Http2Connection(HEADERS)
        self.client.connection_made(self)
        self.pump()

    def write(self, data):
        self.sent += bytes(data)

    def close(self):
        self.closed = True

    abort = close

    def pump(self):
        while self.sent or self.server._data_to_send:
            sent, self.sent = self.sent, b""
            self.events += self.server.receive_data(sent) if sent else []
            answer = self.server.data_to_send()
            if answer:
                self.client.data_received(answer)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def body(self, stream_id):
        return b"".join(event.data for event in self.of(DataReceived) if event.stream_id == stream_id)

    def answer(self, stream, body=b"", trailers=True):
        self.server.send_headers(stream.stream_id, [(":status", "200")])
        if body:
            self.server.send_data(stream.stream_id, body)
        if trailers:
            self.server.send_headers(stream.stream_id, [("grpc-status", "0")], end_stream=True)
        self.pump()


def on_a_loop(test):
    def run(*arguments, **named):
        async def main():
            test(*arguments, **named)

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


def started(wire, body=b"body", end=True):
    stream = Recorded()
    wire.client.start(stream, body, end)
    wire.pump()
    return stream


@on_a_loop
def test_a_call_carries_headers_and_body_and_its_response_ends_it():
    wire = Wire()
    assert wire.client.ready.done()
    stream = started(wire)
    [request] = wire.of(RequestReceived)
    assert request.headers == HEADERS
    assert wire.body(1) == b"body"
    assert len(wire.of(StreamEnded)) == 1
    wire.answer(stream, b"answer")
    assert (stream.headers, stream.body, stream.ends) == ([{":status": "200"}, {"grpc-status": "0"}], b"answer", [None])


@pytest.mark.parametrize("table_size", [4096, 60, 0])
def test_every_call_has_the_same_headers_whatever_table_the_server_keeps(table_size):
    @on_a_loop
    def run():
        wire = Wire({SettingCodes.HEADER_TABLE_SIZE: table_size})
        for _ in range(5):
            wire.answer(started(wire))
        wire.server.update_settings({SettingCodes.HEADER_TABLE_SIZE: 100})
        wire.pump()
        for _ in range(5):
            wire.answer(started(wire))
        assert [request.headers for request in wire.of(RequestReceived)] == [HEADERS] * 10

    run()


@on_a_loop
def test_a_header_block_is_short_once_the_server_has_seen_it():
    wire = Wire()
    sizes = []
    for _ in range(3):
        stream = Recorded()
        wire.client.start(stream, b"", end=True)
        sizes.append(len(wire.sent))
        wire.pump()
    assert sizes[0] > 3 * sizes[1]
    assert sizes[1] == sizes[2]


@on_a_loop
def test_a_large_body_waits_for_the_windows_of_the_server():
    wire = Wire({SettingCodes.INITIAL_WINDOW_SIZE: 10})
    body = bytes(range(256)) * 400
    stream = started(wire, body)
    assert wire.body(1) == body[:10]
    while len(wire.body(1)) < len(body):
        wire.server.increment_flow_control_window(7000, stream.stream_id)
        wire.server.increment_flow_control_window(7000)
        wire.pump()
    assert wire.body(1) == body
    assert len(wire.of(StreamEnded)) == 1


@on_a_loop
def test_a_call_beyond_the_most_streams_waits_for_another_to_end():
    wire = Wire({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    first, second = started(wire), started(wire)
    assert len(wire.of(RequestReceived)) == 1
    wire.answer(first)
    assert len(wire.of(RequestReceived)) == 2
    wire.answer(second)
    assert second.ends == [None]


@on_a_loop
def test_a_stream_may_send_more_until_it_ends():
    wire = Wire()
    stream = started(wire, b"one", end=False)
    wire.client.send(stream, b"two", end=True)
    wire.pump()
    assert wire.body(1) == b"onetwo"
    assert len(wire.of(StreamEnded)) == 1


@on_a_loop
def test_a_response_before_the_end_of_the_request_resets_the_rest_of_it():
    wire = Wire()
    stream = started(wire, b"one", end=False)
    wire.answer(stream)
    assert stream.ends == [None]
    assert len(wire.of(StreamReset)) == 1


@on_a_loop
def test_a_reset_names_its_error_code():
    wire = Wire()
    stream = started(wire)
    wire.server.reset_stream(1, 7)
    wire.pump()
    assert stream.ends == ["REFUSED_STREAM"]


@on_a_loop
def test_a_cancelled_stream_is_reset_and_hears_no_more():
    wire = Wire()
    stream = started(wire)
    wire.client.cancel(stream)
    wire.pump()
    assert [event.error_code for event in wire.of(StreamReset)] == [8]
    assert stream.ends == []
    wire.answer(started(wire))  # the connection goes on


@on_a_loop
def test_goaway_ends_what_was_not_taken_and_closes_after_the_last_answer():
    wire = Wire()
    taken, refused = started(wire), started(wire)
    wire.server.close_connection(last_stream_id=1)
    wire.pump()
    assert not wire.client.usable
    assert isinstance(refused.ends[0], Lost)
    assert (taken.ends, wire.closed) == ([], False)


@on_a_loop
def test_a_ping_is_answered():
    wire = Wire()
    wire.server.ping(b"12345678")
    wire.pump()
    assert len(wire.of(PingAckReceived)) == 1


@on_a_loop
def test_a_lost_connection_ends_every_stream_once():
    wire = Wire({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    streams = [started(wire), started(wire)]
    wire.client.connection_lost(None)
    assert [stream.ends for stream in streams] == [["the server closed the connection before it answered"]] * 2
    assert all(isinstance(stream.ends[0], Lost) for stream in streams)


@pytest.mark.parametrize(
    "garbage",
    [b"\0\0\2\1\4\0\0\0\1\xff\xff", b"\0\0\1\4\0\0\0\0\0\0", b"\0\0\1\11\4\0\0\0\1\0"],
    ids=["header block", "settings", "continuation"],
)
def test_what_is_no_http2_cuts_the_connection(garbage):
    @on_a_loop
    def run():
        wire = Wire()
        stream = started(wire)
        wire.client.data_received(garbage)
        assert wire.closed
        wire.client.connection_lost(None)
        assert stream.ends[0].startswith("the server does not speak HTTP/2")

    run()


@on_a_loop
def test_frames_may_arrive_byte_by_byte():
    wire = Wire()
    stream = started(wire)
    wire.server.send_headers(1, [(":status", "200")])
    wire.server.send_data(1, b"answer", pad_length=20)
    wire.server.send_headers(1, [("grpc-status", "0")], end_stream=True)
    for byte in wire.server.data_to_send():
        wire.client.data_received(bytes([byte]))
    assert (stream.body, stream.ends) == (b"answer", [None])


@on_a_loop
def test_a_close_resets_only_what_is_still_being_sent():
    wire = Wire()
    open_stream, complete = started(wire, end=False), started(wire)
    wire.client.close()
    wire.pump()
    assert wire.closed
    assert [event.stream_id for event in wire.of(StreamReset)] == [open_stream.stream_id]
    assert complete.ends == []
