"""Calls to the engine's process, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

from tritonpy import Tensor
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.messages import decode_named_error
from tritonpy_ipc import Frame, Kind


class EngineRpcClient:
    """Sends calls and waits for their results.

    A call in the event loop's thread blocks the loop, so only calls that the engine answers from
    memory are allowed there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
        self._loop = loop
        self._connection = connection
        self._numbers = count(1)
        self._open: dict[int, Future[Any]] = {}

    def call(self, verb: str, **arguments: Any) -> Any:
        """Return the result. Raises the TritonError of the result."""
        return self.call_with_tensors(verb, arguments)

    def call_with_tensors(
        self, verb: str, arguments: dict[str, Any], rows: Sequence[Sequence[Tensor]] | None = None
    ) -> Any:
        """Return the result of a call with tensors."""
        reply: Future[Any] = Future()
        if asyncio._get_running_loop() is self._loop:
            self._send(verb, arguments, rows, reply)
            self._connection.wait(reply.done)
        else:
            self._loop.call_soon_threadsafe(self._send, verb, arguments, rows, reply)
        return reply.result()

    def notify(self, verb: str, **arguments: Any) -> None:
        """Send a notification and return immediately."""
        extras = {"verb": verb, "arguments": arguments}
        if asyncio._get_running_loop() is self._loop:
            self._connection.send(Kind.NOTIFY, extras=extras)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(
                lambda: self._connection.send(Kind.NOTIFY, extras=extras)
            )

    def handle_reply(self, frame: Frame) -> None:
        """Handle a frame with the result of a call."""
        reply = self._open.pop(frame.words[0])
        message = frame.extras
        if "error" in message:
            reply.set_exception(decode_named_error(message["error"]))
        else:
            reply.set_result(message.get("value"))

    def _send(
        self,
        verb: str,
        arguments: dict[str, Any],
        rows: Sequence[Sequence[Tensor]] | None,
        reply: Future[Any],
    ) -> None:
        number = next(self._numbers)
        self._open[number] = reply
        try:
            self._connection.send(
                Kind.QUERY, [number], rows, None, {"verb": verb, "arguments": arguments}
            )
        except Exception as error:  # no memory for the frame
            del self._open[number]
            reply.set_exception(error)
