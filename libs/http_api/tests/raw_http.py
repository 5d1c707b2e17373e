"""Raw HTTP connections for tests."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

SECONDS = 30
INFER = "/v2/models/echo/infer"
BODY = json.dumps(
    {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
META = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"


def request(body=BODY, headers="", path=INFER, version="1.1", method="POST", length=True):
    given = f"content-length: {len(body)}\r\n" if length else ""
    return f"{method} {path} HTTP/{version}\r\nhost: x\r\n{given}{headers}\r\n".encode() + body


def chunked(*parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class RawConnection:
    """A socket and a file that reads from it."""

    def __init__(self, stream):
        self.stream = stream
        self.file = stream.makefile("rb")

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.stream.close()


def connect(server):
    return RawConnection(socket.create_connection(("127.0.0.1", server.port), SECONDS))


def read_to_end(stream):
    """Read until the server closes the connection."""
    received = b""
    while part := stream.recv(65536):
        received += part
    return received


def read_one(raw):
    """Read one of several responses: status, headers and body."""
    file = raw.file
    status = int(file.readline().split()[1])
    headers = dict(
        line.rstrip(b"\r\n").lower().split(b": ", 1) for line in iter(file.readline, b"\r\n")
    )
    return status, headers, file.read(int(headers[b"content-length"]))


def send_and_read(server, sent):
    """Send bytes, read until the server closes, and return status and error text."""
    with connect(server) as stream:
        stream.sendall(sent)
        head, _, body = read_to_end(stream).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body).get("error")


@contextmanager
def paused_loop(server):
    """Block the event loop of the server, so that it then receives all data at once."""
    is_blocked, resume = threading.Event(), threading.Event()
    server.loop.call_soon_threadsafe(lambda: (is_blocked.set(), resume.wait(SECONDS)))
    try:
        assert is_blocked.wait(SECONDS)
        yield
    finally:
        resume.set()


def connect_with(server, sent):
    """Connect and send bytes before the timeouts of the server start."""
    with paused_loop(server):
        raw = connect(server)
        raw.sendall(sent)
    return raw


def eventually(condition, server, state=lambda: "the condition never became true"):
    """Wait on the event loop of the server for a condition; fail with `state()` after a timeout."""

    async def poll():
        until = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < until, state()
            await asyncio.sleep(0.001)

    server.run(poll(), SECONDS + 5)
