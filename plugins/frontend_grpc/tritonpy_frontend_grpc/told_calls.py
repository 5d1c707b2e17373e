"""One verbose line for a call that is over. Metadata and messages are in none: they may hold secrets."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import RPCS
from tritonpy_frontend_grpc.packing import PACKED, UNASKED, unpacked
from tritonpy_protos import METHODS

_LONGEST = 500  # characters of a model's name
_KINDS = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}
_MESSAGES: dict[str, Any] = {method.path: method.request for method in METHODS}


def telling(handler: Any, method: str, log: logging.Logger) -> Any:
    """Return `handler` with a line in `log` when its call is over: of a stream, when that has ended.

    A call of many requests is told of without a model: each of them may name another.
    """
    kind = _KINDS[handler.request_streaming, handler.response_streaming]
    behaviour = getattr(handler, kind)

    async def named(request: Any) -> str:
        return "" if handler.request_streaming else await _model(method, request)

    async def answer(request: Any, context: Any) -> Any:
        with _told(log, method, await named(request), context):
            return await behaviour(request, context)

    async def answers(request: Any, context: Any) -> AsyncIterator[Any]:
        with _told(log, method, await named(request), context):
            async with aclosing(behaviour(request, context)) as made:
                async for each in made:
                    yield each

    def listed(request: Any, context: Any) -> Iterator[Any]:  # a library's method that grpc runs in a thread
        with _told(log, method, "", context):
            yield from behaviour(request, context)

    if inspect.isgeneratorfunction(behaviour):
        return handler._replace(**{kind: listed})
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
        log.debug("%s: %s", method, status.name, extra={"model": model[:_LONGEST]} if model else {})


async def _model(method: str, request: Any) -> str:
    rpc = RPCS.get(method)
    if rpc is None or not rpc.model_field:
        return ""
    try:
        raw = await unpacked(request, UNASKED.limit) if request[:1] in PACKED else request
        name: str = getattr(_MESSAGES[method].FromString(raw), rpc.model_field)
    except (DecodeError, TritonError):  # the call itself will say so
        return ""
    return name
