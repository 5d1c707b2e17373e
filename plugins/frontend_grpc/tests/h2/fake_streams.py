"""Fake HTTP/2 streams without a connection, with the same order of callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from hpack import Decoder

from tritonpy.frontend import FrontendContext
from tritonpy.tracing import Tracer
from tritonpy_frontend_grpc.call_options import GrpcCallOptions
from tritonpy_frontend_grpc.h2.call_server import CallServer
from tritonpy_frontend_grpc.h2.grpc_calls import GrpcCalls
from tritonpy_frontend_grpc.h2.message_frames import MessageReader
from tritonpy_frontend_grpc.h2.task_call import H2TaskCall
from tritonpy_http2 import Http2CallStream

from ..fake_engine import FakeEngine
from .messages import frame, headers_of, path_of


class FakeStream(Http2CallStream):
    """One request, and its response, whose end sets `over`.

    The call holds `held` body bytes; `sending` pieces of the response wait for the client.
    """

    def __init__(self) -> None:
        self.status = 0  # the HTTP status
        self.headers: dict[bytes, bytes] = {}
        self.trailers: dict[bytes, bytes] = {}
        self.over = asyncio.Event()
        self.is_paused = False  # whether the client has stopped reading
        self._frames = MessageReader()
        self.held = 0
        self.sending: list[bytes] = []
        self.receiver: Any = None
        self._head_received = False

    @property
    def can_send(self) -> bool:
        """Whether flow control allows the client to send."""
        return not self.held

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self.receiver.task if isinstance(self.receiver, H2TaskCall) else None

    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        if self.over.is_set():
            return True
        assert all(type(piece) is bytes for piece in data)
        if headers is not None:
            assert not self._head_received
            self._begin(headers)
        if self.is_paused:
            self.sending += data
        else:
            self._take(data)
        if trailers is not None:
            assert not self.sending
            if self._head_received:
                self.trailers = _decoded(trailers)
            else:
                self._begin(trailers)
            self.over.set()
        return not self.sending

    def reset(self, code: int) -> None:
        self.over.set()

    def hold(self, count: int) -> None:
        self.held += count

    def consumed(self, count: int) -> None:
        self.held -= count
        assert self.held >= 0

    def feed(self, body: bytes, *, ended: bool = False) -> None:
        """Send a part of the body."""
        if not self.over.is_set():
            self.receiver.data(memoryview(bytearray(body)), ended)

    def leave(self) -> None:
        """Disconnect the client."""
        if not self.over.is_set():
            self.over.set()
            self.receiver.reset()

    def resume_reading(self) -> None:
        """Let the client read the waiting data."""
        self.is_paused = False
        self._take(self.sending)
        self.sending.clear()
        self.receiver.resume()

    def messages(self) -> list[bytes]:
        """Return new messages of the response; compressed ones have the prefix "packed "."""
        found = []
        while (one := self._frames.next()) is not None:
            found.append(b"packed " + one.message if one.compressed else one.message)
        return found

    async def outcome(self) -> tuple[int, str, list[bytes]]:
        """Wait for the end of the response; return status, text and messages."""
        await asyncio.wait_for(self.over.wait(), 20)
        if self.task is not None:
            await asyncio.wait_for(self.task, 20)
        headers = self.trailers or self.headers
        text = unquote_to_bytes(headers.get(b"grpc-message", b"")).decode()
        return int(headers[b"grpc-status"]), text, self.messages()

    def _begin(self, block: bytes) -> None:
        self._head_received = True
        self.headers = _decoded(block)
        self.status = int(self.headers.pop(b":status"))

    def _take(self, data: Sequence[bytes]) -> None:
        for piece in data:
            self._frames.feed(piece)


def _decoded(block: bytes) -> dict[bytes, bytes]:
    return dict(Decoder().decode(block, raw=True))


class Server:
    """A call server with a fake engine on the running event loop."""

    def __init__(
        self,
        engine: Any = None,
        authorizer: Any = None,
        tracer: Tracer | None = None,
        **options: Any,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = engine or FakeEngine()
        context = FrontendContext(
            "127.0.0.1", logging.getLogger("tritonpy.grpc"), authorizer, tracer or Tracer()
        )
        self.call_server = CallServer(self.engine, GrpcCallOptions(**options), context)
        self.calls = GrpcCalls(self.call_server)

    def is_idle(self) -> bool:
        """Return True: fake streams need no cleanup."""
        return True

    def stream(
        self,
        name: str,
        *messages: bytes,
        body: bytes = b"",
        ended: bool = True,
        metadata: tuple[tuple[bytes, bytes], ...] = (),
        method: str = "POST",
        **headers: bytes | None,
    ) -> FakeStream:
        """Start a call with messages and headers."""
        pseudo = [
            (b":method", method.encode()),
            (b":path", path_of(name).encode()),
            (b":scheme", b"http"),
        ]
        body += b"".join(map(frame, messages))
        stream = FakeStream()
        stream.receiver = self.calls.begin(
            stream, [*pseudo, *headers_of(headers, metadata)], ended=ended and not body
        )
        if body and not stream.over.is_set():
            stream.feed(body, ended=ended)
        return stream
