"""Flow control of the response streams of a worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from tritonpy import InferRequest
from tritonpy_workers.executions import Executions


class CreditMessage(msgspec.Struct):
    """A request for credit: the number of a streaming request."""

    request: int


class StreamCredits:
    """Grants credit as soon as consumers have capacity; all methods run on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executions: Executions) -> None:
        self._loop = loop
        self._executions = executions
        self._waiting: set[asyncio.Future[None]] = set()
        self._released = False

    def wait(self, message: CreditMessage) -> asyncio.Future[None] | None:
        """Return a future of the grant, or None to grant now.

        Credit is granted when the consumer has capacity or is gone, or when the request is
        cancelled.
        """
        request = self._executions.open.get(message.request)
        if request is None or self._released or request.cancelled or request.sink.ready(request):
            return None
        return self._wait(request)

    def release(self) -> None:
        """Grant all pending and future requests."""
        self._released = True
        for credit in list(self._waiting):
            _finish(credit)

    def _wait(self, request: InferRequest) -> asyncio.Future[None]:
        credit: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(credit)
        credit.add_done_callback(self._waiting.discard)
        request.sink.when_ready(request, lambda: self._finish_soon(credit))
        if request.cancelled:  # possibly before the sink knew the callback
            _finish(credit)
        return credit

    def _finish_soon(self, credit: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the loop and the worker are closed
            self._loop.call_soon_threadsafe(_finish, credit)


def _finish(credit: asyncio.Future[None]) -> None:
    if not credit.done():
        credit.set_result(None)
