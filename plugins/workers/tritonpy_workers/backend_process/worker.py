"""The main loop of a worker process: start, execute, stop."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Mapping
from typing import Any

from tritonpy import DTYPES, Batch, Code, TritonError, now_ns
from tritonpy.execution import LOGGER, check_returned, exception_text, settle_interpreter
from tritonpy_engine_rpc.remote_logs import send_log_to
from tritonpy_engine_rpc.remote_metrics import RemoteMetrics, ServerLink
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.channel import Channel
from tritonpy_ipc.parent_watch import ParentWatcher, exit_process
from tritonpy_ipc.progress import Progress
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.waiter import Waiter
from tritonpy_ipc.windows import Windows
from tritonpy_workers.backend_process.background_reader import BackgroundReader
from tritonpy_workers.backend_process.calls import RemoteCalls
from tritonpy_workers.backend_process.execution import ReceivedExecution
from tritonpy_workers.backend_process.execution_receiver import ExecutionReceiver
from tritonpy_workers.backend_process.instance_rpc_server import InstanceRpcServer
from tritonpy_workers.backend_process.remote_engine import RemoteEngine
from tritonpy_workers.backend_process.response_sender import ResponseSender
from tritonpy_workers.backend_process.rpc_caller import rpc_caller
from tritonpy_workers.backend_process.served_instance import ServedInstance
from tritonpy_workers.backend_process.start_message import InstanceStartMessage

log = logging.getLogger("tritonpy.model")


class BackendWorker:
    """Serves one instance on `connection`; `run` loads, executes and closes it."""

    def __init__(self, connection: socket.socket, parent_watcher: ParentWatcher) -> None:
        self._channel = channel = Channel(connection, exit_process, DTYPES, self._memory_returned)
        self._parent_watcher = parent_watcher
        self._waiter = Waiter()
        self._orders: deque[Frame] = deque()  # START and STOP frames
        opened: dict[int, ReceivedExecution] = {}
        rpc_client = RpcClient(channel)
        windows = Windows(channel, rpc_client)
        self._sender = ResponseSender(channel, opened, windows)
        self._calls = RemoteCalls(channel, opened, self._call_made)
        self._reader = BackgroundReader(channel, self._sender.stop_holding, self._calls.awaited)
        self._call = rpc_caller(rpc_client)
        self._progress: Progress
        self._receiver = ExecutionReceiver(
            channel, opened, self._sender, windows, self._waiter.wake
        )
        channel.on(Kind.START, self._take_order)
        channel.on(Kind.STOP, self._take_order)

    def run(self) -> int:
        """Wait for START and serve until STOP; return the exit status."""
        self._channel.wait(self._waiter, self._orders.__len__)
        order = self._orders.popleft()
        progress, *pipes = order.take_descriptors()
        for pipe in pipes:
            self._parent_watcher.watch_pipe(pipe)
        self._progress = Progress(progress)
        unbound = _bind_host(order.extras.get("host_policy"))
        try:
            served = self._load(order.extras)
        except BaseException as error:
            self._refuse(error)
            return 1
        self._receiver.serve(served.model, served.context)
        InstanceRpcServer(
            self._channel,
            {
                "is_ready": served.is_ready,
                "memory_usage": served.memory_usage,
                "set_log_level": _set_log_level,
            },
        )
        extras = {
            "pid": os.getpid(),
            "max_open": served.context.max_open,
            "has_ready_check": served.has_ready_check,
            "reports_memory": served.reports_memory,
            "takes_log_level": True,
            "unbound": unbound,
        }
        self._channel.send(Kind.STARTED, extras=extras)
        while self._wait_for_work():
            self._execute(served)
        served.close()
        self._parent_watcher.stop_watching()
        self._channel.send(Kind.STOPPED)
        return 0

    def detach(self) -> None:
        """Detach from the server, in a process that the backend forked."""
        self._channel.close()
        self._parent_watcher.close_pipe()

    def _notify(self, verb: str, **arguments: Any) -> None:
        """Send a notification to the server. Raises `ChannelClosed` after `detach`."""
        self._channel.send(Kind.NOTIFY, extras={"verb": verb, "arguments": arguments})

    def _memory_returned(self) -> None:
        # Called from any thread, possibly inside any other code. While the main thread executes, it
        # returns the memory itself.
        if not self._reader.busy:
            self._reader.wake()

    def _take_order(self, frame: Frame) -> None:
        self._orders.append(frame)
        self._waiter.wake()

    def _load(self, extras: Mapping[str, Any]) -> ServedInstance:
        start = InstanceStartMessage.read(extras)
        send_log_to(self._notify)
        _set_log_level(start.log_level)
        sys.path[:] = start.search
        self._reader.begin()
        try:
            engine = RemoteEngine(self._call, self._calls)  # type: ignore[abstract]  # made from a description
            metrics = RemoteMetrics(ServerLink(self._call, self._notify))
            served = ServedInstance(start, engine, metrics, self._take_more)
        finally:
            self._reader.end()
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
        return bool(self._receiver.backlog)

    def _has_work(self) -> bool:
        return bool(self._receiver.backlog or self._orders)

    def _execute(self, served: ServedInstance) -> None:
        sender = self._sender
        execution = self._receiver.backlog.popleft()
        self._progress.begin(execution.number)
        batch = sender.begin(execution)
        del execution
        self._reader.begin()
        batch.start_ns = begin_ns = now_ns()
        try:
            check_returned(served.backend.execute(batch))  # type: ignore[func-returns-value]
        except BaseException as error:
            if not isinstance(error, TritonError):
                log.error(
                    "model %s version %d failed to execute",
                    served.model.name,
                    served.model.version,
                    exc_info=error,
                )
            sender.fail(error)
        del batch  # its shared memory returns with the responses
        sender.finish(begin_ns, now_ns(), bool(self._receiver.backlog))
        self._reader.end()

    def _take_more(self, count: int) -> Batch | None:
        if count < 1:
            return None
        self._sender.flush()
        number = self._call("take_more", count=count)
        if number is None:
            return None
        batch = self._sender.join(self._receiver.joining.pop(number))
        batch.start_ns = now_ns()
        return batch

    def _call_made(self) -> None:
        if self._reader.busy:
            self._reader.wake()


def _set_log_level(level: int) -> None:
    """Drop records below the server's level here: sending them would cost more than they do."""
    logging.getLogger(LOGGER).setLevel(level)


def _bind_host(policy: Mapping[str, Any] | None) -> str:
    """Bind the process to the given cores and NUMA node; return a failure as text."""
    if policy is None:
        return ""
    from tritonpy_ipc.host_binding import bind_process

    return bind_process(policy["cores"], policy["node"])
