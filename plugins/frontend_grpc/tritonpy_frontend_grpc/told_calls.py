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


def tell(log: logging.Logger, method: str, status: str, model: str) -> None:
    """Write the line of a call; `method` is its path, `model` may be empty."""
    log.debug("%s: %s", method, status, extra={"model": model[:_LONGEST]} if model else {})


async def model_of(method: str, request: Any) -> str:
    """Return the model that the message of a call names, empty where it names none."""
    rpc = RPCS.get(method)
    if rpc is None or not rpc.model_field:
        return ""
    try:
        raw = await unpacked(request, UNASKED.limit) if request[:1] in PACKED else request
        name: str = getattr(_MESSAGES[method].FromString(raw), rpc.model_field)
    except (DecodeError, TritonError):  # the call itself will say so
        return ""
    return name
