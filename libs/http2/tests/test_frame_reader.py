from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_http2.codes import DATA, END_STREAM, HEADERS, PADDED, PING
from tritonpy_http2.frame_reader import Http2FrameReader, Http2FrameSink

from .raw_client import CLIENT_HELLO, frame


class RecordingSink(Http2FrameSink):
    """Records frames and joins the parts of a body."""

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

    def body_buffer(self, stream):
        return self.into

    def body_buffer_updated(self, stream, count, ended):
        self.data(stream, self.into[:count], ended)


SENT = (
    CLIENT_HELLO
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
def test_frames_are_parsed_for_any_chunks(cuts):
    sink = RecordingSink()
    reader, at = Http2FrameReader(sink, 1000, 100), 0
    while at < len(SENT):
        for cut in cuts:
            reader.feed(memoryview(SENT)[at : at + cut])
            at += cut
    assert sink.seen == SEEN


@given(st.integers(1, 60), st.integers(1, 9))
def test_frames_are_parsed_with_body_buffers(cut, size):
    sink, at = RecordingSink(), 0
    sink.into = memoryview(bytearray(size))
    reader = Http2FrameReader(sink, 1000, 100)
    while at < len(SENT):
        body_buffer = reader.body_buffer()
        if body_buffer is None:
            reader.feed(SENT[at : at + cut])
            at += cut
        else:
            assert 0 < len(body_buffer) <= size
            part = SENT[at : at + len(body_buffer)]
            body_buffer[: len(part)] = part
            reader.body_buffer_updated(len(part))
            at += len(part)
    assert sink.seen == SEEN


def test_there_is_a_body_buffer_only_inside_a_body():
    sink = RecordingSink()
    sink.into = memoryview(bytearray(10))
    reader = Http2FrameReader(sink, 1000, 100)
    assert reader.body_buffer() is None
    reader.feed(CLIENT_HELLO + frame(DATA, 0, 1, b"12345678")[:12])
    assert len(reader.body_buffer()) == 5
    sink.into = memoryview(b"")
    assert reader.body_buffer() is None
