"""One process from its start to its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy.clock import now_ns
from tritonpy.errors import StartupError
from tritonpy.frontend_processes.conversation import Conversation
from tritonpy.frontend_processes.pulse import watch
from tritonpy.ipc import Frame, Kind
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.death import describe
from tritonpy.runners.workers.spawned import SpawnedProcess

_PATIENCE_S = 5.0  # of one that was told to stop, or whose socket is closed


class Incarnation:
    """`started` is done when the process accepts connections, or fails with StartupError; `lost(reason, seconds that it lived)` is called when
    it dies after that unasked. One that lives and answers nothing is killed. Everything here runs on the loop's thread.
    """

    def __init__(
        self,
        name: str,
        process: SpawnedProcess,
        connection: socket.socket,
        converse: Callable[[Connection], Conversation],
        lost: Callable[[str, float], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.process = process
        self.alive = True
        self.started: asyncio.Future[None] = loop.create_future()
        self._name = name
        self._lost = lost
        self._born_ns = now_ns()
        self._ending = False
        self._connection = Connection(loop, connection, self._heard, self._gone)
        self.conversation = converse(self._connection)
        self._buried: asyncio.Future[None] = loop.create_future()
        self._burial: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None

    def begin(self, start: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Say what to run; `descriptors` are closed once they are sent."""
        self._connection.send(Kind.START, extras=start, descriptors=descriptors)

    async def stop(self) -> None:
        """End it in its own time, which is short; then by force."""
        self._ending = True
        if self.alive:
            self._connection.send(Kind.STOP)
            await asyncio.wait((self._buried,), timeout=_PATIENCE_S)
        await self.end()

    async def end(self) -> None:
        """End it at once, where it has not ended."""
        self._ending = True
        self.started.cancel()
        self.process.kill()
        if self.alive:
            self._connection.close()
            self._gone("")
        await self._buried

    def _heard(self, frame: Frame) -> None:
        if frame.kind == Kind.STARTED and not self.started.done():
            self.started.set_result(None)
            self._watch = asyncio.get_running_loop().create_task(watch(self._feel, self._silent))
        elif frame.kind == Kind.FAILED and not self.started.done():
            self.started.set_exception(StartupError(str(frame.extras.get("message"))))
        elif frame.kind != Kind.STOPPED:
            self.conversation.hear(frame)

    async def _feel(self) -> None:
        await self.conversation.ask("pulse", {})

    def _silent(self, reason: str) -> None:
        if self.alive and not self._ending:
            self.process.kill()
            self._connection.close()
            self._gone(reason)

    def _gone(self, reason: str) -> None:
        self.alive = False
        if self._watch is not None:
            self._watch.cancel()
        self.conversation.close()
        self._burial = asyncio.get_running_loop().create_task(self._bury(reason))

    async def _bury(self, reason: str) -> None:
        status = await asyncio.to_thread(self._wait)
        reason = reason or describe(status)
        if not self.started.done():
            self.started.set_exception(StartupError(f"{self._name} died while it started: {reason}"))
        elif not self._ending and self.started.exception() is None:
            self._lost(reason, (now_ns() - self._born_ns) / 1e9)
        self._buried.set_result(None)

    def _wait(self) -> int | None:
        status = self.process.wait(_PATIENCE_S)
        if status is None:
            self.process.kill()
            status = self.process.wait(_PATIENCE_S)
        return status
