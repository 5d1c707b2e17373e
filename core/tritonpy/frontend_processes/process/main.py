"""The process: what belongs to it as a whole."""

from __future__ import annotations

import asyncio
import faulthandler
import socket
import sys
from typing import NoReturn

from tritonpy.frontend_processes.process.service import Service
from tritonpy.interpreter import prepare_interpreter
from tritonpy.ipc.lifeline import Lifeline
from tritonpy.loops import event_loop_factory
from tritonpy.runners.workers.backend_process.main import leave_signals_to_the_server


def main(descriptor: int) -> NoReturn:
    """Serve clients for the engine at the other end of the socket of that number; leave when it says so, or is gone."""
    faulthandler.enable()
    sys.argv = [""]
    leave_signals_to_the_server()
    prepare_interpreter()
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    lifeline = Lifeline(descriptor)
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        runner.run(_serve(connection, lifeline))
    sys.exit(0)


async def _serve(connection: socket.socket, lifeline: Lifeline) -> None:
    await Service(asyncio.get_running_loop(), connection, lifeline).run()
