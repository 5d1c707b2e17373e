"""Refuses calls before they reach their service, whichever service that is: inference, health, reflection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import GrpcAccess
from tritonpy_frontend_grpc.telling import Telling

Abort = Callable[[Any, TritonError], Awaitable[Any]]

_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs alone
    """Asks `access` with the metadata of each call; `abort` ends a call with an error, `telling` tells of those that end so."""

    def __init__(self, access: GrpcAccess, abort: Abort, telling: Telling) -> None:
        self._access = access
        self._abort = abort
        self._telling = telling

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call, or one that refuses it; None for a method that does not exist."""
        handler = await continuation(details)
        if handler is None:
            return None
        try:
            self._access.enter(details.method, details.invocation_metadata or ())
        except TritonError as error:
            return self._telling.handler(self._refusing(handler, error), details.method)
        return handler

    def _refusing(self, handler: Any, error: TritonError) -> Any:
        async def refuse(_request: object, context: Any) -> None:
            await self._abort(context, error)

        return _HANDLERS[handler.request_streaming, handler.response_streaming](refuse)
