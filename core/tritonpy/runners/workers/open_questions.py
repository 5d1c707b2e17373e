"""What another process was asked and has not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tritonpy.errors import TritonError
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.said import first_words


class OpenQuestions:
    """Everything here runs on the loop's thread. `read` returns what a reply says: a value, or the error that it is."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connection: Connection, read: Callable[[Frame], Any | TritonError]
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._read = read
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}

    async def ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask, and wait for the value. Raises the TritonError that is answered, or that `close` was given."""
        number = next(self._numbers)
        self._open[number] = answer = self._loop.create_future()
        self._connection.send(Kind.ASK, [number], extras={"verb": verb, "arguments": dict(arguments)})
        return await answer

    def replied(self, frame: Frame) -> None:
        """Take a reply. Raises ProtocolError for one that nobody waits for."""
        (number,) = first_words(frame, 1)
        if number not in self._open:
            raise ProtocolError(f"a reply came to question {number}, which is not open")
        said = self._read(frame)
        _settle(self._open.pop(number), said)

    def close(self, said: Any | TritonError) -> None:
        """Answer all that is open with `said`: the other process is gone."""
        for answer in self._open.values():
            _settle(answer, said)
        self._open.clear()


def _settle(answer: asyncio.Future[Any], said: Any | TritonError) -> None:
    if answer.done():  # whoever asked has gone
        return
    if isinstance(said, TritonError):
        answer.set_exception(said)
    else:
        answer.set_result(said)
