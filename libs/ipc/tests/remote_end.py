"""The server's end of a channel."""

from __future__ import annotations

import os
import socket
from threading import Event
from typing import Any

from tritonpy_ipc import Endpoint, Frame, Kind
from tritonpy_ipc.channel import Channel

WAIT_S = 10
ONE, ANOTHER = Kind.CANCEL, Kind.CALL_RESPONSE


class Lost(Exception):
    """The channel to the server is lost."""


def lost(reason: str) -> Any:
    raise Lost(reason)


class Server:
    """The other end of a channel."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(WAIT_S)
        self.endpoint = Endpoint()
        self.channel = Channel(theirs, lost)
        self.frames: list[Frame] = []
        self.received: list[int] = []
        self.channel.on(ONE, self._receive)

    def send(self, kind: int, words: tuple[int, ...] = (), **more: Any) -> None:
        data, descriptors = self.endpoint.compose(kind, words, **more)
        socket.send_fds(self.socket, [data], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def next(self) -> Frame:
        while not self.frames:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 16)
            assert data, "the worker hung up"
            self.frames += self.endpoint.feed(data, descriptors)
        return self.frames.pop(0)

    def close(self) -> None:
        self.socket.close()
        self.channel.close()
        self.endpoint.close()

    def _receive(self, frame: Frame) -> None:
        self.received.append(frame.words[0])


def until(condition: Any) -> None:
    turns = Event()
    for _ in range(10_000):
        if condition():
            return
        turns.wait(0.001)
    raise AssertionError("it never became true")
