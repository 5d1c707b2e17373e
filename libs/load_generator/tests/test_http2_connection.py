from __future__ import annotations

import asyncio

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, PingAckReceived, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from tritonpy_load_generator.loops.exchange import LostConnection
from tritonpy_load_generator.wire.http2_connection import ClientConnection, ClientStream

HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/call"),
    (":authority", "host:1"),
    ("x-key", "v" * 40),
]


class RecordingStream(ClientStream):
    """A stream that records the calls of its connection."""

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


class ConnectionHarness:
    """A connection and a server of the h2 library; `pump` transfers their bytes."""

    def __init__(self, settings=None):
        self.server = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.server.initiate_connection()
        if settings:
            self.server.update_settings(settings)
        self.events = []
        self.sent = b""
        self.closed = False
        self.client = ClientConnection(HEADERS)
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
            respond = self.server.data_to_send()
            if respond:
                self.client.data_received(respond)

    def events_of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def body(self, stream_id):
        return b"".join(
            event.data for event in self.events_of(DataReceived) if event.stream_id == stream_id
        )

    def respond(self, stream, body=b"", trailers=True):
        self.server.send_headers(stream.stream_id, [(":status", "200")])
        if body:
            self.server.send_data(stream.stream_id, body)
        if trailers:
            self.server.send_headers(stream.stream_id, [("grpc-status", "0")], end_stream=True)
        self.pump()


def on_event_loop(test):
    def run(*arguments, **named):
        async def main():
            test(*arguments, **named)

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


def started(harness, body=b"body", end=True):
    stream = RecordingStream()
    harness.client.start(stream, body, end)
    harness.pump()
    return stream


@on_event_loop
def test_a_call_carries_headers_and_body_and_its_response_ends_it():
    harness = ConnectionHarness()
    assert harness.client.ready.done()
    stream = started(harness)
    [request] = harness.events_of(RequestReceived)
    assert request.headers == HEADERS
    assert harness.body(1) == b"body"
    assert len(harness.events_of(StreamEnded)) == 1
    harness.respond(stream, b"answer")
    assert (stream.headers, stream.body, stream.ends) == (
        [{":status": "200"}, {"grpc-status": "0"}],
        b"answer",
        [None],
    )


@pytest.mark.parametrize("table_size", [4096, 60, 0])
def test_headers_are_equal_for_every_table_size_of_the_server(table_size):
    @on_event_loop
    def run():
        harness = ConnectionHarness({SettingCodes.HEADER_TABLE_SIZE: table_size})
        for _ in range(5):
            harness.respond(started(harness))
        harness.server.update_settings({SettingCodes.HEADER_TABLE_SIZE: 100})
        harness.pump()
        for _ in range(5):
            harness.respond(started(harness))
        assert [request.headers for request in harness.events_of(RequestReceived)] == [HEADERS] * 10

    run()


@on_event_loop
def test_a_header_block_is_short_once_the_server_has_seen_it():
    harness = ConnectionHarness()
    sizes = []
    for _ in range(3):
        stream = RecordingStream()
        harness.client.start(stream, b"", end=True)
        sizes.append(len(harness.sent))
        harness.pump()
    assert sizes[0] > 3 * sizes[1]
    assert sizes[1] == sizes[2]


@on_event_loop
def test_a_large_body_waits_for_the_windows_of_the_server():
    harness = ConnectionHarness({SettingCodes.INITIAL_WINDOW_SIZE: 10})
    body = bytes(range(256)) * 400
    stream = started(harness, body)
    assert harness.body(1) == body[:10]
    while len(harness.body(1)) < len(body):
        harness.server.increment_flow_control_window(7000, stream.stream_id)
        harness.server.increment_flow_control_window(7000)
        harness.pump()
    assert harness.body(1) == body
    assert len(harness.events_of(StreamEnded)) == 1


@on_event_loop
def test_a_call_beyond_the_most_streams_waits_for_another_to_end():
    harness = ConnectionHarness({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    first, second = started(harness), started(harness)
    assert len(harness.events_of(RequestReceived)) == 1
    harness.respond(first)
    assert len(harness.events_of(RequestReceived)) == 2
    harness.respond(second)
    assert second.ends == [None]


@on_event_loop
def test_a_stream_may_send_more_until_it_ends():
    harness = ConnectionHarness()
    stream = started(harness, b"one", end=False)
    harness.client.send(stream, b"two", end=True)
    harness.pump()
    assert harness.body(1) == b"onetwo"
    assert len(harness.events_of(StreamEnded)) == 1


@on_event_loop
def test_a_response_before_the_end_of_the_request_resets_the_rest_of_it():
    harness = ConnectionHarness()
    stream = started(harness, b"one", end=False)
    harness.respond(stream)
    assert stream.ends == [None]
    assert len(harness.events_of(StreamReset)) == 1


@on_event_loop
def test_a_reset_names_its_error_code():
    harness = ConnectionHarness()
    stream = started(harness)
    harness.server.reset_stream(1, 7)
    harness.pump()
    assert stream.ends == ["REFUSED_STREAM"]


@on_event_loop
def test_a_cancelled_stream_is_reset_and_not_called_again():
    harness = ConnectionHarness()
    stream = started(harness)
    harness.client.cancel(stream)
    harness.pump()
    assert [event.error_code for event in harness.events_of(StreamReset)] == [8]
    assert stream.ends == []
    harness.respond(started(harness))  # the connection continues to work


@on_event_loop
def test_goaway_fails_unprocessed_streams_and_closes_after_the_last_response():
    harness = ConnectionHarness()
    taken, refused = started(harness), started(harness)
    harness.server.close_connection(last_stream_id=1)
    harness.pump()
    assert not harness.client.usable
    assert isinstance(refused.ends[0], LostConnection)
    assert (taken.ends, harness.closed) == ([], False)


@on_event_loop
def test_a_ping_is_answered():
    harness = ConnectionHarness()
    harness.server.ping(b"12345678")
    harness.pump()
    assert len(harness.events_of(PingAckReceived)) == 1


@on_event_loop
def test_a_lost_connection_ends_every_stream_once():
    harness = ConnectionHarness({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    streams = [started(harness), started(harness)]
    harness.client.connection_lost(None)
    assert [stream.ends for stream in streams] == [
        ["the server closed the connection before it responded"]
    ] * 2
    assert all(isinstance(stream.ends[0], LostConnection) for stream in streams)


@pytest.mark.parametrize(
    "garbage",
    [b"\0\0\2\1\4\0\0\0\1\xff\xff", b"\0\0\1\4\0\0\0\0\0\0", b"\0\0\1\11\4\0\0\0\1\0"],
    ids=["header block", "settings", "continuation"],
)
def test_invalid_http2_aborts_the_connection(garbage):
    @on_event_loop
    def run():
        harness = ConnectionHarness()
        stream = started(harness)
        harness.client.data_received(garbage)
        assert harness.closed
        harness.client.connection_lost(None)
        assert stream.ends[0].startswith("the server does not speak HTTP/2")

    run()


@on_event_loop
def test_frames_may_arrive_byte_by_byte():
    harness = ConnectionHarness()
    stream = started(harness)
    harness.server.send_headers(1, [(":status", "200")])
    harness.server.send_data(1, b"answer", pad_length=20)
    harness.server.send_headers(1, [("grpc-status", "0")], end_stream=True)
    for byte in harness.server.data_to_send():
        harness.client.data_received(bytes([byte]))
    assert (stream.body, stream.ends) == (b"answer", [None])


@on_event_loop
def test_a_close_resets_only_what_is_still_being_sent():
    harness = ConnectionHarness()
    open_stream, complete = started(harness, end=False), started(harness)
    harness.client.close()
    harness.pump()
    assert harness.closed
    assert [event.stream_id for event in harness.events_of(StreamReset)] == [open_stream.stream_id]
    assert complete.ends == []
