"""Scripted workers without processes or threads, on the event loop of the test."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from plugins.workers.tests.worker_end import WorkerEnd
from tritonpy.api.contexts import InstanceContext
from tritonpy.api.worker import Launcher, WorkerProcess
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.progress import Progress
from tritonpy_types import Tensor
from tritonpy_types.errors import Code

FINAL, EMPTY = 1, 2
_pids = count(1_000_000)


class Given(NamedTuple):
    """One execution as the worker sees it."""

    id: int
    numbers: list[int]
    rows: list[Sequence[Tensor]]
    requested: list[Any]
    extras: Mapping[str, Any]


class ScriptedWorker(WorkerEnd, WorkerProcess):
    """A process for the server, and its program for the test."""

    def __init__(self, instance: InstanceContext, connection: socket.socket, output: int) -> None:
        super().__init__(connection.dup())
        self.pid = next(_pids)
        self.name = instance.name
        self.killed = False
        self.progress: Progress
        self._output = os.dup(output)
        self._status: int | None = None
        self._ended = threading.Event()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> int | None:
        self._ended.wait(timeout_s)
        return self._status

    def kill(self) -> None:
        self.killed = True
        if not self._ended.is_set():
            self.exit(-signal.SIGKILL)

    def exit(self, status: int) -> None:
        """Exit as a process does: close everything that it had open."""
        self.hang_up()
        self._status = status
        self._ended.set()

    def hang_up(self) -> None:
        """Close the socket and the output without exiting."""
        if self._output >= 0:
            self.socket.close()
            self.endpoint.close()
            self.frames.clear()
            os.close(self._output)
            self._output = -1

    def print(self, text: str) -> None:
        """Write to the pipe that the server reads as stdout and stderr."""
        os.write(self._output, text.encode())

    async def receive(self, *kinds: int) -> Frame:
        """Return the next frame, which must be of one of `kinds`."""
        while not self.frames:
            await self.read()
        frame = self.frames.pop(0)
        assert frame.kind in kinds, f"a frame of kind {frame.kind} came, not of {kinds}"
        return frame

    async def started(self, **fields: Any) -> dict[str, Any]:
        """Receive START, send STARTED and return the start message."""
        start = await self.receive(Kind.START)
        progress, pipe = start.take_descriptors()
        os.close(pipe)
        self.progress = Progress(progress)
        self.send(
            Kind.STARTED,
            extras={"pid": self.pid, "max_open": None, "has_ready_check": False} | fields,
        )
        return start.extras

    async def failed(self, message: str, code: Code = Code.INTERNAL) -> None:
        """Receive START, report why the model cannot run, and exit."""
        await self.receive(Kind.START)
        self.send(Kind.FAILED, extras={"message": message, "code": int(code)})
        self.exit(1)

    async def given(self) -> list[Given]:
        """Begin the first execution of the next frame and return all of them."""
        frame = await self.receive(Kind.EXECUTE)
        words, count = frame.words, frame.words[0]
        rows, requested = self.endpoint.rows(frame, 2 + 2 * count, Tensor)
        first, at, given = words[1 + 2 * count], 0, []
        for execution, size in zip(
            words[1 : 1 + 2 * count : 2], words[2 : 2 + 2 * count : 2], strict=True
        ):
            part = slice(at, at + size)
            numbers = list(range(first + at, first + at + size))
            given.append(Given(execution, numbers, rows[part], requested[part], frame.extras))
            at += size
        self.progress.begin(given[0].id)
        return given

    async def one(self) -> Given:
        """Return the next execution, which must be alone in its frame."""
        (given,) = await self.given()
        return given

    def send_responses(
        self,
        answers: Sequence[tuple[int, int, Sequence[Tensor]]],
        done: Sequence[Given] = (),
        took_ns: int = 1_000_000,
        **extras: Any,
    ) -> None:
        """Send RESPONSES with number, flags and outputs; `done` are finished executions."""
        words = [len(done)]
        for each in done:
            words += (each.id, 1_000, 1_000 + took_ns)
        words.append(len(answers))
        for number, flags, _ in answers:
            words += (number, 1, flags)
        self.send(Kind.RESPONSES, words, rows=[row for _, _, row in answers], extras=extras)

    def echo(self, *given: Given, took_ns: int = 1_000_000) -> None:
        """Respond to every request of these executions with its inputs, named OUT."""
        self.send_responses(
            [
                (number, FINAL, outputs(row))
                for each in given
                for number, row in zip(each.numbers, each.rows, strict=True)
            ],
            given,
            took_ns,
        )

    async def stop(self, status: int = 0) -> None:
        """Receive STOP, send STOPPED and exit."""
        await self.receive(Kind.STOP)
        self.send(Kind.STOPPED)
        self.exit(status)


def outputs(row: Sequence[Tensor]) -> list[Tensor]:
    """Return the same data under the name OUT."""
    return [Tensor("OUT", each.datatype, each.shape, each.data) for each in row]


class ScriptedLauncher(Launcher):
    """Passes every worker that the server starts to the test."""

    def __init__(self, limit_s: float = 0.0) -> None:
        self.execution_limit_s = limit_s
        self.closed = 0
        self.workers: list[ScriptedWorker] = []
        self.before_launch: Callable[[InstanceContext], None] = lambda _: None
        self.before_start: Callable[[InstanceContext], None] = lambda _: None
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[ScriptedWorker] = asyncio.Queue()

    def launch(
        self, instance: InstanceContext, connection: socket.socket, output: int
    ) -> WorkerProcess:
        self.before_launch(instance)
        worker = ScriptedWorker(instance, connection, output)
        self.workers.append(worker)
        self._loop.call_soon_threadsafe(self._waiting.put_nowait, worker)
        return worker

    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        self.before_start(instance)
        return {"version": 1, "kind": "scripted", "instance": instance.name}

    def close(self) -> None:
        self.closed += 1

    async def next(self) -> ScriptedWorker:
        """Return the next worker that the server starts."""
        return await self._waiting.get()
