"""The main loop of a worker: start, execute batches, stop."""

from __future__ import annotations

import os
from _thread import _count as threads
from collections import deque
from time import monotonic_ns
from typing import Any

from .api.errors import ErrorCode, TritonModelException
from .context import CURRENT_EXECUTION
from .failure import describe_error
from .instance import Instance
from .ipc import Frame, Kind
from .ipc.channel import Channel
from .ipc.parent_watch import ParentWatcher
from .ipc.progress import Progress
from .ipc.spin_wait import SequentialTraffic
from .ipc.waiter import Waiter
from .output import Output
from .received_batches import Batches, ReceivedBatches


class ModelWorker:
    """Serves one instance on `channel`, in the thread that calls `run`."""

    def __init__(self, channel: Channel, output: Output, parent_watcher: ParentWatcher) -> None:
        self._channel = channel
        self._output = output
        self._parent_watcher = parent_watcher
        self._inbox: deque[Any] = deque()  # received batches; START and STOP frames
        self._waiter = Waiter()
        self._own_threads = threads()
        self._traffic = SequentialTraffic()
        self._progress: Progress
        self._usual_ns = 0  # approximately the longest of the last few executions
        channel.on(Kind.START, self._take)
        channel.on(Kind.STOP, self._take)
        channel.on(Kind.EXECUTE, self._take_batches)
        channel.on(Kind.EXECUTE_SEQUENCE, self._take_batches)

    def run(self) -> int:
        """Wait for START and serve until STOP. Return the exit status."""
        start = self._next()
        progress, *pipes = start.take_descriptors()
        for pipe in pipes:
            self._parent_watcher.watch_pipe(pipe)
        self._progress = Progress(progress)
        unbound = _follow(start.extras.get("host_policy"))
        try:
            instance = Instance(start.extras, self._channel)
        except BaseException as error:  # including SystemExit
            self._output.end_lines()
            self._channel.send(
                Kind.FAILED,
                extras={"message": describe_error(error), "code": int(ErrorCode.INTERNAL)},
            )
            return 1
        self._output.end_lines()
        started = {
            "pid": os.getpid(),
            "max_open": None,
            "has_ready_check": instance.has_ready_check,
            "checks_strings": True,
            "unbound": unbound,
        }
        self._channel.send(Kind.STARTED, extras=started)
        self._serve(instance)
        CURRENT_EXECUTION.set(None)
        instance.finalize()
        self._output.end_lines()
        self._parent_watcher.stop_watching()
        self._channel.send(Kind.STOPPED)
        return 0

    def _take(self, frame: Frame) -> None:
        self._inbox.append(frame)
        self._waiter.wake()

    def _take_batches(self, frame: Frame) -> None:
        self._inbox.append(ReceivedBatches(frame, self._channel))
        self._waiter.wake()

    def _next(self) -> Any:
        self._channel.wait(self._waiter, self._inbox.__len__)
        return self._inbox.popleft()

    def _serve(self, instance: Instance) -> None:
        while True:
            if not self._inbox:
                self._channel.send_returns()
                instance.host.inflight.tidy(self._inbox)
            received = self._next()
            if not isinstance(received, ReceivedBatches):
                return
            batches = received.batches(
                instance.host, instance.outputs, instance.host.inflight, instance.strings
            )
            # It refers to the inputs, whose shared memory is released with the last reference.
            del received
            self._execute(instance, batches)

    def _execute(self, instance: Instance, batches: Batches) -> None:
        answers, executor = instance.answers, instance.executor
        count = 0
        for current, arrived in batches:
            count += len(arrived)
            begin_ns = monotonic_ns()
            if answers.is_due(begin_ns + self._usual_ns):
                self._send(instance)
            CURRENT_EXECUTION.set(current)
            requests = (
                instance.sink.drop_cancelled(arrived)
                if instance.host.inflight.cancelled
                else arrived
            )
            if requests:
                self._progress.begin(current.execution)
                executor.run(requests)
            else:  # all requests were rejected or cancelled
                executor.end_ns = begin_ns
            answers.add_execution(current.execution, begin_ns, executor.end_ns)
            self._usual_ns = max(executor.end_ns - begin_ns, self._usual_ns - (self._usual_ns >> 3))
            self._output.end_lines()
        del requests, arrived
        # Spinning helps single requests. Under load it gains nothing, and it would take the GIL
        # from the model's threads.
        self._channel.may_spin = self._traffic.observe(count) and threads() == self._own_threads
        self._send(instance)

    @staticmethod
    def _send(instance: Instance) -> None:
        try:
            instance.answers.send()
        except TritonModelException as error:
            instance.host.log("ERROR", str(error))


def _follow(policy: Any) -> str:
    """Bind the process to the cores and memory node of the host policy.

    Return a text that describes what failed, or "".
    """
    if policy is None:
        return ""
    from .ipc.host_binding import bind_process

    return bind_process(policy["cores"], policy["node"])
