"""An engine and a frontend's engine, joined by a socket. Each end has its own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from tritonpy.api.engine import Engine
from tritonpy.api.trace_sink import Tracer
from tritonpy_engine_rpc.connection import Connection
from tritonpy_frontend_processes import kinds
from tritonpy_frontend_processes.process.engine import FrontendEngine
from tritonpy_frontend_processes.process.forwarded_requests import ForwardedRequests
from tritonpy_frontend_processes.process.rpc_client import EngineRpcClient
from tritonpy_frontend_processes.process.tracer import FrontendTracer
from tritonpy_frontend_processes.rpc_session import FrontendRpcSession
from tritonpy_frontend_processes.start_message import TracerState
from tritonpy_ipc import Frame, Kind
from tritonpy_metrics import CustomMetrics, ModelMetrics

_T = TypeVar("_T")


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever)
        self._thread.start()

    def do(self, act: Callable[[], _T]) -> _T:
        """Return the result of `act` on the event loop."""

        async def done() -> _T:
            return act()

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(20)

    def close(self) -> None:
        self.do(
            lambda: [
                task.cancel() for task in asyncio.all_tasks() if task is not asyncio.current_task()
            ]
        )
        asyncio.run_coroutine_threadsafe(self.loop.shutdown_default_executor(), self.loop).result(
            20
        )
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class EngineEnd:
    """The engine's end.

    `frames` are the kinds of received frames, `lost` is the reason of a disconnect.
    """

    def __init__(self, engine: Engine, connection: socket.socket, tracer: Tracer) -> None:
        self.thread = LoopThread()
        self.metrics = CustomMetrics()
        self.frames: list[Frame] = []
        self.lost: list[str] = []
        self.changes = 0
        self.thread.do(lambda: self._open(engine, connection, tracer))

    def close(self) -> None:
        self.thread.do(self._close)
        self.thread.close()

    def _open(self, engine: Engine, connection: socket.socket, tracer: Tracer) -> None:
        loop = self.thread.loop
        self.connection = Connection(loop, connection, self._handlers, self._connection_lost)
        metrics = ModelMetrics(self.metrics)
        self.session = FrontendRpcSession(
            engine, tracer, metrics, loop, self.connection, self._changed
        )

    def _handlers(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.session.handle_frame(frame)

    def _connection_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self.session.close()

    def _changed(self) -> None:
        self.changes += 1

    def _close(self) -> None:
        self.connection.close()
        self.session.close()
        self.session.forget_metrics()


class FrontendEnd:
    """The frontend process's end. `engine` is the engine of its frontends."""

    def __init__(self, connection: socket.socket, tracer: TracerState) -> None:
        self.thread = LoopThread()
        self.lost: list[str] = []
        self.descriptions: list[Any] = []
        self.thread.do(lambda: self._open(connection, tracer))

    def close(self) -> None:
        self.thread.do(self.connection.close)
        self.thread.close()

    def _open(self, connection: socket.socket, tracer: TracerState) -> None:
        loop = self.thread.loop
        self.connection = Connection(loop, connection, self._handlers, self.lost.append)
        self.rpc = EngineRpcClient(loop, self.connection)
        self.tracer = FrontendTracer(
            tracer,
            lambda number, stamps: self.connection.send(
                kinds.NOTES, [number], extras={"stamps": stamps}
            ),
        )
        self.forwarded = ForwardedRequests(loop, self.connection, self.tracer)
        self.engine = FrontendEngine(self.rpc, self.forwarded)

    def _handlers(self, frame: Frame) -> None:
        if frame.kind == kinds.RESPONSES:
            self.forwarded.handle_responses(frame)
        elif frame.kind == Kind.QUERY_RESULT:
            self.rpc.handle_reply(frame)
        else:
            self.descriptions.append(frame.extras)


@contextmanager
def linked(
    engine: Engine, tracer: Tracer | None = None, state: TracerState | None = None
) -> Iterator[tuple[EngineEnd, FrontendEnd]]:
    """Provide both ends, and close them at the end."""
    ours, theirs = socket.socketpair()
    engine_end = EngineEnd(engine, ours, tracer or Tracer())
    frontend_end = FrontendEnd(theirs, state or TracerState(active=False, headers=()))
    try:
        yield engine_end, frontend_end
    finally:
        frontend_end.close()
        engine_end.close()
