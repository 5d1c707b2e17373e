"""A worker's end of the socket, on the event loop of the test."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from typing import Any

from tritonpy_ipc import Endpoint, Frame


class WorkerEnd:
    """Sends frames and records received ones."""

    def __init__(self, connection: socket.socket) -> None:
        self.endpoint = Endpoint()
        self.frames: list[Frame] = []
        self.socket = connection
        self.socket.setblocking(False)

    def send(self, kind: int, words: Sequence[int] = (), **more: Any) -> None:
        """Send one frame as the worker."""
        data, descriptors = self.endpoint.compose(kind, words, **more)
        self.send_bytes(data, descriptors)

    def send_bytes(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send bytes that may be invalid."""
        assert socket.send_fds(self.socket, [data], descriptors) == len(data)
        for descriptor in descriptors:
            os.close(descriptor)

    async def read(self) -> None:
        """Wait for the server and record its frames."""
        loop = asyncio.get_running_loop()
        readable = loop.create_future()
        loop.add_reader(self.socket, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(self.socket)
        data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 18, 16)
        assert data, "the server closed the connection"
        self.frames += self.endpoint.feed(data, descriptors)
