"""Tests with the library h2 as a strict client."""

from __future__ import annotations

import h2.config
import h2.connection
import h2.events
import h2.settings
from hypothesis import given, settings
from hypothesis import strategies as st

from .raw_client import REQUEST, RESPONSE_HEAD, Server


class Client:
    """A client without a network; the server receives pieces of `cut` bytes."""

    def __init__(self, server, cut=1_000_000, frame=16_384, window=65_535):
        self.server = server
        self.cut = cut
        self.bodies, self.events, self.trailers = {}, [], {}
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding=None)
        )
        names = h2.settings.SettingCodes
        self.h2.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                names.MAX_FRAME_SIZE: frame,
                names.INITIAL_WINDOW_SIZE: window,
                names.ENABLE_PUSH: 0,
            },
        )
        self.h2.initiate_connection()
        self.exchange()

    def exchange(self):
        """Exchange bytes until both sides are idle."""
        self._receive(self.server.take_output())
        while sent := self.h2.data_to_send():
            for at in range(0, len(sent), self.cut):
                self._receive(self.server.deliver(sent[at : at + self.cut]))

    def _receive(self, output):
        for event in self.h2.receive_data(output) if output else ():
            self.events.append(event)
            if isinstance(event, h2.events.DataReceived):
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
                if event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.TrailersReceived):
                self.trailers[event.stream_id] = event.headers

    def call(self, data, headers=(), pad=None):
        """Send a call within the flow-control windows and return its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [*REQUEST, *headers], end_stream=False)
        while data:
            body_buffer = (
                min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                - (pad or 0)
                - 1
            )
            assert body_buffer > 0
            part, data = data[:body_buffer], data[body_buffer:]
            self.h2.send_data(stream, part, pad_length=pad)
            self.exchange()
        self.h2.end_stream(stream)
        self.exchange()
        return stream


def test_a_call_gets_a_response():
    server = Server()
    client = Client(server)
    stream = client.call(b"a body")
    assert client.bodies[stream] == b"a body"
    assert client.trailers[stream] == [(b"end", b"of response")]
    assert server.calls.started[0].headers == REQUEST
    assert not server.connection.streams


def test_equal_header_lists_are_one_object():
    server = Server()
    client = Client(server)
    for _ in range(4):
        client.call(b"")
    third, fourth = (call.headers for call in server.calls.started[2:])
    assert third is fourth


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.binary(max_size=70_000), st.integers(0, 20)), min_size=1, max_size=6),
    st.integers(1, 3000),
    st.sampled_from([16_384, 20_000, 2**24 - 1]),
    st.sampled_from([0, 1, 1000, 65_535, 2**20]),
    st.sampled_from([None, 0, 7, 255]),
)
def test_bodies_of_any_size_round_trip(calls, cut, frame, window, pad):
    server = Server()
    client = Client(server, cut, frame, max(window, 1))
    for body, number in calls:
        stream = client.call(body, [(b"name", b"%d" % number)], pad)
        assert client.bodies.get(stream, b"") == body
    assert not server.connection.streams


def test_calls_that_wait_for_windows_are_served_round_robin():
    waiting = []
    server = Server(waiting.append)
    client = Client(server)
    numbers = [client.call(b"") for _ in range(3)]
    for call in waiting:
        call.stream.send(RESPONSE_HEAD, (b"x" * 1_000_000,), b"")
    client.exchange()
    order = [
        event.stream_id for event in client.events if isinstance(event, h2.events.DataReceived)
    ]
    assert [len(client.bodies[number]) for number in numbers] == [1_000_000] * 3
    assert order.index(numbers[2]) < len(order) / 2


def test_window_changes_of_the_client_are_applied():
    waiting = []
    server = Server(waiting.append)
    client = Client(server, window=10)
    stream = client.call(b"")
    assert waiting[0].stream.send(RESPONSE_HEAD, (b"y" * 500,), b"") is False
    client._receive(server.take_output())
    client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 100_000})
    client.exchange()
    assert client.bodies[stream] == b"y" * 500
    assert not server.connection.streams


def test_an_oversized_header_list_keeps_the_hpack_table_consistent():
    server = Server()
    client = Client(server)
    client.call(b"", [(b"large", b"z" * 100_000), (b"kept", b"in the table")])
    client.call(b"", [(b"kept", b"in the table")])
    assert [limit for _, limit in server.calls.refused] == [16_384]
    assert server.calls.started[0].headers[-1] == (b"kept", b"in the table")


def test_held_data_shrinks_the_window_until_it_is_consumed():
    server = Server(lambda _call: None)
    server.calls.holds_data = True
    client = Client(server)
    stream = client.h2.get_next_available_stream_id()
    client.h2.send_headers(stream, REQUEST)
    before = client.h2.local_flow_control_window(stream)
    sent = 0
    while client.h2.local_flow_control_window(stream):
        part = min(client.h2.local_flow_control_window(stream), 1024 * 1024)
        client.h2.send_data(stream, bytes(part))
        client.exchange()
        sent += part
    assert sent == before
    server.calls.started[0].stream.consumed(sent)
    client.exchange()
    assert client.h2.local_flow_control_window(stream) == before


def test_a_smaller_hpack_table_is_announced_once():
    server = Server()
    client = Client(server)
    client.h2.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: 100})
    client.exchange()
    first = client.call(b"body")
    client.h2.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: 50})
    client.exchange()
    second = client.call(b"body")
    assert client.bodies == {first: b"body", second: b"body"}
    assert client.trailers[first] == client.trailers[second] == [(b"end", b"of response")]
    assert client.h2.decoder.header_table_size == 0
