"""RPC between the server and a worker: calls, queries and notifications of both sides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tritonpy import InferRequest, InstanceContext, ModelContext, TritonError, error_of
from tritonpy_engine_rpc.async_rpc_client import AsyncRpcClient
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.messages import convert
from tritonpy_ipc import Frame, Kind, ProtocolError
from tritonpy_workers.calls import WorkerCalls
from tritonpy_workers.executions import Executions
from tritonpy_workers.worker_rpc_server import TakeMore, WorkerRpcServer

if TYPE_CHECKING:
    from tritonpy_workers.worker_registry import WorkerRegistry


class _ResultMessage(msgspec.Struct):
    """The result of a query: a value, or the code and text of an error."""

    value: Any = None
    error: tuple[Annotated[int, msgspec.Meta(ge=0, le=7)], str] | None = None


class RpcSession:
    """The RPC session with one worker; all methods run on the event loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        registry: WorkerRegistry,
        take_more: TakeMore,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._calls = WorkerCalls(model, loop, connection, executions, registry)
        self._rpc_server = WorkerRpcServer(
            model, instance, loop, connection, executions, registry.shared_state(model), take_more
        )
        self._rpc_client = AsyncRpcClient(loop, connection, _read_result)
        self._closed = False
        self._handlers: dict[int, Callable[[Frame], None]] = {
            Kind.CALL: self._calls.make,
            Kind.CALL_CANCEL: self._calls.cancel,
            Kind.CALL_CONSUMED: self._calls.consume,
            Kind.CALL_ABANDONED: self._calls.abandon,
            Kind.CALL_AWAITED: self._calls.mark_awaited,
            Kind.QUERY: self._rpc_server.handle_query,
            Kind.NOTIFY: self._rpc_server.handle_notification,
            Kind.QUERY_RESULT: self._rpc_client.handle_result,
        }

    def handle(self, frame: Frame) -> None:
        """Handle a frame of the worker. Raises `ProtocolError` for an unexpected frame."""
        handler = self._handlers.get(frame.kind)
        if handler is None:
            raise ProtocolError(f"received an unexpected frame of kind {frame.kind}")
        handler(frame)

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Send a query to the worker. Raises its `TritonError`, or the error that it died of."""
        return await self._rpc_client.call(verb, arguments)

    def cancelled(self, request: InferRequest) -> None:
        """Cancel the calls that the worker made to process the cancelled `request`."""
        self._calls.caller_cancelled(request)

    def release(self) -> None:
        """Grant all streams of the worker unlimited credit, because it is about to end."""
        self._rpc_server.release()

    def close(self, error: TritonError) -> None:
        """Fail queries in flight and cancel calls: the worker is gone. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._rpc_client.close(error)
        self._calls.close()
        self._rpc_server.close()


def _read_result(frame: Frame) -> Any | TritonError:
    result = convert(frame.extras, _ResultMessage)
    return result.value if result.error is None else error_of(*result.error)
