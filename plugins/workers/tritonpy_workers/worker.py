"""A worker process, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy import (
    Batch,
    InferRequest,
    InstanceContext,
    Internal,
    MemoryUsage,
    ModelContext,
    TritonError,
    error_of,
)
from tritonpy.execution import LOGGER, HostPolicy, Launcher, WorkerProcess
from tritonpy.frontend import LogSettings, follow_log_settings
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.engine import run_in_thread
from tritonpy_engine_rpc.messages import convert
from tritonpy_engine_rpc.processes import describe_exit, open_parent_pipe
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.progress import Progress
from tritonpy_workers.executions import Executions, WorkerExecution
from tritonpy_workers.rpc_session import RpcSession
from tritonpy_workers.worker_output import WorkerOutput
from tritonpy_workers.worker_rpc_server import TakeMore

if TYPE_CHECKING:
    from tritonpy_workers.worker_registry import WorkerRegistry

_REAP_S = 2.0  # between the end of a worker's socket and that of its process, before it is killed
_MEMORY_LIMIT_S = 5.0
FINALIZE_LIMIT_S = 30.0  # for the cleanup of a worker, before it is killed


class Worker:
    """A process with its socket and output; all but `launch` runs on the event loop's thread.

    `done(executions)` is called when executions have ended. `ended(error)` is called once if the
    process ends without having been stopped. `take_more(n)` is called when the worker requests
    additional requests for a running execution.
    """

    def __init__(
        self,
        model: ModelContext,
        instance: InstanceContext,
        launcher: Launcher,
        registry: WorkerRegistry,
        loop: asyncio.AbstractEventLoop,
        policy: HostPolicy | None,
        done: Callable[[Sequence[WorkerExecution]], None],
        ended: Callable[[TritonError], None],
        take_more: TakeMore,
    ) -> None:
        self._model = model
        self._instance = instance
        self._launcher = launcher
        self._registry = registry
        self._loop = loop
        self._policy = policy
        self._done = done
        self._ended = ended
        self._take_more = take_more
        self._kill_reason = ""  # why the server killed it
        self._stopping = False
        self._ending: asyncio.Task[None] | None = None
        self._end_following: Callable[[], None] = lambda: None
        self._ended_future = loop.create_future()
        self._started: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._log = logging.LoggerAdapter(
            logging.getLogger("tritonpy.worker"),
            {"model": model.name, "version": model.version, "instance": instance.name},
        )
        self.has_ready_check = False
        self.reports_memory = False
        self.pid = 0
        # Whether it checks large BYTES tensors itself, while decoding them.
        self.checks_strings = False
        self._process: WorkerProcess
        self._output: WorkerOutput
        self._progress: Progress
        self._connection: Connection
        self._session: RpcSession
        self.executions: Executions

    async def start(self) -> None:
        """Start the process and wait until it can execute. Raises the worker's error on failure."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._output = WorkerOutput(self._loop, read, self._log)
        try:
            self._process = await self._launch(theirs, write)
        except BaseException:
            ours.close()
            self._output.close()
            raise
        self._connection = Connection(self._loop, ours, self._handle_frame, self._connection_lost)
        self.executions = Executions(self._model, self._connection)
        self._session = RpcSession(
            self._model,
            self._instance,
            self._loop,
            self._connection,
            self.executions,
            self._registry,
            self._take_more,
        )
        try:
            message = dict(self._launcher.start_message(self._instance))
            if self._policy is not None:
                message["host_policy"] = {"cores": self._policy.cores, "node": self._policy.node}
            progress = Progress.create()
            self._progress = Progress(os.dup(progress))
            self._connection.send(
                Kind.START, extras=message, descriptors=(progress, open_parent_pipe())
            )
            reply = await self._started
        except BaseException:
            self._stopping = True
            # It has not started and would not exit by itself.
            if self._started.cancel() or self._started.cancelled():
                self._process.kill()
            self._connection_lost("")
            await asyncio.wait((self._ended_future,))
            raise
        self.has_ready_check = bool(reply.get("has_ready_check"))
        self.checks_strings = bool(reply.get("checks_strings"))
        self.reports_memory = bool(reply.get("reports_memory"))
        self.pid = int(reply.get("pid") or self._process.pid)
        self._instance.max_open = reply.get("max_open")
        if reply.get("takes_log_level"):
            self._end_following = follow_log_settings(self._log_settings_changed)
            self._send_log_level(logging.getLogger(LOGGER).getEffectiveLevel())
        if reply.get("unbound"):
            self._log.warning(
                "host policy of instance '%s': %s", self._instance.name, reply["unbound"]
            )

    def _log_settings_changed(self, settings: LogSettings) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._send_log_level, settings.threshold())

    def _send_log_level(self, level: int) -> None:
        if not self.ending and not self._stopping:
            self._sending = self._loop.create_task(self._log_level_sent(level))

    async def _log_level_sent(self, level: int) -> None:
        with suppress(TritonError):  # the process has ended
            await self._session.call("set_log_level", {"level": level})

    async def is_ready(self) -> bool:
        """Run the worker's own readiness check. Raises `TritonError`."""
        return bool(await self._session.call("is_ready", {})) if self.has_ready_check else True

    async def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory usage that the backend reports.

        Raises `TritonError`, and `TimeoutError` if the worker does not respond in time.
        """
        pending = self._session.call("memory_usage", {})
        return convert(await asyncio.wait_for(pending, _MEMORY_LIMIT_S), list[MemoryUsage])

    async def stop(self) -> None:
        """Let the worker clean up and wait for its end; kill it if that takes too long."""
        self._stopping = True
        self._session.release()
        self._connection.send(Kind.STOP)
        done, _ = await asyncio.wait((self._ended_future,), timeout=FINALIZE_LIMIT_S)
        if not done:
            self._log.warning(
                "%s did not finish within %g s and is killed", self._instance.name, FINALIZE_LIMIT_S
            )
            self.kill("it did not finish in time")
            await asyncio.wait((self._ended_future,))

    @property
    def ending(self) -> bool:
        """Whether the worker's socket is closed, so that requests sent now would be lost."""
        return self._ending is not None

    def cancel(self, request: InferRequest) -> None:
        """Notify the process that `request` is cancelled, and cancel the calls made for it."""
        self.executions.cancel(request)
        self._session.cancelled(request)

    def kill(self, reason: str) -> None:
        """Kill the process; its requests fail with `reason`."""
        self._kill_reason = reason
        self._process.kill()

    def unfinished(self) -> list[Batch]:
        """Remove and return the batches that another worker may execute.

        Call it once the process is gone. See `Executions.unfinished`.
        """
        return self.executions.unfinished(self._progress.begun)

    async def _launch(self, theirs: socket.socket, write: int) -> WorkerProcess:
        def launch() -> WorkerProcess:
            try:
                return self._launcher.launch(self._instance, theirs, write)
            finally:
                theirs.close()
                os.close(write)

        launching = asyncio.ensure_future(run_in_thread(launch))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            # The thread cannot be stopped: end the process that it still starts.
            with suppress(Exception):
                process = await launching
                process.kill()
                await run_in_thread(partial(process.wait, _REAP_S))
            raise

    def _handle_frame(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == Kind.RESPONSES:
            self.executions.take(frame, self._done)
        elif kind == Kind.STARTED and not self._started.done():
            self._started.set_result(frame.extras)
        elif kind == Kind.FAILED and not self._started.done():
            extras = frame.extras
            self._started.set_exception(error_of(extras["code"], extras["message"]))
        elif kind != Kind.STOPPED or not self._stopping:
            self._session.handle(frame)

    def _connection_lost(self, reason: str) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._end(reason))

    async def _end(self, reason: str) -> None:
        self._end_following()
        status = await self._reap()
        reason = self._kill_reason or reason or describe_exit(status)
        error = Internal(f"Stub process '{self._instance.name}' is not healthy: {reason}.")
        self._session.close(error)
        self._ended_future.set_result(None)
        if not self._started.done():
            self._started.set_exception(self._with_tail(error))
        elif not self._stopping:
            self._ended(error)

    def _with_tail(self, error: TritonError) -> TritonError:
        tail = list(self._output.tail)
        return Internal("\n".join([error.message, "Its last output:", *tail])) if tail else error

    async def _reap(self) -> int | None:
        """Wait for the end of the process or kill it; then close its output and connection."""
        status = await run_in_thread(partial(self._process.wait, _REAP_S))
        if status is None:
            self._process.kill()
            status = await run_in_thread(partial(self._process.wait, _REAP_S))
        self._output.close()
        self._connection.close()
        return status
