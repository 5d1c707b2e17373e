"""The life of a worker: start, execute what comes, stop."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Mapping
from typing import Any

from tritonpy.api.backend import check_returned
from tritonpy.clock import now_ns
from tritonpy.errors import Code, TritonError, exception_text
from tritonpy.interpreter import settle_interpreter
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel
from tritonpy.ipc.lifeline import Lifeline, end
from tritonpy.ipc.progress import Progress
from tritonpy.ipc.questions import Questions
from tritonpy.ipc.waiter import Waiter
from tritonpy.ipc.windows import Windows
from tritonpy.runners.workers.backend_process.answers import Answers
from tritonpy.runners.workers.backend_process.asking import asker
from tritonpy.runners.workers.backend_process.calls import Calls
from tritonpy.runners.workers.backend_process.deputy import Deputy
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.runners.workers.backend_process.incoming import Incoming
from tritonpy.runners.workers.backend_process.logs import send_log_to
from tritonpy.runners.workers.backend_process.metrics import Link, RemoteMetrics
from tritonpy.runners.workers.backend_process.questioned import Questioned
from tritonpy.runners.workers.backend_process.remote_engine import RemoteEngine
from tritonpy.runners.workers.backend_process.served import Served
from tritonpy.runners.workers.backend_process.start import Start
from tritonpy.types import DTYPES, Batch

log = logging.getLogger("tritonpy.model")


class Worker:
    """Serves one instance on `connection`. Loads, executes and closes it in the thread that calls `run`."""

    def __init__(self, connection: socket.socket, lifeline: Lifeline) -> None:
        self._channel = channel = Channel(connection, end, DTYPES, self._memory_returned)
        self._lifeline = lifeline
        self._waiter = Waiter()
        self._orders: deque[Frame] = deque()  # START, STOP
        opened: dict[int, Execution] = {}
        questions = Questions(channel)
        windows = Windows(channel, questions)
        self._answers = Answers(channel, opened, windows)
        self._calls = Calls(channel, opened, self._call_made)
        self._deputy = Deputy(channel, self._answers.hurry, self._calls.awaited)
        self._ask = asker(questions)
        self._progress: Progress
        self._incoming = Incoming(channel, opened, self._answers, windows, self._waiter.wake)
        channel.on(Kind.START, self._take_order)
        channel.on(Kind.STOP, self._take_order)

    def run(self) -> int:
        """Wait for START and serve until STOP; return the exit status."""
        self._channel.wait(self._waiter, self._orders.__len__)
        order = self._orders.popleft()
        progress, *pipes = order.take_descriptors()
        for pipe in pipes:
            self._lifeline.hold(pipe)
        self._progress = Progress(progress)
        unbound = _follow(order.extras.get("host_policy"))
        try:
            served = self._load(order.extras)
        except BaseException as error:
            self._refuse(error)
            return 1
        self._incoming.serve(served.model, served.context)
        Questioned(self._channel, {"is_ready": served.is_ready, "memory_usage": served.memory_usage})
        extras = {
            "pid": os.getpid(),
            "max_open": served.context.max_open,
            "asks_ready": served.asks_ready,
            "tells_memory": served.tells_memory,
            "unbound": unbound,
        }
        self._channel.send(Kind.STARTED, extras=extras)
        while self._wait_for_work():
            self._execute(served)
        served.close()
        self._lifeline.cut()
        self._channel.send(Kind.STOPPED)
        return 0

    def leave(self) -> None:
        """Have nothing to do with the server any more: this is a process that the backend forked."""
        self._channel.close()
        self._lifeline.forget()

    def _tell(self, verb: str, **arguments: Any) -> None:
        """Tell the server and go on. Raises ChannelClosed after `leave`."""
        self._channel.send(Kind.TELL, extras={"verb": verb, "arguments": arguments})

    def _memory_returned(self) -> None:
        # From any thread, in the middle of anything. While the main thread executes it will see to it itself.
        if not self._deputy.busy:
            self._deputy.wake()

    def _take_order(self, frame: Frame) -> None:
        self._orders.append(frame)
        self._waiter.wake()

    def _load(self, extras: Mapping[str, Any]) -> Served:
        start = Start.read(extras)
        send_log_to(self._tell)
        sys.path[:] = start.search
        self._deputy.begin()
        try:
            engine, metrics = RemoteEngine(self._ask, self._calls), RemoteMetrics(Link(self._ask, self._tell))
            served = Served(start, engine, metrics, self._take_more)
        finally:
            self._deputy.end()
        settle_interpreter()
        return served

    def _refuse(self, error: BaseException) -> None:
        code, message = Code.INTERNAL, exception_text(error)
        if isinstance(error, TritonError):
            code, message = error.code, error.message
        else:
            log.error("the worker failed to start", exc_info=error)
        self._channel.send(Kind.FAILED, extras={"message": message, "code": int(code)})

    def _wait_for_work(self) -> bool:
        self._channel.send_returns()
        self._channel.wait(self._waiter, self._has_work)
        return bool(self._incoming.backlog)

    def _has_work(self) -> bool:
        return bool(self._incoming.backlog or self._orders)

    def _execute(self, served: Served) -> None:
        answers = self._answers
        execution = self._incoming.backlog.popleft()
        self._progress.begin(execution.number)
        batch = answers.begin(execution)
        del execution
        self._deputy.begin()
        batch.start_ns = begin_ns = now_ns()
        try:
            check_returned(served.backend.execute(batch))  # type: ignore[func-returns-value]
        except BaseException as error:
            if not isinstance(error, TritonError):
                log.error(
                    "model %s version %d failed to execute", served.model.name, served.model.version, exc_info=error
                )
            answers.fail(error)
        del batch  # its shared memory goes back with the answers
        answers.over(begin_ns, now_ns(), bool(self._incoming.backlog))
        self._deputy.end()

    def _take_more(self, count: int) -> Batch | None:
        if count < 1:
            return None
        self._answers.flush()
        number = self._ask("take_more", count=count)
        if number is None:
            return None
        batch = self._answers.join(self._incoming.joining.pop(number))
        batch.start_ns = now_ns()
        return batch

    def _call_made(self) -> None:
        if self._deputy.busy:
            self._deputy.wake()


def _follow(policy: Mapping[str, Any] | None) -> str:
    """Bind the process to where on the host it is to run; return what could not be done."""
    if policy is None:
        return ""
    from tritonpy.ipc.host_binding import bind_process

    return bind_process(policy["cores"], policy["node"])
