"""What a worker asks and tells the server, beside inference."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import msgspec

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.errors import TritonError
from tritonpy.ipc import Frame, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.engine_methods import MethodSaid, call_method
from tritonpy.runners.workers.executions import Executions
from tritonpy.runners.workers.log_records import RecordSaid, write_record
from tritonpy.runners.workers.metric_handles import MetricHandles
from tritonpy.runners.workers.model_control import LoadSaid, ModelControl, ReadySaid, UnloadSaid
from tritonpy.runners.workers.model_log import LineSaid, ModelLog
from tritonpy.runners.workers.rooms import Rooms, RoomSaid
from tritonpy.runners.workers.said import convert
from tritonpy.runners.workers.shares import Share, Shares
from tritonpy.runners.workers.verbs import Respondent, Sent, Verbs, VerbSaid

# Cuts up to n waiting requests for the worker and sends them: the number of their execution, None where nothing waits.
TakeMore = Callable[[int], Awaitable[int | None]]


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


class Questions(Respondent):
    """The verbs of a worker. Everything here runs on the loop's thread."""

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
        self._shares = shares
        self._metrics = MetricHandles(model.metrics)
        self._rooms = Rooms(loop, executions)
        control = ModelControl(model.engine)
        verbs: Verbs = {
            "log": (LineSaid, ModelLog(model, instance).write),
            "log_record": (RecordSaid, write_record),
            **self._metrics.verbs(),
            "load_model": (LoadSaid, control.load),
            "unload_model": (UnloadSaid, control.unload),
            "is_model_ready": (ReadySaid, control.is_ready),
            "engine": (MethodSaid, partial(call_method, model.engine)),
            "room": (RoomSaid, self._rooms.wait),
            "share": (_ShareSaid, self._share),
            "take_more": (_MoreSaid, lambda said: take_more(said.count)),
        }
        super().__init__(loop, connection, verbs, model.log)

    def release(self) -> None:
        """Let whoever waits in the worker go on: it is to end."""
        self._rooms.release()

    def close(self) -> None:
        """Forget what is open, and give up what the worker held: it is gone."""
        super().close()
        self._metrics.close()
        self._shares.leave(self)

    def perform(self, said: VerbSaid, frame: Frame) -> Any:
        """Return what the verb gives."""
        if said.verb == "shared":  # the only one with a descriptor
            self._shared(convert(said.arguments, _SharedSaid), frame)
            return None
        return super().perform(said, frame)

    def tell(self, error: TritonError) -> list[Any]:
        """Return what is told of an error: workers know codes."""
        return [int(error.code), error.message]

    async def _share(self, said: _ShareSaid) -> Sent | None:
        share = await self._shares.get(said.key, self)
        return None if share is None else Sent({"layout": share.layout}, [os.dup(share.descriptor)])

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
