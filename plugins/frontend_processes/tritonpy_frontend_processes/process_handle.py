"""One run of a frontend process, from start to exit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import StartupError, now_ns
from tritonpy.execution import SpawnedProcess
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.processes import describe_exit
from tritonpy_frontend_processes.heartbeat import monitor_heartbeat
from tritonpy_frontend_processes.rpc_session import FrontendRpcSession
from tritonpy_ipc import Frame, Kind

_STOP_TIMEOUT_S = 5.0  # after STOP, or after its socket closes


class ProcessHandle:
    """A running frontend process.

    `started` is done when the process accepts connections, or fails with StartupError.
    `on_death(reason, lifetime in seconds)` is called when it dies later without a stop. An
    unresponsive process is killed. All methods run on the event loop's thread.
    """

    def __init__(
        self,
        name: str,
        process: SpawnedProcess,
        connection: socket.socket,
        make_session: Callable[[Connection], FrontendRpcSession],
        on_death: Callable[[str, float], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.process = process
        self.alive = True
        self.started: asyncio.Future[None] = loop.create_future()
        self._name = name
        self._on_death = on_death
        self._started_ns = now_ns()
        self._stopping = False
        self._connection = Connection(loop, connection, self._handle_frame, self._connection_lost)
        self.session = make_session(self._connection)
        self._exited: asyncio.Future[None] = loop.create_future()
        self._exit_task: asyncio.Task[None] | None = None
        self._monitor: asyncio.Task[None] | None = None

    def send_start(self, start: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Send the START message. `descriptors` are closed once they are sent."""
        self._connection.send(Kind.START, extras=start, descriptors=descriptors)

    async def stop(self) -> None:
        """Stop the process, by force after a timeout."""
        self._stopping = True
        if self.alive:
            self._connection.send(Kind.STOP)
            await asyncio.wait((self._exited,), timeout=_STOP_TIMEOUT_S)
        await self.end()

    async def end(self) -> None:
        """Kill the process if it still runs, and wait for its exit."""
        self._stopping = True
        self.started.cancel()
        self.process.kill()
        if self.alive:
            self._connection.close()
            self._connection_lost("")
        await self._exited

    def _handle_frame(self, frame: Frame) -> None:
        if frame.kind == Kind.STARTED and not self.started.done():
            self.started.set_result(None)
            self._monitor = asyncio.get_running_loop().create_task(
                monitor_heartbeat(self._send_heartbeat, self._kill_unresponsive)
            )
        elif frame.kind == Kind.FAILED and not self.started.done():
            self.started.set_exception(StartupError(str(frame.extras.get("message"))))
        elif frame.kind != Kind.STOPPED:
            self.session.handle_frame(frame)

    async def _send_heartbeat(self) -> None:
        await self.session.call("heartbeat", {})

    def _kill_unresponsive(self, reason: str) -> None:
        if self.alive and not self._stopping:
            self.process.kill()
            self._connection.close()
            self._connection_lost(reason)

    def _connection_lost(self, reason: str) -> None:
        self.alive = False
        if self._monitor is not None:
            self._monitor.cancel()
        self.session.close()
        self._exit_task = asyncio.get_running_loop().create_task(self._reap(reason))

    async def _reap(self, reason: str) -> None:
        status = await asyncio.to_thread(self._wait)
        reason = reason or describe_exit(status)
        if not self.started.done():
            self.started.set_exception(
                StartupError(f"{self._name} died during its start: {reason}")
            )
        elif not self._stopping and self.started.exception() is None:
            self._on_death(reason, (now_ns() - self._started_ns) / 1e9)
        self._exited.set_result(None)

    def _wait(self) -> int | None:
        status = self.process.wait(_STOP_TIMEOUT_S)
        if status is None:
            self.process.kill()
            status = self.process.wait(_STOP_TIMEOUT_S)
        return status
