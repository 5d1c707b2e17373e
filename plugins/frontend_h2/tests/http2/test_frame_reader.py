from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_h2.http2.codes import DATA, END_STREAM, HEADERS, PADDED, PING
from tritonpy_frontend_h2.http2.frame_reader import FrameReader, FrameSink

from .talk import HELLO, frame


class Notes(FrameSink):
    """Puts down what it is given, parts of one body together."""

    def __init__(self):
        self.seen = []
        self.bodies = {}
        self.into = None

    def headers(self, flags, stream, payload):
        self.seen.append((HEADERS, flags, stream, payload))

    def data(self, stream, part, ended):
        self.bodies[stream] = self.bodies.get(stream, b"") + bytes(part)
        if ended:
            self.seen.append((DATA, stream, self.bodies.pop(stream)))

    def padding(self, stream, count):
        self.seen.append(("padding", stream, count))

    def frame(self, kind, flags, stream, payload):
        self.seen.append((kind, flags, stream, payload))

    def room(self, stream):
        return self.into

    def filled(self, stream, count, ended):
        self.data(stream, self.into[:count], ended)


SENT = (
    HELLO
    + frame(HEADERS, 4, 1, b"a block")
    + frame(DATA, 0, 1, b"one, ")
    + frame(DATA, PADDED, 1, b"\4two, xxxx")
    + frame(DATA, 0, 1)
    + frame(DATA, END_STREAM | PADDED, 1, b"\0three")
    + frame(PING, 0, 0, b"12345678")
    + frame(DATA, END_STREAM | PADDED, 3, b"\2xx")
    + frame(0xEE, 0, 3, b"unknown")
)
SEEN = [
    (4, 0, 0, b""),
    (HEADERS, 4, 1, b"a block"),
    ("padding", 1, 5),
    ("padding", 1, 1),
    (DATA, 1, b"one, two, three"),
    (PING, 0, 0, b"12345678"),
    ("padding", 3, 3),
    (DATA, 3, b""),
    (0xEE, 0, 3, b"unknown"),
]


@given(st.lists(st.integers(1, 60), min_size=1))
def test_it_means_the_same_however_it_is_cut(cuts):
    notes = Notes()
    reader, at = FrameReader(notes, 1000, 100), 0
    while at < len(SENT):
        for cut in cuts:
            reader.feed(memoryview(SENT)[at : at + cut])
            at += cut
    assert notes.seen == SEEN


@given(st.integers(1, 60), st.integers(1, 9))
def test_it_means_the_same_where_bodies_are_read_to_a_room(cut, size):
    notes, at = Notes(), 0
    notes.into = memoryview(bytearray(size))
    reader = FrameReader(notes, 1000, 100)
    while at < len(SENT):
        room = reader.room()
        if room is None:
            reader.feed(SENT[at : at + cut])
            at += cut
        else:
            assert 0 < len(room) <= size
            part = SENT[at : at + len(room)]
            room[: len(part)] = part
            reader.filled(len(part))
            at += len(part)
    assert notes.seen == SEEN


def test_there_is_no_room_but_in_a_body():
    notes = Notes()
    notes.into = memoryview(bytearray(10))
    reader = FrameReader(notes, 1000, 100)
    assert reader.room() is None
    reader.feed(HELLO + frame(DATA, 0, 1, b"12345678")[:12])
    assert len(reader.room()) == 5
    notes.into = memoryview(b"")
    assert reader.room() is None
