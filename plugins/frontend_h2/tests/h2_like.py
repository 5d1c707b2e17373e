"""Streams as HTTP/2 brings them to calls, without a connection: the same order of what is told, and of what may be sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from hpack import Decoder

from plugins.frontend_grpc.tests.fake_engine import FakeEngine
from plugins.frontend_grpc.tests.wire.scenarios.answered_stream import AnsweredStream
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame, headers_of, path_of
from tritonpy import FrontendContext, Tracer
from tritonpy_frontend_grpc.call_options import CallOptions
from tritonpy_frontend_grpc.wire.serving import Serving
from tritonpy_frontend_h2.exchange import H2Exchange
from tritonpy_frontend_h2.grpc_calls import GrpcCalls
from tritonpy_frontend_h2.http2 import calls


class Stream(AnsweredStream, calls.Stream):
    """One request. `held` bytes of its body are kept by the call, `sending` pieces of its answer wait for the client."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.sending: list[bytes] = []
        self.receiver: Any = None
        self._begun = False

    @property
    def asked(self) -> bool:
        """Whether the client may send."""
        return not self.held

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self.receiver.task if isinstance(self.receiver, H2Exchange) else None

    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        if self.over.is_set():
            return True
        assert all(type(piece) is bytes for piece in data)
        if headers is not None:
            assert not self._begun
            self._begin(headers)
        if self.held_up:
            self.sending += data
        else:
            self._take(data)
        if trailers is not None:
            assert not self.sending
            if self._begun:
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
        """Let more of the body come."""
        if not self.over.is_set():
            self.receiver.data(memoryview(bytearray(body)), ended)

    def leave(self) -> None:
        """Let the client go."""
        if not self.over.is_set():
            self.over.set()
            self.receiver.reset()

    def read_on(self) -> None:
        """Let the client read what waits."""
        self.held_up = False
        self._take(self.sending)
        self.sending.clear()
        self.receiver.resume()

    def _begin(self, block: bytes) -> None:
        self._begun = True
        self.headers = _decoded(block)
        self.status = int(self.headers.pop(b":status"))

    def _take(self, data: Sequence[bytes]) -> None:
        for piece in data:
            self._frames.feed(piece)


def _decoded(block: bytes) -> dict[bytes, bytes]:
    return dict(Decoder().decode(block, raw=True))


class Server:
    """Calls on a fake engine; made on the running event loop."""

    def __init__(
        self, engine: Any = None, gatekeeper: Any = None, tracer: Tracer | None = None, **options: Any
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = engine or FakeEngine()
        context = FrontendContext("127.0.0.1", logging.getLogger("tritonpy.grpc"), gatekeeper, tracer or Tracer())
        self.serving = Serving(self.engine, CallOptions(**options), context)
        self.calls = GrpcCalls(self.serving)

    def at_rest(self) -> bool:
        """Say whether nobody looks after a call any more: a stream says itself when its client leaves."""
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
    ) -> Stream:
        """Begin a call with those messages and headers."""
        pseudo = [(b":method", method.encode()), (b":path", path_of(name).encode()), (b":scheme", b"http")]
        body += b"".join(map(frame, messages))
        stream = Stream()
        stream.receiver = self.calls.begin(stream, [*pseudo, *headers_of(headers, metadata)], ended=ended and not body)
        if body and not stream.over.is_set():
            stream.feed(body, ended=ended)
        return stream
