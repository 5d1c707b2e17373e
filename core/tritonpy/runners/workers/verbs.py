"""The verbs of ASK and TELL frames: each may be asked, or told where nobody wants the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec

from tritonpy.errors import TritonError
from tritonpy.incidents import incident
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.said import convert, first_words
from tritonpy.runners.workers.told_error import tell_named_error

Verbs = Mapping[str, tuple[type[Any], Callable[[Any], Any]]]
"""By name what its arguments are, and what acts on them: returns the value, or what to await for it."""


class VerbSaid(msgspec.Struct):
    """What the JSON of a frame says."""

    verb: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A value with descriptors that go along."""

    value: Any
    descriptors: Sequence[int]


class Respondent:
    """Acts on what the other end asks and tells. Everything here runs on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        verbs: Verbs,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._verbs = verbs
        self._log = log
        self._open: set[int] = set()
        self._tasks: set[asyncio.Future[Any]] = set()

    def asked(self, frame: Frame) -> None:
        """Answer with a REPLY frame, now or when the answer is there. Raises ProtocolError."""
        (number,) = first_words(frame, 1)
        if number in self._open:
            raise ProtocolError(f"question {number} is open and was asked again")
        self._open.add(number)
        self._act(frame, number)

    def told(self, frame: Frame) -> None:
        """Do what a TELL frame says; what goes wrong is logged. Raises ProtocolError."""
        self._act(frame, None)

    def close(self) -> None:
        """Forget what is open: the other end is gone."""
        for task in self._tasks:
            task.cancel()

    def perform(self, said: VerbSaid, _frame: Frame) -> Any:
        """Return what the verb gives. Raises TritonErrors, and ProtocolError for a verb that there is not."""
        if said.verb not in self._verbs:
            raise ProtocolError(f"there is no verb '{said.verb}'")
        kind, act = self._verbs[said.verb]
        return act(convert(said.arguments, kind))

    def _act(self, frame: Frame, number: int | None) -> None:
        said = convert(frame.extras, VerbSaid)
        try:
            result = self.perform(said, frame)
        except TritonError as error:
            self._refuse(number, said.verb, error)
            return
        if isawaitable(result):
            task = asyncio.ensure_future(result, loop=self._loop)
            self._tasks.add(task)
            task.add_done_callback(partial(self._acted, number, said.verb))
        else:
            self._reply(number, result)

    def _acted(self, number: int | None, verb: str, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._reply(number, task.result())
        elif isinstance(error, TritonError):
            self._refuse(number, verb, error)
        else:
            self._refuse(number, verb, incident(self._log, f"'{verb}' of another process", error))

    def _reply(self, number: int | None, value: Any) -> None:
        if number is None:
            return
        self._open.discard(number)
        value, descriptors = (value.value, value.descriptors) if isinstance(value, Sent) else (value, ())
        self._connection.send(Kind.REPLY, [number], extras={"value": value}, descriptors=descriptors)

    def _refuse(self, number: int | None, verb: str, error: TritonError) -> None:
        if number is None:
            self._log.warning("'%s' failed: %s", verb, error)
            return
        self._open.discard(number)
        self._connection.send(Kind.REPLY, [number], extras={"error": self.tell(error)})

    def tell(self, error: TritonError) -> list[Any]:
        """Return what is told of an error."""
        return tell_named_error(error)
