from __future__ import annotations

import pytest

from tritonpy_frontend_h2.http2 import codes
from tritonpy_frontend_h2.http2.calls import NO_TRAILERS
from tritonpy_frontend_h2.http2.codes import DATA, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE

from .talk import ANSWER, TRAILERS, Server, begin, cut, frame, of_kind

WIDE = frame(SETTINGS, 0, 0, codes.INITIAL_WINDOW_SIZE.to_bytes(2, "big") + (2**30).to_bytes(4, "big")) + frame(
    WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big")
)


def calling(count=1, wide=True):
    """Return a server and the streams of some calls that wait for their answers."""
    server = Server(on_end=lambda _call: None).hello()
    server.say((WIDE if wide else b"") + b"".join([begin(2 * at + 1, ended=True) for at in range(count)]))
    return server, [call.stream for call in server.calls.begun]


def test_an_answer_is_one_piece():
    server, (stream,) = calling()
    assert stream.send(ANSWER, (b"12345", b"message"), TRAILERS)
    (piece,) = server.connection.sender.take()
    assert [(kind, payload) for kind, _, _, payload in cut(piece)] == [
        (HEADERS, ANSWER), (DATA, b"12345message"), (HEADERS, TRAILERS)
    ]  # fmt: skip


def test_somebody_is_woken_once_for_all_answers_of_a_turn():
    server, streams = calling(10)
    before = server.wakes
    for stream in streams:
        stream.send(ANSWER, (b"x",), TRAILERS)
    assert server.wakes == before + 1
    assert len(server.connection.sender.take()) == 1


def sent(server, message):
    """Send `message`, and return what is written for it."""
    (stream,) = server.connection.streams.values()
    stream.send(ANSWER, (b"12345", message), TRAILERS)
    written, sender = [], server.connection.sender
    while pieces := sender.take():
        written += pieces
        sender.go_on()
    return written


def test_a_large_message_in_large_frames_is_not_copied():
    server, _ = calling()
    server.connection.sender.frame_limit = 1024 * 1024
    message = bytes(10_000_000)
    views = [piece for piece in sent(server, message) if isinstance(piece, memoryview)]
    assert all(view.obj is message for view in views)
    assert sum(map(len, views)) > 9_900_000


def test_small_frames_of_a_large_message_are_written_together():
    server, _ = calling()
    written = sent(server, bytes(10_000_000))
    assert len(written) == 10
    assert sum(map(len, written)) > 10_000_000


@pytest.mark.parametrize("pieces", [(), (b"",), (b"", b"")])
def test_an_empty_body_is_no_frame(pieces):
    server, (stream,) = calling()
    stream.send(ANSWER, pieces, TRAILERS)
    assert of_kind(DATA, server.frames()) == []


def test_a_receiver_that_was_told_to_wait_hears_when_it_may_go_on():
    server, (stream,) = calling(wide=False)
    call = server.calls.begun[0]
    assert stream.send(ANSWER, (b"x" * 65_535,), None)
    assert not stream.send(None, (b"y",), None)
    assert not stream.send(None, (b"z",), None)
    assert call.resumed == 0
    said = server.frames(WIDE)
    assert b"".join(payload for *_, payload in of_kind(DATA, said))[-2:] == b"yz"
    assert call.resumed == 1


def test_what_is_on_its_way_at_once_needs_no_resume():
    server, (stream,) = calling()
    assert stream.send(ANSWER, (b"x" * 500_000,), None)
    server.said()
    assert server.calls.begun[0].resumed == 0


def test_an_answer_that_waits_is_dropped_with_its_call():
    server, (stream,) = calling(wide=False)
    stream.send(ANSWER, (b"x" * 1_000_000,), TRAILERS)
    server.said()
    stream.reset(codes.CANCEL)
    assert of_kind(DATA, server.frames(WIDE)) == []


def test_trailers_wait_for_the_body():
    server, (stream,) = calling(wide=False)
    stream.send(ANSWER, (b"x" * 65_536,), None)
    stream.send(None, (), TRAILERS)
    assert len(of_kind(HEADERS, server.frames())) == 1
    assert of_kind(HEADERS, server.frames(WIDE))[0][3] == TRAILERS


def test_an_answer_in_resume_is_sent():
    server, (stream,) = calling(wide=False)
    call = server.calls.begun[0]
    call.resume = lambda: stream.send(None, (b"last",), TRAILERS)
    stream.send(ANSWER, (b"x" * 65_536,), None)
    stream.send(None, (b"y",), None)
    said = server.frames() + server.frames(WIDE)
    assert b"".join(payload for *_, payload in of_kind(DATA, said)) == b"x" * 65_536 + b"ylast"
    assert not server.connection.streams


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_a_body_without_trailers_ends_with_an_empty_data_frame(size):
    server = Server(on_end=lambda call: call.stream.send(ANSWER, (bytes(size),), NO_TRAILERS)).hello()
    sent = server.frames(begin(ended=True))
    credit = (50_000).to_bytes(4, "big")
    while server.connection.streams:
        sent += server.frames(frame(WINDOW_UPDATE, 0, 0, credit) + frame(WINDOW_UPDATE, 0, 1, credit))
    found = of_kind(DATA, sent)
    assert sum(len(payload) for *_, payload in found) == size
    assert (found[-1][1], found[-1][3]) == (END_STREAM, b"")
    assert all(flags == 0 for _, flags, *_ in found[:-1])
