"""gRPC calls on HTTP/2 streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import ResourceExhausted
from tritonpy_frontend_grpc.h2.call_server import INFER
from tritonpy_frontend_grpc.h2.head import CallHead, is_grpc_type
from tritonpy_frontend_grpc.h2.infer_call import H2InferCall
from tritonpy_frontend_grpc.h2.response_headers import (
    NOT_GRPC_BLOCK,
    refusal_block,
    status_and_trailers,
)
from tritonpy_frontend_grpc.h2.task_call import H2TaskCall
from tritonpy_http2 import IGNORED_BODY, UNCOUNTED, Http2Calls, Receiver

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.h2.call_server import CallServer
    from tritonpy_http2 import Headers, Http2CallStream

MAX_HEADS = 4096
MAX_FIELDS = 32
"""Fields of a cached head.

Usual clients send a dozen; decoded, a field takes about twenty times its size.
"""


class GrpcCalls(Http2Calls):
    """Starts the calls of all connections on `call_server`, with a cache of decoded heads."""

    def __init__(self, call_server: CallServer) -> None:
        self._call_server = call_server
        self._loop = asyncio.get_running_loop()
        # Starts requests that are not gRPC.
        self.begin_http: Callable[[Http2CallStream, Headers, bool], Receiver] | None = None
        # By the id of the header list. The value keeps the list alive, so that its id stays unique.
        self._heads: dict[int, tuple[Headers, CallHead | None]] = {}

    def begin(self, stream: Http2CallStream, headers: Headers, ended: bool) -> Receiver:
        known = self._heads.get(id(headers)) or self._remember(headers)
        head = known[1]
        if head is None:
            if self.begin_http is not None:
                return self.begin_http(stream, headers, ended)
            stream.send(None, (), NOT_GRPC_BLOCK)
            return IGNORED_BODY
        receiver = (
            self._infer(head, stream) if head.path == INFER else self._task_call(head, stream)
        )
        if ended:
            receiver.data(b"", True)
        return receiver

    def overload(self, stream: Http2CallStream) -> None:
        error = self._call_server.service.memory.refusal(UNCOUNTED)
        stream.send(None, (), refusal_block(status_and_trailers(error)[1]))

    def refuse(self, stream: Http2CallStream, size: int, limit: int) -> None:
        error = ResourceExhausted(f"received metadata size exceeds hard limit ({size} vs. {limit})")
        stream.send(None, (), refusal_block(status_and_trailers(error)[1]))

    def _remember(self, headers: Headers) -> tuple[Headers, CallHead | None]:
        known = headers, _head_of(headers)
        if len(headers) <= MAX_FIELDS:
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            self._heads[id(headers)] = known
        return known

    def _infer(self, head: CallHead, stream: Http2CallStream) -> Receiver:
        call_server = self._call_server
        if call_server.is_logging_calls:
            from tritonpy_frontend_grpc.h2.logged_calls import LoggedInferCall

            call: H2InferCall = LoggedInferCall(call_server.log, call_server.service, head, stream)
        else:
            call = H2InferCall(call_server.service, head, stream)
        call_server.infer(call)
        return call

    def _task_call(self, head: CallHead, stream: Http2CallStream) -> Receiver:
        call_server = self._call_server
        if call_server.is_logging_calls and call_server.has_method(head.path):
            from tritonpy_frontend_grpc.h2.logged_calls import LoggedTaskCall

            call: H2TaskCall = LoggedTaskCall(call_server.log, head, stream)
        else:
            call = H2TaskCall(head, stream)
        call.task = self._loop.create_task(call_server.serve(call))
        return call


def _head_of(headers: Headers) -> CallHead | None:
    """Return the head of a gRPC call, None for another request."""
    pseudo = {name: value for name, value in headers if name.startswith(b":")}
    pairs = tuple(pair for pair in headers if not pair[0].startswith(b":"))
    head = CallHead(
        pseudo.get(b":method", b"").decode("latin-1"),
        pseudo.get(b":path", b"").decode("latin-1"),
        pairs,
    )
    return head if is_grpc_type(head.headers.get(b"content-type", b"")) else None
