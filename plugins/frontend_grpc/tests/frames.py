"""Hand-written HTTP/2 frames of clients that disconnect early."""

from __future__ import annotations

import socket

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY, HEADERS, DATA = 4, 6, 7, 1, 0
INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"


def frame(kind, flags=0, stream=0, payload=b""):
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def literal(name, value):
    """Return an HPACK literal without indexing and Huffman coding."""
    return b"\0" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


def head(path, more=()):
    pairs = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("te", "trailers"),
    ]
    return b"".join(
        literal(*pair) for pair in [*pairs, ("content-type", "application/grpc"), *more]
    )


HELLO = PREFACE + frame(SETTINGS) + frame(SETTINGS, 1)


def call(path, data=b"", more=()):
    """Return the frames of an incomplete call."""
    return (
        HELLO + frame(HEADERS, 4, 1, head(path, more)) + (frame(DATA, 0, 1, data) if data else b"")
    )


class RawConnection:
    """A client that sends raw bytes and reads frames."""

    def __init__(self, port, sent=HELLO):
        self.stream = socket.create_connection(("127.0.0.1", port), 20)
        self.file = self.stream.makefile("rb")
        self.send(sent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.stream.close()

    def send(self, sent):
        self.stream.sendall(sent)

    def until(self, kind):
        """Return the payload of the next frame of a type, without ACK; None if the connection ends before."""
        while len(start := self.file.read(9)) == 9:
            payload = self.file.read(int.from_bytes(start[:3], "big"))
            if start[3] == kind and not start[4] & 1:
                return payload
        return None
