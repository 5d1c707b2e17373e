"""Clients that violate the protocol or abuse it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tritonpy_http2 import codes
from tritonpy_http2.abuse_limits import PingRules
from tritonpy_http2.codes import (
    ACK,
    CANCEL,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    WITH_PRIORITY,
)
from tritonpy_http2.encode import encode
from tritonpy_http2.limits import Http2Limits

from .raw_client import BLOCK, CLIENT_HELLO, REQUEST, Server, begin, body, frame, of_kind


def number(value):
    return value.to_bytes(4, "big")


def setting(name, value):
    return name.to_bytes(2, "big") + number(value)


def ends_with(server, sent, code):
    """Return whether `sent` ends the connection with a GOAWAY of that code."""
    goaways = of_kind(GOAWAY, server.frames(sent))
    assert server.connection.finished
    return [int.from_bytes(payload[4:8], "big") for *_, payload in goaways] == [code]


def resets(server, sent):
    """Return stream and code of each RST_STREAM for `sent`; the connection must stay open."""
    found = of_kind(RST_STREAM, server.frames(sent))
    assert not server.connection.over
    assert server.frames(frame(PING, 0, 0, b"still up")) == [(PING, ACK, 0, b"still up")]
    return [(stream, int.from_bytes(payload, "big")) for _, _, stream, payload in found]


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nXX", b"P" * 24, PREFACE + frame(PING, 0, 0, bytes(8))],
)  # fmt: skip
def test_an_invalid_preface_ends_the_connection(sent):
    assert ends_with(Server(), sent, PROTOCOL_ERROR)


def test_data_may_arrive_byte_by_byte():
    server = Server()
    for byte in CLIENT_HELLO + begin() + body(b"hello"):
        server.connection.receive(bytes((byte,)))
    assert server.calls.started[0].body == b"hello"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        (frame(DATA, 0, 7, b"x"), PROTOCOL_ERROR),
        (frame(DATA, 0, 2, b"x"), PROTOCOL_ERROR),
        (frame(DATA, PADDED, 1, b"\5abcd"), PROTOCOL_ERROR),
        (frame(DATA, PADDED, 1), FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS, 0, BLOCK), PROTOCOL_ERROR),
        (frame(HEADERS, 0, 0, BLOCK), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 2, BLOCK), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS | PADDED, 3, b"\xff" + BLOCK), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS | PADDED, 3), FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS | WITH_PRIORITY, 3, b"1234"), FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS, 3, b"\xff\xff\xff\xff\xff\xff"), COMPRESSION_ERROR),
        (frame(HEADERS, END_HEADERS, 3, b"\x80"), COMPRESSION_ERROR),
        (frame(HEADERS, END_HEADERS, 3, b"\xc0"), COMPRESSION_ERROR),
        (frame(HEADERS, END_HEADERS, 3, b"\x40\x05ab"), COMPRESSION_ERROR),
        (frame(HEADERS, END_HEADERS, 3, BLOCK + b"\x20"), COMPRESSION_ERROR),
        (frame(HEADERS, END_HEADERS, 3, b"\x3f\xe2\x1f"), COMPRESSION_ERROR),
        (frame(HEADERS, 0, 3, BLOCK) + frame(PING, 0, 0, bytes(8)), PROTOCOL_ERROR),
        (frame(HEADERS, 0, 3, BLOCK) + frame(CONTINUATION, 0, 5), PROTOCOL_ERROR),
        (frame(HEADERS, 0, 3, BLOCK) + frame(0xEE, 0, 3), PROTOCOL_ERROR),
        (frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR),
        (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 0, bytes(4)), PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 9, bytes(4)), PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
        (frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 0, setting(codes.ENABLE_PUSH, 2)), PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 2**31)), FLOW_CONTROL_ERROR),
        (frame(SETTINGS, 0, 0, setting(codes.MAX_FRAME_SIZE, 16_383)), PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, setting(codes.MAX_FRAME_SIZE, 2**24)), PROTOCOL_ERROR),
        (frame(PUSH_PROMISE, 0, 1, bytes(4)), PROTOCOL_ERROR),
        (frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
        (frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
        (frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, number(0)), PROTOCOL_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, number(2**31 - 1)), FLOW_CONTROL_ERROR),
        (frame(WINDOW_UPDATE, 0, 9, number(1)), PROTOCOL_ERROR),
        (frame(WINDOW_UPDATE, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
        (b"\xff\xff\xff" + bytes(2) + number(1), FRAME_SIZE_ERROR),
        (b"\x20\x00\x00\x01\x04" + number(3), ENHANCE_YOUR_CALM),
    ],
)  # fmt: skip
def test_a_connection_error_ends_the_connection(sent, code):
    server = Server().handshake()
    server.deliver(begin())
    assert ends_with(server, sent + begin(5), code)
    assert server.calls.started[0].was_reset
    assert len(server.calls.started) == 1


@pytest.mark.parametrize(
    ("sent", "reset"),
    [
        (frame(WINDOW_UPDATE, 0, 1, number(0)), (1, PROTOCOL_ERROR)),
        (frame(WINDOW_UPDATE, 0, 1, number(2**31 - 1)), (1, FLOW_CONTROL_ERROR)),
        (frame(PRIORITY, 0, 1, bytes(4)), (1, FRAME_SIZE_ERROR)),
        (begin(1), (1, PROTOCOL_ERROR)),
        (begin(1, b"\x80"[:0] + encode([(b"Upper", b"case")]), ended=True), (1, PROTOCOL_ERROR)),
        (body(b"") + body(b""), (1, STREAM_CLOSED)),
        (begin(3, encode(REQUEST[1:])), (3, PROTOCOL_ERROR)),
        (begin(3, encode([*REQUEST, (b":path", b"/")])), (3, PROTOCOL_ERROR)),
        (begin(3, encode([*REQUEST, (b"connection", b"close")])), (3, PROTOCOL_ERROR)),
    ],
)
def test_a_stream_error_resets_only_the_stream(sent, reset):
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(begin())
    assert resets(server, sent) == [reset]
    if reset[0] == 1:
        assert server.calls.started[0].was_reset


def test_unknown_frame_types_and_flags_are_ignored():
    server = Server().handshake()
    sent = (
        frame(0xEE, 0xFF, 1, b"x" * 1000)
        + begin()
        + frame(0x77, 0, 1)
        + frame(DATA, END_STREAM | 0xF2, 1, b"body")
    )
    assert resets(server, sent) == []
    assert server.calls.started[0].body == b"body"


def test_late_frames_of_a_closed_stream_are_ignored():
    server = Server().handshake()
    server.deliver(begin() + body(b"one"))
    assert resets(server, begin()) == [(1, STREAM_CLOSED)]
    assert (
        resets(
            server, frame(RST_STREAM, 0, 1, number(CANCEL)) + frame(WINDOW_UPDATE, 0, 1, number(1))
        )
        == []
    )


def test_an_early_response_closes_the_stream():
    server = Server().handshake()
    server.deliver(begin())
    call = server.calls.started[0]
    call.stream.send(None, (), b"")
    assert [each[:3] for each in server.frames()] == [
        (HEADERS, END_HEADERS | END_STREAM, 1),
        (RST_STREAM, 0, 1),
    ]
    assert not server.connection.streams
    assert call.stream.send(None, (b"more",), None)
    assert server.frames() == []


def test_trailers_of_a_request_end_it():
    server = Server().handshake()
    server.deliver(
        begin() + body(b"one", ended=False) + begin(1, encode([(b"checksum", b"1")]), ended=True)
    )
    assert server.calls.started[0].ended
    assert server.calls.started[0].body == b"one"


def test_padding_counts_for_flow_control():
    limits = Http2Limits(stream_window=1000, window=70_000)
    server = Server(on_end=lambda _call: None, limits=limits).handshake()
    server.deliver(begin() + frame(DATA, PADDED, 1, bytes((200,)) + b"body" + bytes(200)))
    assert server.calls.started[0].body == b"body"
    padded = frame(DATA, PADDED, 1, bytes((250,)) + bytes(250))
    windows = of_kind(WINDOW_UPDATE, server.frames(padded + padded))
    assert [(stream, int.from_bytes(payload, "big")) for _, _, stream, payload in windows] == [
        (1, 707)
    ]


def test_exceeding_the_stream_window_resets_the_stream():
    server = Server(on_end=lambda _call: None, limits=Http2Limits(stream_window=1000)).handshake()
    server.calls.holds_data = True
    assert resets(server, begin() + body(bytes(1000), ended=False) + body(b"x")) == [
        (1, FLOW_CONTROL_ERROR)
    ]


def test_exceeding_the_connection_window_ends_the_connection():
    server = Server(limits=Http2Limits(stream_window=200_000, window=100_000)).handshake()
    assert ends_with(server, begin() + body(bytes(100_001)), FLOW_CONTROL_ERROR)


@pytest.mark.parametrize("given_up", [False, True])
def test_stalled_calls_do_not_block_others(given_up):
    server = Server(
        on_end=lambda _call: None, limits=Http2Limits(stream_window=100_000, window=100_000)
    ).handshake()
    server.calls.holds_data = True
    allowed = 100_000
    for stream in range(1, 41, 2):
        allowed -= 90_000
        assert allowed >= 0
        sent = begin(stream) + body(bytes(90_000), stream, ended=False)
        sent += frame(RST_STREAM, 0, stream, number(CANCEL)) if given_up else b""
        windows = of_kind(WINDOW_UPDATE, server.frames(sent))
        assert {at for _, _, at, _ in windows} == {0}
        allowed += sum(int.from_bytes(payload, "big") for *_, payload in windows)
    assert not server.connection.over
    assert len(server.calls.started) == 20


def test_streams_above_the_limit_are_refused():
    server = Server(limits=Http2Limits(streams=2)).handshake()
    assert resets(server, begin(1) + begin(3) + begin(5)) == [(5, REFUSED_STREAM)]
    assert resets(server, body(b"", 1)) == []
    assert resets(server, begin(7) + body(b"", 7)) == []
    assert [call.stream.number for call in server.calls.started] == [1, 3, 7]


FLOODS = {
    "resets": lambda at: b"".join(
        [begin(stream) + frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in range(40 * at + 1, 40 * at + 41, 2)]
    ),
    "pings": lambda _at: frame(PING, 0, 0, bytes(8)),
    "settings": lambda _at: frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 1)),
    "empty data": lambda at: (begin(1) if at == 0 else b"") + frame(DATA, 0, 1),
    "priorities": lambda at: frame(PRIORITY, 0, 2 * at + 1, bytes(5)),
    "unknown frames": lambda _at: frame(0x99),
    "goaways": lambda _at: frame(GOAWAY, 0, 0, bytes(8)),
    "resets caused by errors": lambda at: begin(2 * at + 1) + frame(WINDOW_UPDATE, 0, 2 * at + 1, number(0)),
    "invalid heads": lambda at: begin(2 * at + 1, b""),
    "continuations": lambda at: frame(HEADERS, 0, 1, BLOCK) if at == 0 else frame(CONTINUATION, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_the_connection(flood):
    server = Server(rules=PingRules(strikes=0)).handshake()
    sent = b"".join([FLOODS[flood](at) for at in range(900)])
    server.deliver(sent)
    assert not server.connection.over
    assert ends_with(
        server, b"".join([FLOODS[flood](at) for at in range(900, 1200)]), ENHANCE_YOUR_CALM
    )
    assert not server.connection.streams


def test_occasional_resets_are_accepted():
    server = Server().handshake()
    for at in range(5_000):
        server.deliver(FLOODS["resets"](at))
        server.now += 0.02
    assert not server.connection.over


def test_all_calls_may_be_cancelled_at_once():
    server = Server(limits=Http2Limits(streams=10_000)).handshake()
    streams = range(1, 20_001, 2)
    server.deliver(b"".join(map(begin, streams)))
    assert (
        resets(
            server, b"".join([frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in streams])
        )
        == []
    )


def test_streams_after_goaway_are_not_in_a_later_one():
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(begin(1))
    server.connection.refuse_new_calls()
    output = server.frames(begin(3) + frame(DATA, 0, 0, b"x"))
    assert [payload[:4] for *_, payload in of_kind(GOAWAY, output)] == [number(1), number(1)]


def test_endless_header_blocks_end_the_connection():
    server = Server().handshake()
    server.deliver(frame(HEADERS, 0, 1, BLOCK))
    parts = [frame(CONTINUATION, 0, 1, bytes(16_000))] * 20
    assert ends_with(server, b"".join(parts), ENHANCE_YOUR_CALM)


def test_a_small_block_with_a_huge_list_ends_the_connection():
    server = Server().handshake()
    server.deliver(begin(1, BLOCK + b"\x40\x01x\x7f\x81\x1e" + b"y" * 3968))
    assert ends_with(server, begin(3, BLOCK + b"\xbe" * 1000), ENHANCE_YOUR_CALM)


def test_pings_during_responses_are_accepted():
    server = Server().handshake()
    for at in range(5_000):
        server.deliver(begin(2 * at + 1) + body(b"x", 2 * at + 1) + frame(PING, 0, 0, bytes(8)))
    assert not server.connection.over


def test_pings_during_one_large_response_are_accepted():
    server = Server(
        on_end=lambda call: call.stream.send(b"", (bytes(50_000_000),), b"")
    ).handshake()
    server.deliver(
        frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 2**31 - 1)) + begin(ended=True)
    )
    for _ in range(3_000):
        server.deliver(frame(WINDOW_UPDATE, 0, 0, number(16_384)) + frame(PING, 0, 0, bytes(8)))
    assert not server.connection.over


def test_pings_without_calls_are_strikes():
    server = Server().handshake()
    assert ends_with(server, frame(PING, 0, 0, bytes(8)) * 4, ENHANCE_YOUR_CALM)


def test_responses_are_not_prepared_for_a_client_that_does_not_read():
    server = Server(on_end=lambda call: call.stream.send(b"", (b"z" * 5_000_000,), b"")).handshake()
    server.deliver(frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 2**31 - 1)))
    server.deliver(frame(WINDOW_UPDATE, 0, 0, number(2**30)))
    server.connection.sender.open = False
    output = server.deliver(b"".join([begin(stream, ended=True) for stream in range(1, 101, 2)]))
    assert len(output) < 1000
    server.connection.sender.open = True
    server.connection.sender.fill_output()
    ready = sum(map(len, server.connection.sender.take()))
    assert ready < 2 * 1024 * 1024
    server.connection.sender.fill_output()
    assert ready + len(server.take_output()) > 250_000_000


class CountingDict(dict):
    """Counts how often its values are iterated."""

    iterations = 0

    def values(self):
        self.iterations += 1
        return super().values()


def test_repeated_window_settings_in_one_frame_are_applied_once():
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(b"".join([begin(stream) for stream in range(1, 21, 2)]))
    streams = server.connection.streams = CountingDict(server.connection.streams)
    flood = b"".join([setting(codes.INITIAL_WINDOW_SIZE, size) for size in range(1000, 1200)])
    server.deliver(frame(SETTINGS, 0, 0, flood))
    assert [stream.window for stream in dict(streams).values()] == [1199] * 10
    assert streams.iterations == 1
    server.deliver(frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 1199)))
    assert streams.iterations == 1


def test_changing_the_initial_window_is_charged_per_stream():
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(b"".join([begin(stream) for stream in range(1, 20_001, 2)]))
    changes = [
        frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, size))
        for size in range(1000, 1120)
    ]
    server.deliver(b"".join(changes[:60]))
    assert not server.connection.over
    assert ends_with(server, b"".join(changes[60:]), ENHANCE_YOUR_CALM)


def test_an_acknowledgement_instead_of_settings_ends_the_connection():
    assert ends_with(Server(), PREFACE + frame(SETTINGS, ACK), PROTOCOL_ERROR)


def test_a_padded_frame_without_payload_ends_the_connection():
    server = Server().handshake()
    server.deliver(begin())
    assert ends_with(server, frame(DATA, PADDED, 1), FRAME_SIZE_ERROR)


def test_data_after_the_end_of_a_stream_is_refused():
    waiting = Server(on_end=lambda _call: None).handshake()
    waiting.deliver(begin(ended=True))
    assert resets(waiting, body(b"more")) == [(1, STREAM_CLOSED)]
    read_response = Server().handshake()
    read_response.deliver(begin() + body(b"one"))
    assert resets(read_response, body(b"two", ended=False)) == [(1, STREAM_CLOSED)]


def test_data_after_a_reset_by_the_client_is_refused():
    server = Server().handshake()
    server.deliver(begin() + frame(RST_STREAM, 0, 1, number(CANCEL)))
    assert resets(server, body(b"more")) == [(1, STREAM_CLOSED)]


def test_the_rest_of_a_body_after_an_early_response_is_ignored():
    server = Server().handshake()
    server.deliver(begin())
    server.calls.started[0].stream.send(None, (), b"")
    server.take_output()
    assert resets(server, body(b"x" * 16_000, ended=False) * 1_000) == []
    assert resets(server, begin(1, encode([(b"checksum", b"1")]), ended=True)) == []


def test_a_new_stream_with_a_lower_number_ends_the_connection():
    server = Server().handshake()
    server.deliver(begin(5) + body(b"one", 5))
    assert ends_with(server, begin(3), PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "flood",
    [
        frame(SETTINGS, ACK),
        frame(PING, ACK, 0, b"unknown."),
        frame(WINDOW_UPDATE, 0, 0, number(1)),
        frame(WINDOW_UPDATE, 0, 1, number(1)),
        body(b"late", 1, ended=False),
        frame(CONTINUATION, 0, 5, b"\x82"),
    ],
    ids=[
        "settings ack",
        "ping ack",
        "window",
        "window of a closed stream",
        "data of a closed stream",
        "continuation",
    ],
)
def test_floods_of_cheap_frames_end_the_connection(flood):
    server = Server().handshake()
    server.deliver(begin() + body(b"one"))
    if flood[3] == CONTINUATION:
        server.deliver(frame(HEADERS, 0, 5, b"\x82"))
    server.deliver(flood * 100)
    assert not server.connection.over
    assert ends_with(server, flood * 25_000, ENHANCE_YOUR_CALM)


def test_a_flood_of_data_after_an_early_response_ends_the_connection():
    server = Server().handshake()
    server.deliver(begin())
    server.calls.started[0].stream.send(None, (), b"")
    server.take_output()
    assert ends_with(server, body(b"", 1, ended=True) * 25_000, ENHANCE_YOUR_CALM)


def test_a_flood_of_calls_without_a_body_ends_the_connection():
    server = Server().handshake()
    numbers = range(1, 6_001, 2)
    for stream in numbers:
        server.deliver(begin(stream) + body(b"one", stream))
    assert not server.connection.over
    other = Server().handshake()
    assert ends_with(
        other, b"".join([begin(stream, ended=True) for stream in numbers]), ENHANCE_YOUR_CALM
    )


def test_window_updates_for_responses_are_accepted():
    server = Server().handshake()
    for stream in range(1, 2_001, 2):
        server.deliver(
            begin(stream) + body(b"one", stream) + frame(WINDOW_UPDATE, 0, 0, number(1)) * 20
        )
    assert not server.connection.over


def test_one_frame_with_very_many_settings_ends_the_connection():
    flood = b"".join([setting(codes.HEADER_TABLE_SIZE, 4096)] * 43_000)
    assert ends_with(Server().handshake(), frame(SETTINGS, 0, 0, flood), ENHANCE_YOUR_CALM)


def test_a_flood_of_large_header_lists_ends_the_connection():
    server = Server().handshake()
    block = encode([*REQUEST, (b"large", b"\0" * 200_000)])  # not shortened by Huffman coding
    for stream in range(1, 7, 2):
        server.deliver(begin(stream, block))
    assert len(server.calls.refused) == 3
    assert ends_with(
        server, b"".join([begin(stream, block) for stream in range(7, 41, 2)]), ENHANCE_YOUR_CALM
    )


PIECES = st.one_of(
    st.binary(max_size=40),
    st.builds(
        frame, st.integers(0, 11), st.integers(0, 255), st.integers(0, 9), st.binary(max_size=30)
    ),
    st.builds(
        begin,
        st.sampled_from([1, 3, 5, 7]),
        st.sampled_from([BLOCK, b"", b"\x82\x86\x84"]),
        st.booleans(),
    ),
    st.builds(body, st.binary(max_size=50), st.sampled_from([1, 3, 5, 7]), st.booleans()),
    st.builds(
        frame,
        st.just(WINDOW_UPDATE),
        st.just(0),
        st.integers(0, 5),
        st.integers(0, 2**31 - 1).map(number),
    ),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.integers(1, 60), st.booleans())
@example(frame(DATA, PADDED, 1, b"\0"), 1, False)
def test_arbitrary_input_is_handled(sent, cut, body_buffer):
    server = Server().handshake()
    if body_buffer:
        server.calls.body_buffer = bytearray(7)
    at = 0
    while at < len(sent):
        view = server.connection.read_buffer()
        if view is not None:
            count = min(len(view), len(sent) - at)
            view[:count] = sent[at : at + count]
            server.connection.read_buffer_updated(count)
            at += count
        else:
            server.connection.receive(memoryview(sent)[at : at + cut])
            at += cut
        server.frames()
    for call in server.calls.started:
        assert call.was_reset or call.ended or call.stream.number in server.connection.streams
    server.connection.reset_calls()
    assert not server.connection.streams
