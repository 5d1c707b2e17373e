"""Clients that break the rules, or keep them in bad faith: raw bytes, and what the server says to them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tritonpy_frontend_h2.http2 import codes
from tritonpy_frontend_h2.http2.codes import (
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
from tritonpy_frontend_h2.http2.encode import encode
from tritonpy_frontend_h2.http2.limits import Limits
from tritonpy_frontend_h2.http2.ping_strikes import PingRules
from tritonpy_frontend_h2.http2.sender import Sender

from .talk import BLOCK, HELLO, REQUEST, Server, begin, body, frame, of_kind


def number(value):
    return value.to_bytes(4, "big")


def setting(name, value):
    return name.to_bytes(2, "big") + number(value)


def ends_with(server, sent, code):
    """Say whether bytes end the connection with a GOAWAY of that code."""
    goaways = of_kind(GOAWAY, server.frames(sent))
    assert server.connection.finished
    return [int.from_bytes(payload[4:8], "big") for *_, payload in goaways] == [code]


def resets(server, sent):
    """Return stream and code of each RST_STREAM that bytes bring; the connection goes on."""
    found = of_kind(RST_STREAM, server.frames(sent))
    assert not server.connection.over
    assert server.frames(frame(PING, 0, 0, b"still up")) == [(PING, ACK, 0, b"still up")]
    return [(stream, int.from_bytes(payload, "big")) for _, _, stream, payload in found]


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nXX", b"P" * 24, PREFACE + frame(PING, 0, 0, bytes(8))],
)  # fmt: skip
def test_who_does_not_begin_with_http_2_is_let_go(sent):
    assert ends_with(Server(), sent, PROTOCOL_ERROR)


def test_a_preface_may_come_byte_by_byte():
    server = Server()
    for byte in HELLO + begin() + body(b"hello"):
        server.connection.receive(bytes((byte,)))
    assert server.calls.begun[0].body == b"hello"


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
def test_what_may_not_be_ends_the_connection(sent, code):
    server = Server().hello()
    server.say(begin())
    assert ends_with(server, sent + begin(5), code)
    assert server.calls.begun[0].gone
    assert len(server.calls.begun) == 1


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
def test_what_concerns_one_stream_resets_it_alone(sent, reset):
    server = Server(on_end=lambda _call: None).hello()
    server.say(begin())
    assert resets(server, sent) == [reset]
    if reset[0] == 1:
        assert server.calls.begun[0].gone


def test_frames_of_kinds_and_flags_that_are_unknown_are_ignored():
    server = Server().hello()
    sent = frame(0xEE, 0xFF, 1, b"x" * 1000) + begin() + frame(0x77, 0, 1) + frame(DATA, END_STREAM | 0xF2, 1, b"body")
    assert resets(server, sent) == []
    assert server.calls.begun[0].body == b"body"


def test_what_comes_late_for_a_stream_that_is_over_means_nothing():
    server = Server().hello()
    server.say(begin() + body(b"one"))
    assert resets(server, begin()) == [(1, STREAM_CLOSED)]
    assert resets(server, frame(RST_STREAM, 0, 1, number(CANCEL)) + frame(WINDOW_UPDATE, 0, 1, number(1))) == []


def test_an_answer_before_the_end_of_the_request_frees_the_stream():
    server = Server().hello()
    server.say(begin())
    call = server.calls.begun[0]
    call.stream.send(None, (), b"")
    assert [each[:3] for each in server.frames()] == [(HEADERS, END_HEADERS | END_STREAM, 1), (RST_STREAM, 0, 1)]
    assert not server.connection.streams
    assert call.stream.send(None, (b"more",), None)
    assert server.frames() == []


def test_trailers_of_a_request_end_it():
    server = Server().hello()
    server.say(begin() + body(b"one", ended=False) + begin(1, encode([(b"checksum", b"1")]), ended=True))
    assert server.calls.begun[0].ended
    assert server.calls.begun[0].body == b"one"


def test_padding_is_no_body_but_counts():
    limits = Limits(stream_window=1000, window=70_000)
    server = Server(on_end=lambda _call: None, limits=limits).hello()
    server.say(begin() + frame(DATA, PADDED, 1, bytes((200,)) + b"body" + bytes(200)))
    assert server.calls.begun[0].body == b"body"
    padded = frame(DATA, PADDED, 1, bytes((250,)) + bytes(250))
    windows = of_kind(WINDOW_UPDATE, server.frames(padded + padded))
    assert [(stream, int.from_bytes(payload, "big")) for _, _, stream, payload in windows] == [(1, 707)]


def test_more_than_a_stream_s_window_resets_it():
    server = Server(on_end=lambda _call: None, limits=Limits(stream_window=1000)).hello()
    server.calls.holds = True
    assert resets(server, begin() + body(bytes(1000), ended=False) + body(b"x")) == [(1, FLOW_CONTROL_ERROR)]


def test_more_than_the_connection_s_window_ends_it():
    server = Server(limits=Limits(stream_window=200_000, window=100_000)).hello()
    assert ends_with(server, begin() + body(bytes(100_001)), FLOW_CONTROL_ERROR)


@pytest.mark.parametrize("given_up", [False, True])
def test_calls_that_take_nothing_hold_up_no_others(given_up):
    server = Server(on_end=lambda _call: None, limits=Limits(stream_window=100_000, window=100_000)).hello()
    server.calls.holds = True
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
    assert len(server.calls.begun) == 20


def test_more_streams_at_once_than_are_allowed_are_refused():
    server = Server(limits=Limits(streams=2)).hello()
    assert resets(server, begin(1) + begin(3) + begin(5)) == [(5, REFUSED_STREAM)]
    assert resets(server, body(b"", 1)) == []
    assert resets(server, begin(7) + body(b"", 7)) == []
    assert [call.stream.number for call in server.calls.begun] == [1, 3, 7]


FLOODS = {
    "resets": lambda at: b"".join(
        [begin(stream) + frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in range(40 * at + 1, 40 * at + 41, 2)]
    ),
    "pings": lambda _at: frame(PING, 0, 0, bytes(8)),
    "settings": lambda _at: frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 1)),
    "empty data": lambda at: (begin(1) if at == 0 else b"") + frame(DATA, 0, 1),
    "priorities": lambda at: frame(PRIORITY, 0, 2 * at + 1, bytes(5)),
    "unknown frames": lambda _at: frame(0x99),
    "farewells": lambda _at: frame(GOAWAY, 0, 0, bytes(8)),
    "resets that the server is made to send": lambda at: begin(2 * at + 1) + frame(WINDOW_UPDATE, 0, 2 * at + 1, number(0)),
    "heads that are none": lambda at: begin(2 * at + 1, b""),
    "continuations": lambda at: frame(HEADERS, 0, 1, BLOCK) if at == 0 else frame(CONTINUATION, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_the_connection(flood):
    server = Server(rules=PingRules(strikes=0)).hello()
    sent = b"".join([FLOODS[flood](at) for at in range(900)])
    server.say(sent)
    assert not server.connection.over
    assert ends_with(server, b"".join([FLOODS[flood](at) for at in range(900, 1200)]), ENHANCE_YOUR_CALM)
    assert not server.connection.streams


def test_resets_now_and_then_are_no_flood():
    server = Server().hello()
    for at in range(5_000):
        server.say(FLOODS["resets"](at))
        server.now += 0.02
    assert not server.connection.over


def test_all_calls_may_be_given_up_at_once():
    server = Server(limits=Limits(streams=10_000)).hello()
    streams = range(1, 20_001, 2)
    server.say(b"".join(map(begin, streams)))
    assert resets(server, b"".join([frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in streams])) == []


def test_streams_that_come_after_a_farewell_are_in_no_later_one():
    server = Server(on_end=lambda _call: None).hello()
    server.say(begin(1))
    server.connection.close_to_new_calls()
    said = server.frames(begin(3) + frame(DATA, 0, 0, b"x"))
    assert [payload[:4] for *_, payload in of_kind(GOAWAY, said)] == [number(1), number(1)]


def test_header_blocks_that_go_on_and_on_end_the_connection():
    server = Server().hello()
    server.say(frame(HEADERS, 0, 1, BLOCK))
    parts = [frame(CONTINUATION, 0, 1, bytes(16_000))] * 20
    assert ends_with(server, b"".join(parts), ENHANCE_YOUR_CALM)


def test_a_small_block_that_means_a_huge_list_ends_the_connection():
    server = Server().hello()
    server.say(begin(1, BLOCK + b"\x40\x01x\x7f\x81\x1e" + b"y" * 3968))
    assert ends_with(server, begin(3, BLOCK + b"\xbe" * 1000), ENHANCE_YOUR_CALM)


def test_pings_that_measure_how_fast_answers_come_are_no_flood():
    server = Server().hello()
    for at in range(5_000):
        server.say(begin(2 * at + 1) + body(b"x", 2 * at + 1) + frame(PING, 0, 0, bytes(8)))
    assert not server.connection.over


def test_pings_that_measure_how_fast_one_large_answer_comes_are_no_flood():
    server = Server(on_end=lambda call: call.stream.send(b"", (bytes(50_000_000),), b"")).hello()
    server.say(frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 2**31 - 1)) + begin(ended=True))
    for _ in range(3_000):
        server.say(frame(WINDOW_UPDATE, 0, 0, number(16_384)) + frame(PING, 0, 0, bytes(8)))
    assert not server.connection.over


def test_pings_without_calls_are_strikes():
    server = Server().hello()
    assert ends_with(server, frame(PING, 0, 0, bytes(8)) * 4, ENHANCE_YOUR_CALM)


def test_a_client_that_reads_nothing_makes_nothing_ready():
    server = Server(on_end=lambda call: call.stream.send(b"", (b"z" * 5_000_000,), b"")).hello()
    server.say(frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 2**31 - 1)))
    server.say(frame(WINDOW_UPDATE, 0, 0, number(2**30)))
    server.connection.sender.open = False
    said = server.say(b"".join([begin(stream, ended=True) for stream in range(1, 101, 2)]))
    assert len(said) < 1000
    server.connection.sender.open = True
    server.connection.sender.go_on()
    ready = sum(map(len, server.connection.sender.take()))
    assert ready < 2 * 1024 * 1024
    server.connection.sender.go_on()
    assert ready + len(server.said()) > 250_000_000


def test_a_window_that_settings_change_often_in_one_frame_costs_once(monkeypatch):
    server = Server(on_end=lambda _call: None).hello()
    server.say(b"".join([begin(stream) for stream in range(1, 21, 2)]))
    widened = []
    widen = Sender.widen
    monkeypatch.setattr(Sender, "widen", lambda self, *where: widened.append(where) or widen(self, *where))
    flood = b"".join([setting(codes.INITIAL_WINDOW_SIZE, size) for size in range(1000, 1200)])
    server.say(frame(SETTINGS, 0, 0, flood))
    assert [more for _, more in widened] == [1199 - codes.USUAL_WINDOW] * 10
    server.say(frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, 1199)))
    assert len(widened) == 10


def test_a_window_that_settings_change_again_and_again_costs_by_the_streams_that_have_it():
    server = Server(on_end=lambda _call: None).hello()
    server.say(b"".join([begin(stream) for stream in range(1, 20_001, 2)]))
    changes = [frame(SETTINGS, 0, 0, setting(codes.INITIAL_WINDOW_SIZE, size)) for size in range(1000, 1120)]
    server.say(b"".join(changes[:60]))
    assert not server.connection.over
    assert ends_with(server, b"".join(changes[60:]), ENHANCE_YOUR_CALM)


def test_the_first_settings_are_no_acknowledgement():
    assert ends_with(Server(), PREFACE + frame(SETTINGS, ACK), PROTOCOL_ERROR)


def test_a_padded_frame_without_a_payload_is_refused_at_once():
    server = Server().hello()
    server.say(begin())
    assert ends_with(server, frame(DATA, PADDED, 1), FRAME_SIZE_ERROR)


def test_data_of_a_stream_that_its_client_ended_is_refused_before_and_after_its_answer():
    waiting = Server(on_end=lambda _call: None).hello()
    waiting.say(begin(ended=True))
    assert resets(waiting, body(b"more")) == [(1, STREAM_CLOSED)]
    answered = Server().hello()
    answered.say(begin() + body(b"one"))
    assert resets(answered, body(b"two", ended=False)) == [(1, STREAM_CLOSED)]


def test_data_of_a_stream_that_its_client_reset_is_refused():
    server = Server().hello()
    server.say(begin() + frame(RST_STREAM, 0, 1, number(CANCEL)))
    assert resets(server, body(b"more")) == [(1, STREAM_CLOSED)]


def test_the_rest_of_a_body_whose_call_was_answered_early_is_ignored():
    server = Server().hello()
    server.say(begin())
    server.calls.begun[0].stream.send(None, (), b"")
    server.said()
    assert resets(server, body(b"x" * 16_000, ended=False) * 1_000) == []
    assert resets(server, begin(1, encode([(b"checksum", b"1")]), ended=True)) == []


def test_a_new_stream_with_a_lower_number_ends_the_connection():
    server = Server().hello()
    server.say(begin(5) + body(b"one", 5))
    assert ends_with(server, begin(3), PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "flood",
    [
        frame(SETTINGS, ACK),
        frame(PING, ACK, 0, b"nobody's"),
        frame(WINDOW_UPDATE, 0, 0, number(1)),
        frame(WINDOW_UPDATE, 0, 1, number(1)),
        body(b"late", 1, ended=False),
        frame(CONTINUATION, 0, 5, b"\x82"),
    ],
    ids=["settings ack", "ping ack", "window", "window of a closed stream", "data of a closed stream", "continuation"],
)
def test_frames_that_cost_nothing_before_end_the_connection_in_a_flood(flood):
    server = Server().hello()
    server.say(begin() + body(b"one"))
    if flood[3] == CONTINUATION:
        server.say(frame(HEADERS, 0, 5, b"\x82"))
    server.say(flood * 100)
    assert not server.connection.over
    assert ends_with(server, flood * 25_000, ENHANCE_YOUR_CALM)


def test_data_that_comes_late_for_early_answers_ends_the_connection_in_a_flood():
    server = Server().hello()
    server.say(begin())
    server.calls.begun[0].stream.send(None, (), b"")
    server.said()
    assert ends_with(server, body(b"", 1, ended=True) * 25_000, ENHANCE_YOUR_CALM)


def test_calls_without_a_body_end_the_connection_in_a_flood_and_others_do_not():
    server = Server().hello()
    numbers = range(1, 6_001, 2)
    for stream in numbers:
        server.say(begin(stream) + body(b"one", stream))
    assert not server.connection.over
    other = Server().hello()
    assert ends_with(other, b"".join([begin(stream, ended=True) for stream in numbers]), ENHANCE_YOUR_CALM)


def test_a_client_may_widen_its_windows_as_often_as_answers_come():
    server = Server().hello()
    for stream in range(1, 2_001, 2):
        server.say(begin(stream) + body(b"one", stream) + frame(WINDOW_UPDATE, 0, 0, number(1)) * 20)
    assert not server.connection.over


def test_one_frame_with_very_many_settings_ends_the_connection():
    flood = b"".join([setting(codes.HEADER_TABLE_SIZE, 4096)] * 43_000)
    assert ends_with(Server().hello(), frame(SETTINGS, 0, 0, flood), ENHANCE_YOUR_CALM)


def test_header_lists_that_are_too_large_end_the_connection_in_a_flood():
    server = Server().hello()
    block = encode([*REQUEST, (b"large", b"\0" * 200_000)])  # no Huffman code is shorter
    for stream in range(1, 7, 2):
        server.say(begin(stream, block))
    assert len(server.calls.refused) == 3
    assert ends_with(server, b"".join([begin(stream, block) for stream in range(7, 41, 2)]), ENHANCE_YOUR_CALM)


PIECES = st.one_of(
    st.binary(max_size=40),
    st.builds(frame, st.integers(0, 11), st.integers(0, 255), st.integers(0, 9), st.binary(max_size=30)),
    st.builds(begin, st.sampled_from([1, 3, 5, 7]), st.sampled_from([BLOCK, b"", b"\x82\x86\x84"]), st.booleans()),
    st.builds(body, st.binary(max_size=50), st.sampled_from([1, 3, 5, 7]), st.booleans()),
    st.builds(frame, st.just(WINDOW_UPDATE), st.just(0), st.integers(0, 5), st.integers(0, 2**31 - 1).map(number)),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.integers(1, 60), st.booleans())
@example(frame(DATA, PADDED, 1, b"\0"), 1, False)
def test_no_garbage_breaks_it_however_it_is_cut(sent, cut, room):
    server = Server().hello()
    if room:
        server.calls.room = bytearray(7)
    at = 0
    while at < len(sent):
        view = server.connection.room_for_body()
        if view is not None:
            count = min(len(view), len(sent) - at)
            view[:count] = sent[at : at + count]
            server.connection.received_to_room(count)
            at += count
        else:
            server.connection.receive(memoryview(sent)[at : at + cut])
            at += cut
        server.frames()
    for call in server.calls.begun:
        assert call.gone or call.ended or call.stream.number in server.connection.streams
    server.connection.lose()
    assert not server.connection.streams
