"""RPC server for queries and notifications of another process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec

from tritonpy import TritonError
from tritonpy.frontend import internal_error
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.messages import convert, encode_named_error, first_words
from tritonpy_ipc import Frame, Kind, ProtocolError

RpcHandlers = Mapping[str, tuple[type[Any], Callable[[Any], Any]]]
"""The message type and the handler of each verb; a handler returns a value or an awaitable."""


class QueryMessage(msgspec.Struct):
    """A query or notification: a verb and its arguments."""

    verb: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ValueWithDescriptors:
    """A value that is sent together with descriptors."""

    value: Any
    descriptors: Sequence[int]


class RpcServer:
    """Executes queries and notifications; all methods run on the event loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        verbs: RpcHandlers,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._verbs = verbs
        self._log = log
        self._open: set[int] = set()
        self._tasks: set[asyncio.Future[Any]] = set()

    def handle_query(self, frame: Frame) -> None:
        """Execute a query and send its result, now or later. Raises `ProtocolError`."""
        (number,) = first_words(frame, 1)
        if number in self._open:
            raise ProtocolError(f"query {number} is already in flight")
        self._open.add(number)
        self._execute_message(frame, number)

    def handle_notification(self, frame: Frame) -> None:
        """Execute a notification; errors are logged. Raises `ProtocolError`."""
        self._execute_message(frame, None)

    def close(self) -> None:
        """Cancel queries in flight: the other end is gone."""
        for task in self._tasks:
            task.cancel()

    def execute(self, message: QueryMessage, _frame: Frame) -> Any:
        """Return the result of the handler.

        Raises `TritonError`, and `ProtocolError` for an unknown verb.
        """
        if message.verb not in self._verbs:
            raise ProtocolError(f"unknown verb '{message.verb}'")
        kind, act = self._verbs[message.verb]
        return act(convert(message.arguments, kind))

    def _execute_message(self, frame: Frame, number: int | None) -> None:
        message = convert(frame.extras, QueryMessage)
        try:
            result = self.execute(message, frame)
        except TritonError as error:
            self._send_error(number, message.verb, error)
            return
        if isawaitable(result):
            task = asyncio.ensure_future(result, loop=self._loop)
            self._tasks.add(task)
            task.add_done_callback(partial(self._task_done, number, message.verb))
        else:
            self._send_result(number, result)

    def _task_done(self, number: int | None, verb: str, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._send_result(number, task.result())
        elif isinstance(error, TritonError):
            self._send_error(number, verb, error)
        else:
            self._send_error(
                number, verb, internal_error(self._log, f"'{verb}' of another process", error)
            )

    def _send_result(self, number: int | None, value: Any) -> None:
        if number is None:
            return
        self._open.discard(number)
        value, descriptors = (
            (value.value, value.descriptors)
            if isinstance(value, ValueWithDescriptors)
            else (value, ())
        )
        self._connection.send(
            Kind.QUERY_RESULT, [number], extras={"value": value}, descriptors=descriptors
        )

    def _send_error(self, number: int | None, verb: str, error: TritonError) -> None:
        if number is None:
            self._log.warning("'%s' failed: %s", verb, error)
            return
        self._open.discard(number)
        self._connection.send(
            Kind.QUERY_RESULT, [number], extras={"error": self.error_payload(error)}
        )

    def error_payload(self, error: TritonError) -> list[Any]:
        """Return `error` as it is sent."""
        return encode_named_error(error)
