from __future__ import annotations

import pytest

from tritonpy_http2 import codes
from tritonpy_http2.calls import NO_TRAILERS
from tritonpy_http2.codes import DATA, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE

from .raw_client import RESPONSE_HEAD, TRAILERS, Server, begin, frame, of_kind, split_frames

WIDE = frame(
    SETTINGS, 0, 0, codes.INITIAL_WINDOW_SIZE.to_bytes(2, "big") + (2**30).to_bytes(4, "big")
) + frame(WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big"))


def calling(count=1, wide=True):
    """Return a server and the streams of `count` calls without response."""
    server = Server(on_end=lambda _call: None).handshake()
    server.deliver(
        (WIDE if wide else b"") + b"".join([begin(2 * at + 1, ended=True) for at in range(count)])
    )
    return server, [call.stream for call in server.calls.started]


def test_a_response_is_one_piece():
    server, (stream,) = calling()
    assert stream.send(RESPONSE_HEAD, (b"12345", b"message"), TRAILERS)
    (piece,) = server.connection.sender.take()
    assert [(kind, payload) for kind, _, _, payload in split_frames(piece)] == [
        (HEADERS, RESPONSE_HEAD), (DATA, b"12345message"), (HEADERS, TRAILERS)
    ]  # fmt: skip


def test_wake_is_called_once_per_iteration():
    server, streams = calling(10)
    before = server.wakes
    for stream in streams:
        stream.send(RESPONSE_HEAD, (b"x",), TRAILERS)
    assert server.wakes == before + 1
    assert len(server.connection.sender.take()) == 1


def sent(server, message):
    """Send `message` and return the output."""
    (stream,) = server.connection.streams.values()
    stream.send(RESPONSE_HEAD, (b"12345", message), TRAILERS)
    written, sender = [], server.connection.sender
    while pieces := sender.take():
        written += pieces
        sender.fill_output()
    return written


def test_a_large_message_in_large_frames_is_not_copied():
    server, _ = calling()
    server.connection.sender.frame_limit = 1024 * 1024
    message = bytes(10_000_000)
    views = [piece for piece in sent(server, message) if isinstance(piece, memoryview)]
    assert all(view.obj is message for view in views)
    assert sum(map(len, views)) > 9_900_000


def test_small_frames_of_a_large_message_are_joined():
    server, _ = calling()
    written = sent(server, bytes(10_000_000))
    assert len(written) == 10
    assert sum(map(len, written)) > 10_000_000


@pytest.mark.parametrize("pieces", [(), (b"",), (b"", b"")])
def test_an_empty_body_is_no_frame(pieces):
    server, (stream,) = calling()
    stream.send(RESPONSE_HEAD, pieces, TRAILERS)
    assert of_kind(DATA, server.frames()) == []


def test_a_waiting_receiver_is_resumed():
    server, (stream,) = calling(wide=False)
    call = server.calls.started[0]
    assert stream.send(RESPONSE_HEAD, (b"x" * 65_535,), None)
    assert not stream.send(None, (b"y",), None)
    assert not stream.send(None, (b"z",), None)
    assert call.resumed == 0
    output = server.frames(WIDE)
    assert b"".join(payload for *_, payload in of_kind(DATA, output))[-2:] == b"yz"
    assert call.resumed == 1


def test_data_that_is_sent_immediately_needs_no_resume():
    server, (stream,) = calling()
    assert stream.send(RESPONSE_HEAD, (b"x" * 500_000,), None)
    server.take_output()
    assert server.calls.started[0].resumed == 0


def test_a_waiting_response_is_dropped_with_its_call():
    server, (stream,) = calling(wide=False)
    stream.send(RESPONSE_HEAD, (b"x" * 1_000_000,), TRAILERS)
    server.take_output()
    stream.reset(codes.CANCEL)
    assert of_kind(DATA, server.frames(WIDE)) == []


def test_trailers_wait_for_the_body():
    server, (stream,) = calling(wide=False)
    stream.send(RESPONSE_HEAD, (b"x" * 65_536,), None)
    stream.send(None, (), TRAILERS)
    assert len(of_kind(HEADERS, server.frames())) == 1
    assert of_kind(HEADERS, server.frames(WIDE))[0][3] == TRAILERS


def test_a_response_sent_in_resume_is_delivered():
    server, (stream,) = calling(wide=False)
    call = server.calls.started[0]
    call.resume = lambda: stream.send(None, (b"last",), TRAILERS)
    stream.send(RESPONSE_HEAD, (b"x" * 65_536,), None)
    stream.send(None, (b"y",), None)
    output = server.frames() + server.frames(WIDE)
    assert b"".join(payload for *_, payload in of_kind(DATA, output)) == b"x" * 65_536 + b"ylast"
    assert not server.connection.streams


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_a_body_without_trailers_ends_with_an_empty_data_frame(size):
    server = Server(
        on_end=lambda call: call.stream.send(RESPONSE_HEAD, (bytes(size),), NO_TRAILERS)
    ).handshake()
    sent = server.frames(begin(ended=True))
    credit = (50_000).to_bytes(4, "big")
    while server.connection.streams:
        sent += server.frames(
            frame(WINDOW_UPDATE, 0, 0, credit) + frame(WINDOW_UPDATE, 0, 1, credit)
        )
    found = of_kind(DATA, sent)
    assert sum(len(payload) for *_, payload in found) == size
    assert (found[-1][1], found[-1][3]) == (END_STREAM, b"")
    assert all(flags == 0 for _, flags, *_ in found[:-1])
