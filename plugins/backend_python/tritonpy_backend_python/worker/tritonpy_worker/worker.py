"""The life of a worker: start, execute what comes, stop."""

from __future__ import annotations

import os
from _thread import _count as threads
from collections import deque
from time import monotonic_ns
from typing import Any

from .api.errors import ErrorCode, TritonModelException
from .context import CURRENT
from .failure import describe
from .instance import Instance
from .ipc import Frame, Kind
from .ipc.channel import Channel
from .ipc.lifeline import Lifeline
from .ipc.patience import Alone
from .ipc.progress import Progress
from .ipc.waiter import Waiter
from .output import Output
from .received import Batches, Received


class Worker:
    """Serves one instance on `channel`, in the thread that calls `run`."""

    def __init__(self, channel: Channel, output: Output, lifeline: Lifeline) -> None:
        self._channel = channel
        self._output = output
        self._lifeline = lifeline
        self._inbox: deque[Any] = deque()  # Received; the frames START and STOP
        self._waiter = Waiter()
        self._own_threads = threads()
        self._alone = Alone()
        self._progress: Progress
        self._usual_ns = 0  # about what the longest of the latest executions took
        channel.on(Kind.START, self._take)
        channel.on(Kind.STOP, self._take)
        channel.on(Kind.EXECUTE, self._take_batches)
        channel.on(Kind.EXECUTE_LADEN, self._take_batches)

    def run(self) -> int:
        """Wait for START and serve until STOP; return the exit status."""
        start = self._next()
        progress, *pipes = start.take_descriptors()
        for pipe in pipes:
            self._lifeline.hold(pipe)
        self._progress = Progress(progress)
        unbound = _follow(start.extras.get("host_policy"))
        try:
            instance = Instance(start.extras, self._channel)
        except BaseException as error:  # SystemExit as well
            self._output.end_lines()
            self._channel.send(Kind.FAILED, extras={"message": describe(error), "code": int(ErrorCode.INTERNAL)})
            return 1
        self._output.end_lines()
        said = {
            "pid": os.getpid(),
            "max_open": None,
            "asks_ready": instance.asks_ready,
            "checks_strings": True,
            "unbound": unbound,
        }
        self._channel.send(Kind.STARTED, extras=said)
        self._serve(instance)
        CURRENT.set(None)
        instance.finalize()
        self._output.end_lines()
        self._lifeline.cut()
        self._channel.send(Kind.STOPPED)
        return 0

    def _take(self, frame: Frame) -> None:
        self._inbox.append(frame)
        self._waiter.wake()

    def _take_batches(self, frame: Frame) -> None:
        self._inbox.append(Received(frame, self._channel))
        self._waiter.wake()

    def _next(self) -> Any:
        self._channel.wait(self._waiter, self._inbox.__len__)
        return self._inbox.popleft()

    def _serve(self, instance: Instance) -> None:
        while True:
            if not self._inbox:
                self._channel.send_returns()
                instance.host.open.tidy(self._inbox)
            received = self._next()
            if not isinstance(received, Received):
                return
            batches = received.batches(instance.host, instance.outputs, instance.host.open, instance.strings)
            del received  # it holds the inputs, whose shared memory goes back as soon as the model lets go of them
            self._execute(instance, batches)

    def _execute(self, instance: Instance, batches: Batches) -> None:
        answers, executor = instance.answers, instance.executor
        count = 0
        for current, arrived in batches:
            count += len(arrived)
            begin_ns = monotonic_ns()
            if answers.due(begin_ns + self._usual_ns):
                self._send(instance)
            CURRENT.set(current)
            requests = instance.sink.without_cancelled(arrived) if instance.host.open.cancelled else arrived
            if requests:
                self._progress.begin(current.execution)
                executor.run(requests)
            else:  # all of them were refused, or cancelled
                executor.end_ns = begin_ns
            answers.over(current.execution, begin_ns, executor.end_ns)
            self._usual_ns = max(executor.end_ns - begin_ns, self._usual_ns - (self._usual_ns >> 3))
            self._output.end_lines()
        del requests, arrived
        # Requests that come singly want to be answered soon; under load nobody gains, and threads of the model's would share their lock with who looks.
        self._channel.patient = self._alone.came(count) and threads() == self._own_threads
        self._send(instance)

    @staticmethod
    def _send(instance: Instance) -> None:
        try:
            instance.answers.send()
        except TritonModelException as error:
            instance.host.log("ERROR", str(error))


def _follow(policy: Any) -> str:
    """Bind the process to where on the host it is to run, if the server says so; return what could not be done."""
    if policy is None:
        return ""
    from .ipc.host_binding import bind_process

    return bind_process(policy["cores"], policy["node"])
