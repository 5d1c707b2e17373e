"""Refuses calls before they reach their service, whichever service that is: inference, health, reflection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import GrpcAccess

Abort = Callable[[Any, TritonError], Awaitable[Any]]

_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs alone
    """Asks `access` with the metadata of each call; `abort` ends a call with an error."""

    def __init__(self, access: GrpcAccess, abort: Abort) -> None:
        self._access = access
        self._abort = abort

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call, or one that refuses it; None for a method that does not exist."""
        handler = await continuation(details)
        if handler is None:
            return None
        try:
            self._access.enter(details.method, details.invocation_metadata or ())
        except TritonError as error:
            return self._refusing(handler, error)
        return handler

    def _refusing(self, handler: Any, error: TritonError) -> Any:
        async def refuse(_request: object, context: Any) -> None:
            await self._abort(context, error)

        return _HANDLERS[handler.request_streaming, handler.response_streaming](refuse)
