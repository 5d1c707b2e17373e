"""The engine's end of the connection to one frontend process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from tritonpy import Engine, TritonError
from tritonpy.execution import LogRecordMessage, write_record
from tritonpy.metrics import ModelMetrics
from tritonpy.tracing import Tracer
from tritonpy_engine_rpc.async_rpc_client import AsyncRpcClient
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.engine import EngineCallMessage, call_method, run_in_thread
from tritonpy_engine_rpc.messages import convert, decode_named_error
from tritonpy_engine_rpc.metric_handles import MetricHandles
from tritonpy_engine_rpc.rpc_server import QueryMessage, RpcHandlers, RpcServer
from tritonpy_frontend_processes.frontend_session import FrontendSession
from tritonpy_ipc import Frame, Kind, ProtocolError

log = logging.getLogger("tritonpy.server")


class _LoadMessage(msgspec.Struct):
    """A model to load. The frame's row of tensors holds the contents of its files, by name."""

    name: str
    config: str | None
    versions: list[int]


class _MemoryMessage(msgspec.Struct):
    """The result of `RequestMemory.values` in a frontend process."""

    process: str
    values: list[int]


class _EngineRpcServer(RpcServer):
    """The handlers of RPC calls from a frontend process.

    Only `load_model` has tensors: files may be large.
    """

    def __init__(
        self,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        metrics: MetricHandles,
        changed: Callable[[], None],
        request_memory: dict[str, list[int]],
    ) -> None:
        handlers: RpcHandlers = {
            **metrics.verbs(),
            "request_memory": (
                _MemoryMessage,
                lambda message: request_memory.update({message.process: message.values}),
            ),
            "log_record": (LogRecordMessage, write_record),
            "engine": (EngineCallMessage, self._call),
        }
        super().__init__(loop, connection, handlers, log)
        self._engine = engine
        self._changed = changed

    async def _call(self, message: EngineCallMessage) -> Any:
        try:
            return await call_method(self._engine, message)
        finally:
            if message.method == "operate":  # the operation may have changed the routing of a model
                self._changed()

    def execute(self, message: QueryMessage, frame: Frame) -> Any:
        if message.verb != "load_model":
            return super().execute(message, frame)
        load = convert(message.arguments, _LoadMessage)
        rows = self._connection.tensors(frame, 1)
        views: dict[str, np.ndarray[Any, Any]] = {
            file.name: file.data for row in rows for file in row
        }
        return run_in_thread(
            lambda: self._engine.load_model(
                load.name,
                load.config,
                {path: view.tobytes() for path, view in views.items()} or None,
                load.versions,
            )
        )


class FrontendRpcSession:
    """The session with one frontend process. All methods run on the event loop's thread.

    - `metrics`: the metrics of frontends. `forget_metrics` releases this process's handles. It runs
      after `close`, so that a new process finds the counts.
    - `changed()`: called after an operation that may have changed the models.
    - `request_memory`: gets the request memory that processes report.
    """

    def __init__(
        self,
        engine: Engine,
        tracer: Tracer,
        metrics: ModelMetrics,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        changed: Callable[[], None],
        request_memory: dict[str, list[int]] | None = None,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._requests = FrontendSession(engine, tracer, loop, connection)
        self._metrics = MetricHandles(metrics)
        self._rpc_server = _EngineRpcServer(
            engine,
            loop,
            connection,
            self._metrics,
            changed,
            {} if request_memory is None else request_memory,
        )
        self._rpc_client = AsyncRpcClient(loop, connection, _outcome)
        self._handlers: dict[int, Callable[[Frame], None]] = {
            **self._requests.handlers,
            Kind.QUERY: self._rpc_server.handle_query,
            Kind.NOTIFY: self._rpc_server.handle_notification,
            Kind.QUERY_RESULT: self._rpc_client.handle_result,
        }

    def handle_frame(self, frame: Frame) -> None:
        """Handle a frame. Raises ProtocolError for a kind that frontend processes never send."""
        handler = self._handlers.get(frame.kind)
        if handler is None:
            raise ProtocolError(f"unexpected frame of kind {frame.kind}")
        handler(frame)

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Call a method of the process and wait for its result.

        Does nothing if the process is gone.

        Raises the TritonError of the result.
        """
        await self._rpc_client.call(verb, arguments)

    def notify(self, verb: str, arguments: Any) -> None:
        """Notify the process of a change."""
        self._connection.send(
            Kind.NOTIFY, extras={"verb": verb, "arguments": msgspec.to_builtins(arguments)}
        )

    def close(self) -> None:
        """Cancel the process's requests and calls, because its connection is closed."""
        self._rpc_client.close(None)
        self._rpc_server.close()
        self._requests.close()

    def forget_metrics(self) -> None:
        """Release the process's metrics, unless another process uses them."""
        self._metrics.close()


def _outcome(frame: Frame) -> TritonError | None:
    error = frame.extras.get("error")
    return None if error is None else decode_named_error(error)
