"""gRPC on the streams of HTTP/2: begins a call for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import ResourceExhausted
from tritonpy_frontend_grpc.wire.head import Head, is_grpc_type
from tritonpy_frontend_grpc.wire.replies import failed
from tritonpy_frontend_grpc.wire.serving import INFER
from tritonpy_frontend_h2.blocks import NO_GRPC, refusal_block
from tritonpy_frontend_h2.exchange import H2Exchange
from tritonpy_frontend_h2.http2.calls import UNCOUNTED, Calls, Receiver
from tritonpy_frontend_h2.infer_call import H2InferCall

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.wire.serving import Serving
    from tritonpy_frontend_h2.http2.calls import Headers, Stream

MOST_HEADS = 4096
MOST_FIELDS = 32
"""Of a head that is kept: its fields take some twenty times what they took on the wire, and those of a usual client are a dozen."""


class GrpcCalls(Calls):
    """Gives the calls of all connections to `serving`; what follows from a header list is kept for those that come again."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._loop = asyncio.get_running_loop()
        self.begin_http: Callable[[Stream, Headers, bool], Receiver] | None = None  # serves requests that are not gRPC
        self._heads: dict[
            int, tuple[Headers, Head | None]
        ] = {}  # with the list, whose identity would be another's otherwise

    def begin(self, stream: Stream, headers: Headers, ended: bool) -> Receiver:
        known = self._heads.get(id(headers)) or self._learn(headers)
        head = known[1]
        if head is None:
            if self.begin_http is not None:
                return self.begin_http(stream, headers, ended)
            stream.send(None, (), NO_GRPC)
            return NOBODY
        receiver = self._infer(head, stream) if head.path == INFER else self._exchange(head, stream)
        if ended:
            receiver.data(b"", True)
        return receiver

    def overload(self, stream: Stream) -> None:
        error = self._serving.service.memory.refusal(UNCOUNTED)
        stream.send(None, (), refusal_block(failed(error)[1]))

    def refuse(self, stream: Stream, size: int, limit: int) -> None:
        error = ResourceExhausted(f"received metadata size exceeds hard limit ({size} vs. {limit})")
        stream.send(None, (), refusal_block(failed(error)[1]))

    def _learn(self, headers: Headers) -> tuple[Headers, Head | None]:
        known = headers, _head_of(headers)
        if len(headers) <= MOST_FIELDS:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            self._heads[id(headers)] = known
        return known

    def _infer(self, head: Head, stream: Stream) -> Receiver:
        serving = self._serving
        if serving.tells:
            from tritonpy_frontend_h2.told import ToldH2InferCall

            call: H2InferCall = ToldH2InferCall(serving.log, serving.service, head, stream)
        else:
            call = H2InferCall(serving.service, head, stream)
        serving.infer(call)
        return call

    def _exchange(self, head: Head, stream: Stream) -> Receiver:
        serving = self._serving
        if serving.tells and serving.knows(head.path):
            from tritonpy_frontend_h2.told import ToldH2Exchange

            exchange: H2Exchange = ToldH2Exchange(serving.log, head, stream)
        else:
            exchange = H2Exchange(head, stream)
        exchange.task = self._loop.create_task(serving.answer(exchange))
        return exchange


class _Nobody(Receiver):
    """Takes what follows a head that was no call's."""

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        """Do nothing."""

    def reset(self) -> None:
        """Do nothing."""


NOBODY = _Nobody()


def _head_of(headers: Headers) -> Head | None:
    """Return the head of a call, None where it is none of gRPC's."""
    pseudo = {name: value for name, value in headers if name.startswith(b":")}
    pairs = tuple(pair for pair in headers if not pair[0].startswith(b":"))
    head = Head(pseudo.get(b":method", b"").decode("latin-1"), pseudo.get(b":path", b"").decode("latin-1"), pairs)
    return head if is_grpc_type(head.headers.get(b"content-type", b"")) else None
