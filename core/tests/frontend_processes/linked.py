"""An engine, and what the frontends of another process would have of it, joined by a socket: each end on an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from tritonpy.api.engine import Engine
from tritonpy.api.tracer import Tracer
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.frontend_processes import kinds
from tritonpy.frontend_processes.conversation import Conversation
from tritonpy.frontend_processes.process.asking import Asking
from tritonpy.frontend_processes.process.engine import FrontendEngine
from tritonpy.frontend_processes.process.sent import Sent
from tritonpy.frontend_processes.process.tracer import FrontendTracer
from tritonpy.frontend_processes.start import TracerState
from tritonpy.ipc import Frame, Kind
from tritonpy.runners.workers.connection import Connection

_T = TypeVar("_T")


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever)
        self._thread.start()

    def do(self, act: Callable[[], _T]) -> _T:
        """Return what `act` returns, there."""

        async def done() -> _T:
            return act()

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(20)

    def close(self) -> None:
        self.do(lambda: [task.cancel() for task in asyncio.all_tasks() if task is not asyncio.current_task()])
        asyncio.run_coroutine_threadsafe(self.loop.shutdown_default_executor(), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class EngineEnd:
    """The end of the engine's process. `frames` are the kinds that came, `lost` why the other end is gone."""

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
        self.connection = Connection(loop, connection, self._hear, self._gone)
        metrics = ModelMetrics(self.metrics)
        self.conversation = Conversation(engine, tracer, metrics, loop, self.connection, self._changed)

    def _hear(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.conversation.hear(frame)

    def _gone(self, reason: str) -> None:
        self.lost.append(reason)
        self.conversation.close()

    def _changed(self) -> None:
        self.changes += 1

    def _close(self) -> None:
        self.connection.close()
        self.conversation.close()
        self.conversation.forget_metrics()


class FrontendEnd:
    """The end of a frontend process: `engine` is what its frontends have."""

    def __init__(self, connection: socket.socket, tracer: TracerState) -> None:
        self.thread = LoopThread()
        self.lost: list[str] = []
        self.told: list[Any] = []
        self.thread.do(lambda: self._open(connection, tracer))

    def close(self) -> None:
        self.thread.do(self.connection.close)
        self.thread.close()

    def _open(self, connection: socket.socket, tracer: TracerState) -> None:
        loop = self.thread.loop
        self.connection = Connection(loop, connection, self._hear, self.lost.append)
        self.asking = Asking(loop, self.connection)
        self.tracer = FrontendTracer(
            tracer, lambda number, stamps: self.connection.send(kinds.NOTES, [number], extras={"stamps": stamps})
        )
        self.sent = Sent(loop, self.connection, self.tracer)
        self.engine = FrontendEngine(self.asking, self.sent)

    def _hear(self, frame: Frame) -> None:
        if frame.kind == kinds.ANSWER:
            self.sent.answered(frame)
        elif frame.kind == Kind.REPLY:
            self.asking.replied(frame)
        else:
            self.told.append(frame.extras)


@contextmanager
def linked(
    engine: Engine, tracer: Tracer | None = None, state: TracerState | None = None
) -> Iterator[tuple[EngineEnd, FrontendEnd]]:
    """Give both ends; leaving closes them."""
    ours, theirs = socket.socketpair()
    engine_end = EngineEnd(engine, ours, tracer or Tracer())
    frontend_end = FrontendEnd(theirs, state or TracerState(active=False, headers=()))
    try:
        yield engine_end, frontend_end
    finally:
        frontend_end.close()
        engine_end.close()
