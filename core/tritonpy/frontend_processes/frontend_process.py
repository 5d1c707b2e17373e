"""The place of one frontend process: there is one in it, or soon will be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tritonpy.errors import StartupError
from tritonpy.frontend_processes.conversation import Conversation
from tritonpy.frontend_processes.incarnation import Incarnation
from tritonpy.frontend_processes.start import Start
from tritonpy.runners.workers.backoff import Backoff
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.lifeline import lifeline
from tritonpy.runners.workers.spawned import SpawnedProcess

log = logging.getLogger("tritonpy.server")
_COMMAND = "tritonpy.frontend_processes.process"
_STDERR = 2


class FrontendProcess:
    """One process, and its successors: one that dies is started again, with longer and longer pauses.

    `start_of(index)` says what to run, and gives the sockets that it gets; `converse(connection)` makes its conversation. Everything here runs
    on the loop's thread.
    """

    def __init__(
        self,
        index: int,
        start_of: Callable[[int], tuple[Start, list[int]]],
        converse: Callable[[Connection], Conversation],
    ) -> None:
        self._index = index
        self._name = f"frontend process {index}"
        self._start_of = start_of
        self._converse = converse
        self._backoff = Backoff()
        self._stopped = False
        self._now: Incarnation | None = None
        self._restart: asyncio.Task[None] | None = None
        self._serving: list[str] = []  # frontends that know that the server is ready

    @property
    def pid(self) -> int:
        """The number of the process, 0 while there is none."""
        return 0 if self._now is None or not self._now.alive else self._now.process.pid

    async def start(self) -> None:
        """Start it and wait until it accepts connections. Raises StartupError."""
        try:
            await self._begin()
        except OSError as error:  # there is no room for a process, or no descriptor left
            raise StartupError(f"{self._name} cannot be started: {error}") from error

    async def ask(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Have it do something and wait until it did; one that is not there has nothing to do."""
        if self._now is not None and self._now.alive:
            await self._now.conversation.ask(verb, arguments)

    async def serving(self, frontend: str) -> None:
        """Tell a frontend of it, and of its successors, that the server became ready."""
        self._serving.append(frontend)
        if self._restart is None or self._restart.done():  # otherwise the restart tells it
            await self._tell_serving(frontend)

    def tell(self, verb: str, arguments: Any) -> None:
        """Tell it what has changed; one that is not there learns it when it starts."""
        if self._now is not None and self._now.alive:
            self._now.conversation.tell(verb, arguments)

    def give_up(self) -> None:
        """Start it again no more."""
        self._stopped = True
        if self._restart is not None:
            self._restart.cancel()

    async def stop(self) -> None:
        """End it, in its own time where that is not long."""
        self.give_up()
        if self._restart is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._restart
        if self._now is not None:
            await self._now.stop()
            self._now.conversation.forget_metrics()

    async def _begin(self) -> None:
        process, connection = self._launch()
        previous, self._now = self._now, Incarnation(self._name, process, connection, self._converse, self._lost)
        try:
            start, sockets = self._start_of(self._index)
            self._now.begin(msgspec.to_builtins(start), [lifeline(), *sockets])
            await asyncio.shield(self._now.started)
        except BaseException:
            await self._now.end()
            raise
        finally:
            if previous is not None:
                previous.conversation.forget_metrics()

    async def _tell_serving(self, frontend: str) -> None:
        await self.ask("serving", {"frontend": frontend})

    def _launch(self) -> tuple[SpawnedProcess, socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: what lies in the working directory must not stand in for a module of the same name.
            command = [sys.executable, "-P", "-m", _COMMAND, str(theirs.fileno())]
            try:
                return SpawnedProcess.start(command, theirs, _STDERR), ours
            except OSError:
                ours.close()
                raise

    def _lost(self, reason: str, lived_s: float) -> None:
        if self._stopped:
            return
        log.error("%s died: %s", self._name, reason)
        self._restart = asyncio.get_running_loop().create_task(self._start_again(lived_s))

    async def _start_again(self, lived_s: float) -> None:
        delay_s = self._backoff.after_death_s(lived_s)
        while True:
            if delay_s:
                log.warning("%s is started again in %g s", self._name, delay_s)
                await asyncio.sleep(delay_s)
            try:
                await self.start()
                for frontend in self._serving:
                    await self._tell_serving(frontend)
            except StartupError as error:
                log.error("%s failed to start again: %s", self._name, error)
                delay_s = self._backoff.after_failed_start_s()
            else:
                log.info("%s is started again", self._name)
                return
