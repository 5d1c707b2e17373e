"""A connection without a network, calls that note what happens to them, and frames by hand."""

from __future__ import annotations

from tritonpy_frontend_h2.http2.calls import Calls, Receiver
from tritonpy_frontend_h2.http2.codes import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS
from tritonpy_frontend_h2.http2.connection import Connection
from tritonpy_frontend_h2.http2.encode import encode
from tritonpy_frontend_h2.http2.limits import Limits
from tritonpy_frontend_h2.http2.ping_strikes import PingRules

REQUEST = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/service/Method"),
    (b":authority", b"here"),
    (b"te", b"trailers"),
]
ANSWER = encode([(b":status", b"200")])
TRAILERS = encode([(b"end", b"of answer")])
BLOCK = encode(REQUEST)


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


HELLO = PREFACE + frame(SETTINGS)


def begin(stream=1, block=BLOCK, ended=False):
    return frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), stream, block)


def body(data, stream=1, ended=True):
    return frame(DATA, END_STREAM if ended else 0, stream, data)


class Call(Receiver):
    """Notes what comes; `answers` says what is done at the end of a request."""

    def __init__(self, calls, stream, headers):
        self.calls = calls
        self.stream = stream
        self.headers = headers
        self.body = b""
        self.ended = self.gone = False
        self.resumed = 0
        self.into = None

    def data(self, data, ended):
        assert not self.ended
        assert not self.gone
        self.body += bytes(data)
        self.ended = ended
        if self.calls.holds and data:
            self.stream.hold(len(data))
        if ended:
            self.calls.on_end(self)

    def room(self):
        return None if self.calls.room is None else memoryview(self.calls.room)

    def filled(self, count, ended):
        self.data(bytes(self.calls.room[:count]), ended)

    def reset(self):
        assert not self.gone
        self.gone = True

    def resume(self):
        self.resumed += 1


def echo(call):
    """Answer with the body of the request."""
    call.stream.send(ANSWER, (call.body,), TRAILERS)


class NotedCalls(Calls):
    def __init__(self, on_end=echo):
        self.on_end = on_end
        self.begun = []
        self.refused = []
        self.holds = False
        self.room = None

    def begin(self, stream, headers, ended):
        call = Call(self, stream, headers)
        self.begun.append(call)
        if ended:
            call.data(b"", True)
        return call

    def refuse(self, stream, size, limit):
        self.refused.append((size, limit))
        stream.send(None, (), encode([(b":status", b"431")]))


class Server:
    """The server's end, its calls and a clock that stands still."""

    def __init__(self, on_end=echo, limits=None, rules=None):
        self.now = 0.0
        self.wakes = 0
        self.calls = NotedCalls(on_end)
        self.connection = Connection(self.calls, limits or Limits(), rules or PingRules(), lambda: self.now, self._wake)

    def _wake(self):
        self.wakes += 1

    def say(self, data):
        """Return all that the server answers to some bytes."""
        self.connection.receive(data)
        return self.said()

    def said(self):
        sender, said = self.connection.sender, []
        while pieces := sender.take():
            said += pieces
            sender.go_on()
        return b"".join(said)

    def frames(self, data=b""):
        """Return the frames that it answers, as tuples of kind, flags, stream and payload."""
        return list(cut(self.say(data)))

    def hello(self):
        """Begin, and forget what the server said."""
        self.say(HELLO)
        return self


def cut(data):
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 3], "big")
        kind, flags = data[at + 3], data[at + 4]
        stream = int.from_bytes(data[at + 5 : at + 9], "big")
        yield kind, flags, stream, data[at + 9 : at + 9 + length]
        at += 9 + length
    assert at == len(data)


def of_kind(kind, frames):
    return [each for each in frames if each[0] == kind]
