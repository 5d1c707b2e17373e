"""What a worker asks and tells the server, beside inference."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Annotated, Any

import msgspec

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.errors import TritonError
from tritonpy.incidents import incident
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.engine_methods import MethodSaid, call_method
from tritonpy.runners.workers.executions import Executions
from tritonpy.runners.workers.log_records import RecordSaid, write_record
from tritonpy.runners.workers.metric_handles import (
    Dropped,
    FamilySaid,
    MetricHandles,
    MetricRead,
    MetricSaid,
    ValueSaid,
)
from tritonpy.runners.workers.model_control import LoadSaid, ModelControl, ReadySaid, UnloadSaid
from tritonpy.runners.workers.model_log import LineSaid, ModelLog
from tritonpy.runners.workers.rooms import Rooms, RoomSaid
from tritonpy.runners.workers.said import convert, first_words
from tritonpy.runners.workers.shares import Share, Shares

log = logging.getLogger("tritonpy.model")
# Cuts up to n waiting requests for the worker and sends them: the number of their execution, None where nothing waits.
TakeMore = Callable[[int], Awaitable[int | None]]


class _Said(msgspec.Struct):
    verb: str
    arguments: dict[str, Any]


class _ShareSaid(msgspec.Struct):
    """What is wanted: the reply has its layout and its descriptor, or no value, where the worker is to make it."""

    key: str


class _SharedSaid(msgspec.Struct):
    """What was made, with the one descriptor of the frame; without a descriptor, what could not be made."""

    key: str
    layout: Any = None


class _MoreSaid(msgspec.Struct):
    """How many requests are wanted."""

    count: Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class _Sent:
    """A value with descriptors that go along."""

    value: Any
    descriptors: Sequence[int]


class Questions:
    """The verbs of ASK and TELL frames: each may be asked, or told where nobody wants the answer. Everything here runs on the loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        shares: Shares,
        take_more: TakeMore,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._shares = shares
        self._log = model.log
        self._metrics = metrics = MetricHandles(model.metrics)
        self._rooms = Rooms(loop, executions)
        self._open: set[int] = set()
        self._tasks: set[asyncio.Future[Any]] = set()
        control = ModelControl(model.engine)
        self._verbs: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
            "log": (LineSaid, ModelLog(model, instance).write),
            "log_record": (RecordSaid, write_record),
            "metric_family": (FamilySaid, metrics.make_family),
            "metric": (MetricSaid, metrics.make),
            "metric_value": (MetricRead, metrics.value),
            "metric_add": (ValueSaid, metrics.add),
            "metric_set": (ValueSaid, metrics.set),
            "metric_observe": (ValueSaid, metrics.observe),
            "metric_drop": (Dropped, metrics.drop),
            "metric_family_drop": (Dropped, metrics.drop_family),
            "load_model": (LoadSaid, control.load),
            "unload_model": (UnloadSaid, control.unload),
            "is_model_ready": (ReadySaid, control.is_ready),
            "engine": (MethodSaid, partial(call_method, model.engine)),
            "room": (RoomSaid, self._rooms.wait),
            "share": (_ShareSaid, self._share),
            "take_more": (_MoreSaid, lambda said: take_more(said.count)),
        }

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

    def release(self) -> None:
        """Let whoever waits in the worker go on: it is to end."""
        self._rooms.release()

    def close(self) -> None:
        """Forget what is open, and give up what the worker held: it is gone."""
        for task in self._tasks:
            task.cancel()
        self._metrics.close()
        self._shares.leave(self)

    def _act(self, frame: Frame, number: int | None) -> None:
        said = convert(frame.extras, _Said)
        try:
            result: Any = None
            if said.verb == "shared":  # the only one with a descriptor
                self._shared(convert(said.arguments, _SharedSaid), frame)
            elif said.verb in self._verbs:
                kind, act = self._verbs[said.verb]
                result = act(convert(said.arguments, kind))
            else:
                raise ProtocolError(f"there is no verb '{said.verb}'")
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
            self._refuse(number, verb, incident(log, f"'{verb}' of a worker", error))

    def _reply(self, number: int | None, value: Any) -> None:
        if number is None:
            return
        self._open.discard(number)
        value, descriptors = (value.value, value.descriptors) if isinstance(value, _Sent) else (value, ())
        self._connection.send(Kind.REPLY, [number], extras={"value": value}, descriptors=descriptors)

    def _refuse(self, number: int | None, verb: str, error: TritonError) -> None:
        if number is None:
            self._log.warning("'%s' failed: %s", verb, error)
            return
        self._open.discard(number)
        self._connection.send(Kind.REPLY, [number], extras={"error": [int(error.code), error.message]})

    async def _share(self, said: _ShareSaid) -> _Sent | None:
        share = await self._shares.get(said.key, self)
        return None if share is None else _Sent({"layout": share.layout}, [os.dup(share.descriptor)])

    def _shared(self, said: _SharedSaid, frame: Frame) -> None:
        if not self._shares.makes(said.key, self):
            raise ProtocolError(f"'{said.key}' was shared by a worker that was not asked to make it")
        if not frame.descriptors:
            self._shares.fail(said.key)
            return
        if len(frame.descriptors) > 1:
            raise ProtocolError(f"'{said.key}' was shared with {len(frame.descriptors)} descriptors")
        (descriptor,) = frame.take_descriptors()
        self._shares.put(said.key, Share(descriptor, said.layout))
