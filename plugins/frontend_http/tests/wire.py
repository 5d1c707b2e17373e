"""Raw bytes to a server and back."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

SECONDS = 30
INFER = "/v2/models/echo/infer"
BODY = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()
META = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"


def request(body=BODY, headers="", path=INFER, version="1.1", method="POST", length=True):
    given = f"content-length: {len(body)}\r\n" if length else ""
    return f"{method} {path} HTTP/{version}\r\nhost: x\r\n{given}{headers}\r\n".encode() + body


def chunked(*parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Talk:
    """A socket, and a file that reads from it."""

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
    return Talk(socket.create_connection(("127.0.0.1", server.port), SECONDS))


def read_to_end(stream):
    """Return everything until the server closes."""
    received = b""
    while part := stream.recv(65536):
        received += part
    return received


def read_one(talk):
    """Return status, headers and body of one of several answers."""
    file = talk.file
    status = int(file.readline().split()[1])
    headers = dict(line.rstrip(b"\r\n").lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
    return status, headers, file.read(int(headers[b"content-length"]))


def exchange(server, sent):
    """Send bytes, and return status and error text of what comes until the server closes."""
    with connect(server) as stream:
        stream.sendall(sent)
        head, _, body = read_to_end(stream).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body).get("error")


@contextmanager
def standing_still(server):
    """The server's loop does nothing meanwhile: it finds all at once what was sent to it."""
    still, go_on = threading.Event(), threading.Event()
    server.loop.call_soon_threadsafe(lambda: (still.set(), go_on.wait(SECONDS)))
    try:
        assert still.wait(SECONDS)
        yield
    finally:
        go_on.set()


def connect_with(server, sent):
    """Connect, and send bytes before the time runs that the server gives a client."""
    with standing_still(server):
        talk = connect(server)
        talk.sendall(sent)
    return talk


def eventually(condition, server, state=lambda: "it never came"):
    """Wait on the server's loop until a condition holds there; when it never does, the test fails with `state()`."""

    async def poll():
        until = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < until, state()
            await asyncio.sleep(0.001)

    server.run(poll(), SECONDS + 5)
