"""The request log on grpc.aio: at verbose level 1, one line per call with method and status."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc

from tritonpy_frontend_grpc.log_line import log_call, requested_model

_KINDS = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}


class RequestLog:
    """Adds logging to method handlers while request logging is on.

    The level may change at any time.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def wrap(self, handler: Any, method: str) -> Any:
        """Return `handler`, or a wrapper that logs its calls; `method` is its path."""
        if not self._log.isEnabledFor(logging.DEBUG):
            return handler

        return logged_handler(handler, method, self._log)


class LoggedHandlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its types alone
    """Handlers of services with request logging."""

    def __init__(self, handlers: grpc.GenericRpcHandler[Any, Any], request_log: RequestLog) -> None:
        self._handlers = handlers
        self._request_log = request_log

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found: Any = self._handlers.service(handler_call_details)
        return found if found is None else self._request_log.wrap(found, handler_call_details.method)


def logged_handler(handler: Any, method: str, log: logging.Logger) -> Any:
    """Return `handler` with a line in `log` at the end of each call.

    The line of a call with many requests has no model: each request may name another one.
    """
    kind = _KINDS[handler.request_streaming, handler.response_streaming]
    behavior = getattr(handler, kind)

    async def model_name(request: Any) -> str:
        return "" if handler.request_streaming else await requested_model(method, request)

    async def run_and_log(request: Any, context: Any) -> Any:
        with _log_when_done(log, method, await model_name(request), context):
            return await behavior(request, context)

    async def stream_and_log(request: Any, context: Any) -> AsyncIterator[Any]:
        with _log_when_done(log, method, await model_name(request), context):
            async with aclosing(behavior(request, context)) as messages:
                async for message in messages:
                    yield message

    return handler._replace(**{kind: stream_and_log if inspect.isasyncgenfunction(behavior) else run_and_log})


@contextmanager
def _log_when_done(log: logging.Logger, method: str, model: str, context: Any) -> Iterator[None]:
    status = grpc.StatusCode.OK
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):  # the client disconnected or the deadline passed
        status = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        status = context.code() or grpc.StatusCode.UNKNOWN
        raise
    finally:
        log_call(log, method, status.name, model)
