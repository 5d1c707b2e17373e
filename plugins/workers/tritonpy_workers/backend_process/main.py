"""The main function of a worker process."""

from __future__ import annotations

import faulthandler
import io
import os
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

from tritonpy.execution import prepare_interpreter
from tritonpy_ipc.parent_watch import ParentWatcher
from tritonpy_workers.backend_process.worker import BackendWorker


def main(descriptor: int) -> NoReturn:
    """Serve the socket with the number `descriptor`; exit when the server requests it."""
    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # keep the last lines before a crash
    sys.argv = [""]
    ignore_shutdown_signals()
    prepare_interpreter()
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    parent_watcher = ParentWatcher(descriptor)
    parent_watcher.watch()
    worker = BackendWorker(connection, parent_watcher)
    os.register_at_fork(after_in_child=worker.detach)
    sys.exit(worker.run())


def ignore_shutdown_signals() -> None:
    """Ignore signals that a terminal or service manager sends to all processes of the server.

    The server decides when workers end. A handler is used because, unlike SIG_IGN, started programs
    do not inherit it. Forked processes have another process id and die as usual.
    """
    worker = os.getpid()

    def ignore(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != worker:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, ignore)
    signal.signal(signal.SIGTERM, ignore)
