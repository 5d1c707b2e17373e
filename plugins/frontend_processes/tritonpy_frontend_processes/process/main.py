"""The main function of a frontend process."""

from __future__ import annotations

import asyncio
import faulthandler
import socket
import sys
from typing import NoReturn

from tritonpy.execution import event_loop_factory, prepare_interpreter
from tritonpy_engine_rpc.processes import ignore_shutdown_signals
from tritonpy_frontend_processes.process.service import FrontendService
from tritonpy_ipc.parent_watch import ParentWatcher


def main(descriptor: int) -> NoReturn:
    """Serve clients for the engine at the other end of the socket `descriptor`.

    Exits on STOP, or when the engine's process ends.
    """
    faulthandler.enable()
    sys.argv = [""]
    ignore_shutdown_signals()
    prepare_interpreter()
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    parent_watcher = ParentWatcher(descriptor)
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        runner.run(_serve(connection, parent_watcher))
    sys.exit(0)


async def _serve(connection: socket.socket, parent_watcher: ParentWatcher) -> None:
    await FrontendService(asyncio.get_running_loop(), connection, parent_watcher).run()
