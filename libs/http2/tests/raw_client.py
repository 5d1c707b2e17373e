"""A connection without a network, calls that record events, and hand-written frames."""

from __future__ import annotations

from tritonpy_http2.abuse_limits import PingRules
from tritonpy_http2.calls import Http2Calls, Receiver
from tritonpy_http2.codes import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS
from tritonpy_http2.connection import ServerConnection
from tritonpy_http2.encode import encode
from tritonpy_http2.limits import Http2Limits

REQUEST = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/service/Method"),
    (b":authority", b"here"),
    (b"te", b"trailers"),
]
RESPONSE_HEAD = encode([(b":status", b"200")])
TRAILERS = encode([(b"end", b"of response")])
BLOCK = encode(REQUEST)


def frame(kind, flags=0, stream=0, payload=b""):
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


CLIENT_HELLO = PREFACE + frame(SETTINGS)


def begin(stream=1, block=BLOCK, ended=False):
    return frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), stream, block)


def body(data, stream=1, ended=True):
    return frame(DATA, END_STREAM if ended else 0, stream, data)


class RecordingCall(Receiver):
    """Records the events of a call."""

    def __init__(self, calls, stream, headers):
        self.calls = calls
        self.stream = stream
        self.headers = headers
        self.body = b""
        self.ended = self.was_reset = False
        self.resumed = 0
        self.into = None

    def data(self, data, ended):
        assert not self.ended
        assert not self.was_reset
        self.body += bytes(data)
        self.ended = ended
        if self.calls.holds_data and data:
            self.stream.hold(len(data))
        if ended:
            self.calls.on_end(self)

    def body_buffer(self):
        return None if self.calls.body_buffer is None else memoryview(self.calls.body_buffer)

    def body_buffer_updated(self, count, ended):
        self.data(bytes(self.calls.body_buffer[:count]), ended)

    def reset(self):
        assert not self.was_reset
        self.was_reset = True

    def resume(self):
        self.resumed += 1


def echo(call):
    """Respond with the body of the request."""
    call.stream.send(RESPONSE_HEAD, (call.body,), TRAILERS)


class RecordingCalls(Http2Calls):
    def __init__(self, on_end=echo):
        self.on_end = on_end
        self.started = []
        self.refused = []
        self.holds_data = False
        self.body_buffer = None

    def begin(self, stream, headers, ended):
        call = RecordingCall(self, stream, headers)
        self.started.append(call)
        if ended:
            call.data(b"", True)
        return call

    def refuse(self, stream, size, limit):
        self.refused.append((size, limit))
        stream.send(None, (), encode([(b":status", b"431")]))


class Server:
    """The server side of a connection, its calls and a fake clock."""

    def __init__(self, on_end=echo, limits=None, rules=None):
        self.now = 0.0
        self.wakes = 0
        self.calls = RecordingCalls(on_end)
        self.connection = ServerConnection(
            self.calls, limits or Http2Limits(), rules or PingRules(), lambda: self.now, self._wake
        )

    def _wake(self):
        self.wakes += 1

    def deliver(self, data):
        """Pass bytes to the server and return its output."""
        self.connection.receive(data)
        return self.take_output()

    def take_output(self):
        sender, output = self.connection.sender, []
        while pieces := sender.take():
            output += pieces
            sender.fill_output()
        return b"".join(output)

    def frames(self, data=b""):
        """Pass bytes to the server and return the frames it sends as (type, flags, stream, payload)."""
        return list(split_frames(self.deliver(data)))

    def handshake(self):
        """Begin, and forget what the server output."""
        self.deliver(CLIENT_HELLO)
        return self


def split_frames(data):
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
