"""The interceptor that authorizes calls to all services: inference, health and reflection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import GrpcAccess
from tritonpy_frontend_grpc.request_log import RequestLog

Abort = Callable[[Any, TritonError], Awaitable[Any]]

_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class AccessInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs alone
    """Checks the metadata of each call with `access`.

    `abort` ends a denied call with an error, and `request_log` logs it.
    """

    def __init__(self, access: GrpcAccess, abort: Abort, request_log: RequestLog) -> None:
        self._access = access
        self._abort = abort
        self._request_log = request_log

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call, or one that refuses it; None for an unknown method."""
        handler = await continuation(details)
        if handler is None:
            return None
        try:
            self._access.check_call(details.method, details.invocation_metadata or ())
        except TritonError as error:
            return self._request_log.wrap(self._refusing(handler, error), details.method)
        return handler

    def _refusing(self, handler: Any, error: TritonError) -> Any:
        async def refuse(_request: object, context: Any) -> None:
            await self._abort(context, error)

        return _HANDLERS[handler.request_streaming, handler.response_streaming](refuse)
