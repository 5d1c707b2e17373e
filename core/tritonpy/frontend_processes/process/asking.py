"""Questions to the engine's process, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

from tritonpy.ipc import Frame, Kind
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.told_error import told_named_error
from tritonpy.types import Tensor


class Asking:
    """Asks and waits. On the loop's thread the loop stands still meanwhile: only what is answered from memory may be asked there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
        self._loop = loop
        self._connection = connection
        self._numbers = count(1)
        self._open: dict[int, Future[Any]] = {}

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Return the value; raises the TritonError that is the answer."""
        return self.ask_with(verb, arguments)

    def ask_with(self, verb: str, arguments: dict[str, Any], rows: Sequence[Sequence[Tensor]] | None = None) -> Any:
        """The same with tensors."""
        reply: Future[Any] = Future()
        if asyncio._get_running_loop() is self._loop:
            self._send(verb, arguments, rows, reply)
            self._connection.wait(reply.done)
        else:
            self._loop.call_soon_threadsafe(self._send, verb, arguments, rows, reply)
        return reply.result()

    def tell(self, verb: str, **arguments: Any) -> None:
        """Tell and go on."""
        extras = {"verb": verb, "arguments": arguments}
        if asyncio._get_running_loop() is self._loop:
            self._connection.send(Kind.TELL, extras=extras)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._connection.send(Kind.TELL, extras=extras))

    def replied(self, frame: Frame) -> None:
        """Take a REPLY frame."""
        reply = self._open.pop(frame.words[0])
        said = frame.extras
        if "error" in said:
            reply.set_exception(told_named_error(said["error"]))
        else:
            reply.set_result(said.get("value"))

    def _send(
        self, verb: str, arguments: dict[str, Any], rows: Sequence[Sequence[Tensor]] | None, reply: Future[Any]
    ) -> None:
        number = next(self._numbers)
        self._open[number] = reply
        try:
            self._connection.send(Kind.ASK, [number], rows, None, {"verb": verb, "arguments": arguments})
        except Exception as error:  # there is no memory for it
            del self._open[number]
            reply.set_exception(error)
