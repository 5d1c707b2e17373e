"""One life of a worker process, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.api.worker import Launcher, WorkerProcess
from tritonpy.errors import Internal, TritonError, error_of
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.progress import Progress
from tritonpy.runners.host_policies import HostPolicy
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.conversation import Conversation
from tritonpy.runners.workers.death import describe
from tritonpy.runners.workers.executions import Execution, Executions
from tritonpy.runners.workers.lifeline import lifeline
from tritonpy.runners.workers.off_loop import on_a_thread
from tritonpy.runners.workers.output import Output
from tritonpy.runners.workers.questions import TakeMore
from tritonpy.runners.workers.said import convert
from tritonpy.types import Batch, InferRequest

if TYPE_CHECKING:
    from tritonpy.runners.workers.neighbours import Neighbours

_REAP_S = 2.0  # between the end of a worker's socket and that of its process, before it is killed
_MEMORY_LIMIT_S = 5.0
FINALIZE_LIMIT_S = 30.0  # for a worker's own clean-up, before it is killed


class Worker:
    """A process, its socket and its output; everything but `launch` runs on the loop's thread.

    `done(executions)` is called when executions are over, `ended(error)` once when the process is gone without having been stopped, and
    `take_more(n)` when the worker asks for requests to join the running ones.
    """

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        launcher: Launcher,
        neighbours: Neighbours,
        loop: asyncio.AbstractEventLoop,
        policy: HostPolicy | None,
        done: Callable[[Sequence[Execution]], None],
        ended: Callable[[TritonError], None],
        take_more: TakeMore,
    ) -> None:
        self._model = model
        self._instance = instance
        self._launcher = launcher
        self._neighbours = neighbours
        self._loop = loop
        self._policy = policy
        self._done = done
        self._ended = ended
        self._take_more = take_more
        self._doomed = ""  # why it was killed, when the server did it
        self._stopping = False
        self._ending: asyncio.Task[None] | None = None
        self._gone = loop.create_future()
        self._started: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._log = logging.LoggerAdapter(
            logging.getLogger("tritonpy.worker"),
            {"model": model.name, "version": model.version, "instance": instance.name},
        )
        self.asks_ready = False
        self.tells_memory = False
        self.pid = 0
        self.checks_strings = False  # it walks large BYTES tensors itself, when it decodes them
        self._process: WorkerProcess
        self._output: Output
        self._progress: Progress
        self._connection: Connection
        self._conversation: Conversation
        self.executions: Executions

    async def start(self) -> None:
        """Start the process and wait until it can execute. Raises what it says when it cannot."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._output = Output(self._loop, read, self._log)
        try:
            self._process = await self._launch(theirs, write)
        except BaseException:
            ours.close()
            self._output.close()
            raise
        self._connection = Connection(self._loop, ours, self._received, self._lost)
        self.executions = Executions(self._model, self._connection)
        self._conversation = Conversation(
            self._model,
            self._instance,
            self._loop,
            self._connection,
            self.executions,
            self._neighbours,
            self._take_more,
        )
        try:
            message = dict(self._launcher.start_message(self._instance))
            if self._policy is not None:
                message["host_policy"] = {"cores": self._policy.cores, "node": self._policy.node}
            progress = Progress.create()
            self._progress = Progress(os.dup(progress))
            self._connection.send(Kind.START, extras=message, descriptors=(progress, lifeline()))
            said = await self._started
        except BaseException:
            self._stopping = True
            if self._started.cancel() or self._started.cancelled():  # it knows of nothing and would not end by itself
                self._process.kill()
            self._lost("")
            await asyncio.wait((self._gone,))
            raise
        self.asks_ready = bool(said.get("asks_ready"))
        self.checks_strings = bool(said.get("checks_strings"))
        self.tells_memory = bool(said.get("tells_memory"))
        self.pid = int(said.get("pid") or self._process.pid)
        self._instance.max_open = said.get("max_open")
        if said.get("unbound"):
            self._log.warning("host policy of instance '%s': %s", self._instance.name, said["unbound"])

    async def is_ready(self) -> bool:
        """Ask the worker's own readiness check. Raises TritonError."""
        return bool(await self._conversation.ask("is_ready", {})) if self.asks_ready else True

    async def memory_usage(self) -> list[MemoryUsage]:
        """Return what its backend says. Raises TritonError, and TimeoutError where the worker has no time to answer."""
        asking = self._conversation.ask("memory_usage", {})
        return convert(await asyncio.wait_for(asking, _MEMORY_LIMIT_S), list[MemoryUsage])

    async def stop(self) -> None:
        """Let the worker clean up and wait for its end; it is killed when that takes too long."""
        self._stopping = True
        self._conversation.release()
        self._connection.send(Kind.STOP)
        done, _ = await asyncio.wait((self._gone,), timeout=FINALIZE_LIMIT_S)
        if not done:
            self._log.warning("%s did not finish in %g s and is killed", self._instance.name, FINALIZE_LIMIT_S)
            self.kill("it did not finish in time")
            await asyncio.wait((self._gone,))

    @property
    def ending(self) -> bool:
        """Whether the worker is gone and only its process is still waited for: what is given to it now is lost."""
        return self._ending is not None

    def cancel(self, request: InferRequest) -> None:
        """Tell the process that nobody waits for `request` any more, and the models that it called to answer it."""
        self.executions.cancel(request)
        self._conversation.cancelled(request)

    def kill(self, reason: str) -> None:
        """End the process at once; its requests are answered with `reason`."""
        self._doomed = reason
        self._process.kill()

    def unfinished(self) -> list[Batch]:
        """Forget and return, once the process is gone, the batches that another worker may execute: see `Executions.unfinished`."""
        return self.executions.unfinished(self._progress.begun)

    async def _launch(self, theirs: socket.socket, write: int) -> WorkerProcess:
        def launch() -> WorkerProcess:
            try:
                return self._launcher.launch(self._instance, theirs, write)
            finally:
                theirs.close()
                os.close(write)

        launching = asyncio.ensure_future(on_a_thread(launch))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            with suppress(Exception):  # a thread cannot be stopped: what it still starts has nobody to work for
                process = await launching
                process.kill()
                await on_a_thread(partial(process.wait, _REAP_S))
            raise

    def _received(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == Kind.ANSWERS:
            self.executions.take(frame, self._done)
        elif kind == Kind.STARTED and not self._started.done():
            self._started.set_result(frame.extras)
        elif kind == Kind.FAILED and not self._started.done():
            extras = frame.extras
            self._started.set_exception(error_of(extras["code"], extras["message"]))
        elif kind != Kind.STOPPED or not self._stopping:
            self._conversation.hear(frame)

    def _lost(self, reason: str) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._end(reason))

    async def _end(self, reason: str) -> None:
        status = await self._reap()
        reason = self._doomed or reason or describe(status)
        error = Internal(f"Stub process '{self._instance.name}' is not healthy: {reason}.")
        self._conversation.close(error)
        self._gone.set_result(None)
        if not self._started.done():
            self._started.set_exception(self._with_tail(error))
        elif not self._stopping:
            self._ended(error)

    def _with_tail(self, error: TritonError) -> TritonError:
        tail = list(self._output.tail)
        return Internal("\n".join([error.message, "Its last output:", *tail])) if tail else error

    async def _reap(self) -> int | None:
        """Wait for the end of the process, or bring it about; then close what is left of it."""
        status = await on_a_thread(partial(self._process.wait, _REAP_S))
        if status is None:
            self._process.kill()
            status = await on_a_thread(partial(self._process.wait, _REAP_S))
        self._output.close()
        self._connection.close()
        return status
