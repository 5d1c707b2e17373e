"""Handlers of grpc.aio whose calls are told of in the log when they are over."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc

from tritonpy_frontend_grpc.told import model_of, tell

_KINDS = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}


def telling(handler: Any, method: str, log: logging.Logger) -> Any:
    """Return `handler` with a line in `log` when its call is over: of a stream, when that has ended.

    A call of many requests is told of without a model: each of them may name another.
    """
    kind = _KINDS[handler.request_streaming, handler.response_streaming]
    behaviour = getattr(handler, kind)

    async def named(request: Any) -> str:
        return "" if handler.request_streaming else await model_of(method, request)

    async def answer(request: Any, context: Any) -> Any:
        with _told(log, method, await named(request), context):
            return await behaviour(request, context)

    async def answers(request: Any, context: Any) -> AsyncIterator[Any]:
        with _told(log, method, await named(request), context):
            async with aclosing(behaviour(request, context)) as made:
                async for each in made:
                    yield each

    return handler._replace(**{kind: answers if inspect.isasyncgenfunction(behaviour) else answer})


@contextmanager
def _told(log: logging.Logger, method: str, model: str, context: Any) -> Iterator[None]:
    status = grpc.StatusCode.OK
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):  # its client left, or its time is over
        status = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        status = context.code() or grpc.StatusCode.UNKNOWN
        raise
    finally:
        tell(log, method, status.name, model)
