"""Handlers of grpc.aio that log their calls."""

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

    return handler._replace(
        **{kind: stream_and_log if inspect.isasyncgenfunction(behavior) else run_and_log}
    )


@contextmanager
def _log_when_done(log: logging.Logger, method: str, model: str, context: Any) -> Iterator[None]:
    status = grpc.StatusCode.OK
    try:
        yield
    except (
        asyncio.CancelledError,
        GeneratorExit,
    ):  # the client disconnected or the deadline passed
        status = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        status = context.code() or grpc.StatusCode.UNKNOWN
        raise
    finally:
        log_call(log, method, status.name, model)
