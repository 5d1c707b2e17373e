"""Answers on their way to the server: those of several executions go in one frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import get_ident
from typing import Any

from .api.errors import ErrorCode, TritonModelException
from .api.outgoing import Outgoing, outgoing
from .api.response import InferenceResponse
from .failure import failure_of
from .ipc import Kind
from .ipc.channel import Channel
from .open_requests import NULL_REQUEST

FINAL, EMPTY = 1, 2  # flags of an answer
_INTERNAL = int(ErrorCode.INTERNAL)
_PATIENCE_NS = 200_000  # how long the first answer may wait for the others of its frame


def row_of(response: InferenceResponse, wanted: Collection[str] | None = None) -> Sequence[Outgoing]:
    """Return the outputs as they travel, if they are wanted. Raises TritonModelException where one cannot be had from its device."""
    if response._error is not None:
        return ()
    return [outgoing(tensor) for tensor in response._outputs if wanted is None or tensor._name in wanted]


class Answers:
    """What one frame will carry; used by the thread that made it alone."""

    def __init__(self, channel: Channel, instance: str) -> None:
        self._channel = channel
        self._instance = instance
        self._thread = get_ident()
        self._clear()

    def over(self, execution: int, start_ns: int, end_ns: int) -> None:
        """Say that `execute` returned."""
        self._done += (execution, start_ns, end_ns)

    def add(self, request: int, response: InferenceResponse | None, row: Sequence[Outgoing], flags: int) -> None:
        """Answer one request, `row` being the outputs of the response."""
        if request == NULL_REQUEST:
            return
        runs = self._runs
        if runs and runs[-3] + runs[-2] == request and runs[-1] == flags:
            runs[-2] += 1
        else:
            runs += (request, 1, flags)
        self._rows.append(row)
        if response is not None and (response._error is not None or response._parameters):
            index = str(len(self._rows) - 1)
            if response._parameters:
                self._extras.setdefault("parameters", {})[index] = dict(response._parameters)
            if response._error is not None:
                error = response._error
                self._extras.setdefault("errors", {})[index] = [int(error.code()), error.message()]

    def reschedule(self, request: int) -> None:
        """Hand a request back to the scheduler."""
        if request == NULL_REQUEST:
            return
        self._extras.setdefault("reschedule", []).append(request)

    def due(self, next_ns: int) -> bool:
        """Say whether to send before an execution that will probably end at `next_ns`."""
        return bool(self._done) and next_ns - self._done[2] > _PATIENCE_NS

    def hurry(self) -> None:
        """Send now: the calling thread is about to wait for somebody. Nothing happens in other threads."""
        if self._done and get_ident() == self._thread:
            self.send()

    def send(self) -> None:
        """Send what was collected, if anything.

        Where memory for the outputs cannot be had, errors go in their place, and TritonModelException with their text is raised.
        """
        if not (self._done or self._rows or self._extras):
            return
        done, runs, rows, extras = self._done, self._runs, self._rows, self._extras
        self._clear()
        words = [len(done) // 3, *done, len(runs) // 3, *runs]
        try:
            self._channel.send(Kind.ANSWERS, words, rows, None, extras)
        except (OSError, MemoryError) as error:
            text = f"{failure_of(self._instance)}there is no memory for the outputs: {error}"
            refused = {str(index): [_INTERNAL, text] for index, row in enumerate(rows) if row}
            extras.setdefault("errors", {}).update(refused)
            self._channel.send(Kind.ANSWERS, words, [()] * len(rows), None, extras)
            raise TritonModelException(text) from error

    def _clear(self) -> None:
        self._done: list[int] = []
        self._runs: list[int] = []
        self._rows: list[Sequence[Outgoing]] = []
        self._extras: dict[str, Any] = {}
