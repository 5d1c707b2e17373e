from __future__ import annotations

import gc
import weakref

import pytest

from tritonpy_http2.codes import DATA, PROTOCOL_ERROR, RST_STREAM
from tritonpy_http2.encode import encode

from .raw_client import REQUEST, TRAILERS, Server, begin, body, frame, of_kind


def refuse(call):
    """Respond while the call starts."""
    call.stream.send(None, (), TRAILERS)


@pytest.fixture(autouse=True)
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "sent",
    [
        begin() + body(b"answered"),
        begin(ended=True),
        begin() + body(b"reset", ended=False) + frame(RST_STREAM, 0, 1, bytes(4)),
        begin() + body(b"refused", ended=False) + begin(),
        begin() + body(b"lost", ended=False) + frame(RST_STREAM, 0, 3, bytes(4)),
    ],
    ids=["answered", "answered at once", "reset", "refused", "lost"],
)
def test_calls_are_freed_without_garbage_collection(sent):
    server = Server(on_end=refuse).handshake()
    kept = []
    begin_call = server.calls.begin

    def begin(*arguments):
        call = begin_call(*arguments)
        server.calls.started.clear()
        kept.append(weakref.ref(call))
        return call

    server.calls.begin = begin
    server.deliver(sent)
    assert [call() for call in kept] == [None]


REFUSED = [PROTOCOL_ERROR.to_bytes(4, "big")]


def announcing(*lengths):
    return begin(1, encode([*REQUEST, *[(b"content-length", length) for length in lengths]]))


def resets(server, sent):
    return [payload for *_, payload in of_kind(RST_STREAM, server.frames(sent))]


@pytest.mark.parametrize(
    "parts",
    [
        [body(b"hello")],
        [body(b"he", ended=False), body(b"llo")],
        [body(b"hello", ended=False), body(b"")],
    ],
    ids=["one", "two", "the end alone"],
)
def test_a_body_of_the_declared_length_is_passed_on(parts):
    server = Server().handshake()
    output = server.frames(announcing(b"5", b"5") + b"".join(parts))
    assert [payload for *_, payload in of_kind(DATA, output)] == [b"hello"]


@pytest.mark.parametrize(
    "parts",
    [
        [body(b"hell")],
        [body(b"hello!")],
        [body(b"hello!", ended=False)],
        [body(b"hel", ended=False), body(b"")],
    ],
    ids=["short", "long", "long and not ended", "short with an end alone"],
)
def test_a_body_of_another_length_resets_its_stream(parts):
    server = Server().handshake()
    assert resets(server, announcing(b"5") + b"".join(parts)) == REFUSED
    (call,) = server.calls.started
    assert call.was_reset
    assert not call.ended
    assert not server.connection.streams
    assert not server.connection.over


def test_a_body_in_a_buffer_is_checked():
    server = Server().handshake()
    server.calls.body_buffer = bytearray(10)
    server.deliver(announcing(b"5") + frame(DATA, 1, 1, b"hello!")[:9])
    body_buffer = server.connection.read_buffer()
    body_buffer[:6] = b"hello!"
    server.connection.read_buffer_updated(6)
    assert [payload for *_, payload in of_kind(RST_STREAM, server.frames())] == REFUSED
    assert server.calls.started[0].was_reset


@pytest.mark.parametrize("lengths", [(b"five",), (b"-5",), (b"",), (b"5", b"6"), (b"9" * 5000,)])
def test_an_invalid_content_length_is_refused(lengths):
    server = Server().handshake()
    assert resets(server, announcing(*lengths)) == REFUSED
    assert not server.calls.started


def test_a_missing_body_is_refused():
    server = Server().handshake()
    assert (
        resets(server, begin(1, encode([*REQUEST, (b"content-length", b"5")]), ended=True))
        == REFUSED
    )
    assert resets(server, begin(3, encode([*REQUEST, (b"content-length", b"0")]), ended=True)) == []


def test_resume_is_passed_to_the_receiver():
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(announcing(b"5") + body(b"hello"))
    (call,) = server.calls.started
    server.connection.streams[1].receiver.resume()
    assert call.resumed == 1
