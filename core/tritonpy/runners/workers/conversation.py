"""What a worker says beside answers, and what the server asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.errors import TritonError, error_of
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.workers.calls import Calls
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.executions import Executions
from tritonpy.runners.workers.open_questions import OpenQuestions
from tritonpy.runners.workers.questions import Questions, TakeMore
from tritonpy.runners.workers.said import convert
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy.runners.workers.neighbours import Neighbours


class _Replied(msgspec.Struct):
    """What a worker answers to a question: a value, or the code and the text of an error."""

    value: Any = None
    error: tuple[Annotated[int, msgspec.Meta(ge=0, le=7)], str] | None = None


class Conversation:
    """Everything here runs on the loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        neighbours: Neighbours,
        take_more: TakeMore,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._calls = Calls(model, loop, connection, executions, neighbours)
        self._questions = Questions(model, instance, loop, connection, executions, neighbours.shares(model), take_more)
        self._asked = OpenQuestions(loop, connection, _answer)
        self._closed = False
        self._hear: dict[int, Callable[[Frame], None]] = {
            Kind.CALL: self._calls.make,
            Kind.CALL_CANCEL: self._calls.cancel,
            Kind.CALL_TAKEN: self._calls.taken,
            Kind.CALL_LEFT: self._calls.left,
            Kind.CALL_WANTED: self._calls.wanted,
            Kind.ASK: self._questions.asked,
            Kind.TELL: self._questions.told,
            Kind.REPLY: self._asked.replied,
        }

    def hear(self, frame: Frame) -> None:
        """Act on a frame of the worker. Raises ProtocolError for what no worker says."""
        hear = self._hear.get(frame.kind)
        if hear is None:
            raise ProtocolError(f"a frame of kind {frame.kind} came")
        hear(frame)

    async def ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask the worker. Raises the TritonError that it answers, or that it died of."""
        return await self._asked.ask(verb, arguments)

    def cancelled(self, request: InferRequest) -> None:
        """Take note that nobody waits for `request` any more, which the worker has: nor for what it calls to answer it."""
        self._calls.caller_cancelled(request)

    def release(self) -> None:
        """Keep nothing in the worker waiting for the clients of its streams: it is to end."""
        self._questions.release()

    def close(self, error: TritonError) -> None:
        """The worker is gone: fail what it was asked, and end what it began. A second time is fine."""
        if self._closed:
            return
        self._closed = True
        self._asked.close(error)
        self._calls.close()
        self._questions.close()


def _answer(frame: Frame) -> Any | TritonError:
    said = convert(frame.extras, _Replied)
    return said.value if said.error is None else error_of(*said.error)
