from __future__ import annotations

import pytest

from tritonpy_frontend_h2.http2.codes import DATA, PROTOCOL_ERROR, RST_STREAM
from tritonpy_frontend_h2.http2.encode import encode

from .talk import REQUEST, Server, begin, body, frame, of_kind

REFUSED = [PROTOCOL_ERROR.to_bytes(4, "big")]


def announcing(*lengths):
    return begin(1, encode([*REQUEST, *[(b"content-length", length) for length in lengths]]))


def resets(server, sent):
    return [payload for *_, payload in of_kind(RST_STREAM, server.frames(sent))]


@pytest.mark.parametrize(
    "parts",
    [[body(b"hello")], [body(b"he", ended=False), body(b"llo")], [body(b"hello", ended=False), body(b"")]],
    ids=["one", "two", "the end alone"],
)
def test_a_body_as_long_as_its_head_says_is_passed_on(parts):
    server = Server().hello()
    said = server.frames(announcing(b"5", b"5") + b"".join(parts))
    assert [payload for *_, payload in of_kind(DATA, said)] == [b"hello"]


@pytest.mark.parametrize(
    "parts",
    [[body(b"hell")], [body(b"hello!")], [body(b"hello!", ended=False)], [body(b"hel", ended=False), body(b"")]],
    ids=["short", "long", "long and not ended", "short with an end alone"],
)
def test_a_body_of_another_length_resets_its_stream(parts):
    server = Server().hello()
    assert resets(server, announcing(b"5") + b"".join(parts)) == REFUSED
    (call,) = server.calls.begun
    assert call.gone
    assert not call.ended
    assert not server.connection.streams
    assert not server.connection.over


def test_a_body_that_is_read_to_its_place_is_measured_too():
    server = Server().hello()
    server.calls.room = bytearray(10)
    server.say(announcing(b"5") + frame(DATA, 1, 1, b"hello!")[:9])
    room = server.connection.room_for_body()
    room[:6] = b"hello!"
    server.connection.received_to_room(6)
    assert [payload for *_, payload in of_kind(RST_STREAM, server.frames())] == REFUSED
    assert server.calls.begun[0].gone


@pytest.mark.parametrize("lengths", [(b"five",), (b"-5",), (b"",), (b"5", b"6"), (b"9" * 5000,)])
def test_a_head_without_one_length_is_none(lengths):
    server = Server().hello()
    assert resets(server, announcing(*lengths)) == REFUSED
    assert not server.calls.begun


def test_a_head_that_announces_a_body_and_has_none_is_refused():
    server = Server().hello()
    assert resets(server, begin(1, encode([*REQUEST, (b"content-length", b"5")]), ended=True)) == REFUSED
    assert resets(server, begin(3, encode([*REQUEST, (b"content-length", b"0")]), ended=True)) == []


def test_a_client_that_may_go_on_is_told_through():
    server = Server(on_end=lambda _call: None).hello()
    server.say(announcing(b"5") + body(b"hello"))
    (call,) = server.calls.begun
    server.connection.streams[1].receiver.resume()
    assert call.resumed == 1
