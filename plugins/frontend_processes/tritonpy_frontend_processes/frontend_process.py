"""One supervised frontend process, which is restarted when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tritonpy import StartupError
from tritonpy.execution import SpawnedProcess
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.processes import Backoff, open_parent_pipe
from tritonpy_frontend_processes.process_handle import ProcessHandle
from tritonpy_frontend_processes.rpc_session import FrontendRpcSession
from tritonpy_frontend_processes.start_message import StartMessage

log = logging.getLogger("tritonpy.server")
_COMMAND = "tritonpy_frontend_processes.process"
_STDERR = 2


class FrontendProcess:
    """One frontend process. If it dies, it is restarted with increasing delays.

    `make_start_message(index)` returns the START message and the sockets for the process.
    `make_session(connection)` creates its session. All methods run on the event loop's thread.
    """

    def __init__(
        self,
        index: int,
        make_start_message: Callable[[int], tuple[StartMessage, list[int]]],
        make_session: Callable[[Connection], FrontendRpcSession],
    ) -> None:
        self._index = index
        self._name = f"frontend process {index}"
        self._make_start_message = make_start_message
        self._make_session = make_session
        self._backoff = Backoff()
        self._stopped = False
        self._handle: ProcessHandle | None = None
        self._restart: asyncio.Task[None] | None = None
        self._serving: list[str] = []  # frontends whose `serving` was called

    @property
    def pid(self) -> int:
        """The process id, or 0 while no process runs."""
        return 0 if self._handle is None or not self._handle.alive else self._handle.process.pid

    async def start(self) -> None:
        """Start the process and wait until it accepts connections. Raises StartupError."""
        try:
            await self._start_process()
        except OSError as error:  # the system has no free process or descriptor
            raise StartupError(f"{self._name} cannot start: {error}") from error

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Call a method of the process and wait for its result. Does nothing if no process runs."""
        if self._handle is not None and self._handle.alive:
            await self._handle.session.call(verb, arguments)

    async def serving(self, frontend: str) -> None:
        """Tell a frontend that the server is ready, also after each restart of the process."""
        self._serving.append(frontend)
        if self._restart is None or self._restart.done():  # otherwise the restart notifies it
            await self._notify_serving(frontend)

    def notify(self, verb: str, arguments: Any) -> None:
        """Notify the process of a change.

        A process that is not running gets the state when it starts.
        """
        if self._handle is not None and self._handle.alive:
            self._handle.session.notify(verb, arguments)

    def stop_restarting(self) -> None:
        """Disable restarts."""
        self._stopped = True
        if self._restart is not None:
            self._restart.cancel()

    async def stop(self) -> None:
        """Stop the process, by force after a timeout."""
        self.stop_restarting()
        if self._restart is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._restart
        if self._handle is not None:
            await self._handle.stop()
            self._handle.session.forget_metrics()

    async def _start_process(self) -> None:
        process, connection = self._launch()
        previous, self._handle = (
            self._handle,
            ProcessHandle(self._name, process, connection, self._make_session, self._process_died),
        )
        try:
            start, sockets = self._make_start_message(self._index)
            self._handle.send_start(msgspec.to_builtins(start), [open_parent_pipe(), *sockets])
            await asyncio.shield(self._handle.started)
        except BaseException:
            await self._handle.end()
            raise
        finally:
            if previous is not None:
                previous.session.forget_metrics()

    async def _notify_serving(self, frontend: str) -> None:
        await self.call("serving", {"frontend": frontend})

    def _launch(self) -> tuple[SpawnedProcess, socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: files in the working directory must not shadow modules.
            command = [sys.executable, "-P", "-m", _COMMAND, str(theirs.fileno())]
            try:
                return SpawnedProcess.start(command, theirs, _STDERR), ours
            except OSError:
                ours.close()
                raise

    def _process_died(self, reason: str, lifetime_s: float) -> None:
        if self._stopped:
            return
        log.error("%s died: %s", self._name, reason)
        self._restart = asyncio.get_running_loop().create_task(self._restart_process(lifetime_s))

    async def _restart_process(self, lifetime_s: float) -> None:
        delay_s = self._backoff.after_death_s(lifetime_s)
        while True:
            if delay_s:
                log.warning("%s restarts in %g s", self._name, delay_s)
                await asyncio.sleep(delay_s)
            try:
                await self.start()
                for frontend in self._serving:
                    await self._notify_serving(frontend)
            except StartupError as error:
                log.error("%s failed to restart: %s", self._name, error)
                delay_s = self._backoff.after_failed_start_s()
            else:
                log.info("%s restarted", self._name)
                return
