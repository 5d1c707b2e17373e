"""RPC server for the queries and notifications of a worker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import msgspec

from tritonpy import InstanceContext, ModelContext, TritonError
from tritonpy.execution import LogLineMessage, LogRecordMessage, ModelLog, write_record
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.engine import EngineCallMessage, call_method
from tritonpy_engine_rpc.messages import convert
from tritonpy_engine_rpc.metric_handles import MetricHandles
from tritonpy_engine_rpc.rpc_server import (
    QueryMessage,
    RpcHandlers,
    RpcServer,
    ValueWithDescriptors,
)
from tritonpy_ipc import Frame, ProtocolError
from tritonpy_workers.executions import Executions
from tritonpy_workers.model_control import LoadMessage, ModelControl, ReadyMessage, UnloadMessage
from tritonpy_workers.shared_worker_state import SharedBlock, SharedWorkerState
from tritonpy_workers.stream_credits import CreditMessage, StreamCredits

# Sends up to n waiting requests to the worker and returns the number of their execution, or None if
# no request waits.
TakeMore = Callable[[int], Awaitable[int | None]]


class _ShareMessage(msgspec.Struct):
    """A query for a shared block.

    The result is its layout and descriptor, or None if the worker must make the block.
    """

    key: str


class _SharedMessage(msgspec.Struct):
    """A block that the worker made, with its descriptor; no descriptor if that failed."""

    key: str
    layout: Any = None


class _TakeMoreMessage(msgspec.Struct):
    """The maximum number of additional requests."""

    count: Annotated[int, msgspec.Meta(ge=1)]


class WorkerRpcServer(RpcServer):
    """Executes the queries of a worker; all methods run on the event loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        shared_state: SharedWorkerState,
        take_more: TakeMore,
    ) -> None:
        self._shared_state = shared_state
        self._metrics = MetricHandles(model.metrics)
        self._credits = StreamCredits(loop, executions)
        control = ModelControl(model.engine)
        verbs: RpcHandlers = {
            "log": (LogLineMessage, ModelLog(model, instance).write),
            "log_record": (LogRecordMessage, write_record),
            **self._metrics.verbs(),
            "load_model": (LoadMessage, control.load),
            "unload_model": (UnloadMessage, control.unload),
            "is_model_ready": (ReadyMessage, control.is_ready),
            "engine": (EngineCallMessage, partial(call_method, model.engine)),
            "credit": (CreditMessage, self._credits.wait),
            "share": (_ShareMessage, self._share),
            "take_more": (_TakeMoreMessage, lambda message: take_more(message.count)),
        }
        super().__init__(loop, connection, verbs, model.log)

    def release(self) -> None:
        """Resume all threads of the worker that wait for credit, because it is about to end."""
        self._credits.release()

    def close(self) -> None:
        """Cancel queries in flight and release the worker's resources: it is gone."""
        super().close()
        self._metrics.close()
        self._shared_state.release(self)

    def execute(self, message: QueryMessage, frame: Frame) -> Any:
        """Return the result of the handler."""
        if message.verb == "shared":  # the only verb with a descriptor
            self._shared(convert(message.arguments, _SharedMessage), frame)
            return None
        return super().execute(message, frame)

    def error_payload(self, error: TritonError) -> list[Any]:
        """Return `error` as code and text: workers do not need its class."""
        return [int(error.code), error.message]

    async def _share(self, message: _ShareMessage) -> ValueWithDescriptors | None:
        share = await self._shared_state.get(message.key, self)
        return (
            None
            if share is None
            else ValueWithDescriptors({"layout": share.layout}, [os.dup(share.descriptor)])
        )

    def _shared(self, message: _SharedMessage, frame: Frame) -> None:
        if not self._shared_state.is_maker(message.key, self):
            raise ProtocolError(f"'{message.key}' was shared by a worker that is not its maker")
        if not frame.descriptors:
            self._shared_state.fail(message.key)
            return
        if len(frame.descriptors) > 1:
            raise ProtocolError(
                f"'{message.key}' was shared with {len(frame.descriptors)} descriptors"
            )
        (descriptor,) = frame.take_descriptors()
        self._shared_state.put(message.key, SharedBlock(descriptor, message.layout))
