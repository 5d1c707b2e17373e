"""RPC client on the event loop, for queries to another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tritonpy import TritonError
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.messages import first_words
from tritonpy_ipc import Frame, Kind, ProtocolError


class AsyncRpcClient:
    """Sends queries and awaits their results; all methods run on the event loop's thread.

    `read` converts a result frame to a value or to an error.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        read: Callable[[Frame], Any | TritonError],
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._read = read
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Send a query and wait for its value.

        Raises the `TritonError` of the other process, or the one passed to `close`.
        """
        number = next(self._numbers)
        self._open[number] = future = self._loop.create_future()
        self._connection.send(
            Kind.QUERY, [number], extras={"verb": verb, "arguments": dict(arguments)}
        )
        return await future

    def handle_result(self, frame: Frame) -> None:
        """Handle a result frame. Raises `ProtocolError` if it belongs to no query."""
        (number,) = first_words(frame, 1)
        if number not in self._open:
            raise ProtocolError(f"received a result for query {number}, which is not in flight")
        outcome = self._read(frame)
        _settle(self._open.pop(number), outcome)

    def close(self, outcome: Any | TritonError) -> None:
        """Finish all queries in flight with `outcome`: the other process is gone."""
        for future in self._open.values():
            _settle(future, outcome)
        self._open.clear()


def _settle(future: asyncio.Future[Any], outcome: Any | TritonError) -> None:
    if future.done():  # the caller was cancelled
        return
    if isinstance(outcome, TritonError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
