"""The main function of a worker process."""

from __future__ import annotations

import faulthandler
import io
import os
import socket
import sys
from typing import NoReturn

from tritonpy.execution import prepare_interpreter
from tritonpy_engine_rpc.processes import ignore_shutdown_signals
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
