"""The process of a worker: what belongs to it as a whole."""

from __future__ import annotations

import faulthandler
import io
import os
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

from tritonpy.interpreter import prepare_interpreter
from tritonpy.ipc.lifeline import Lifeline
from tritonpy.runners.workers.backend_process.worker import Worker


def main(descriptor: int) -> NoReturn:
    """Serve the socket of that number; leave when the server says so."""
    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what is printed last says most about a crash
    sys.argv = [""]
    leave_signals_to_the_server()
    prepare_interpreter()
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    lifeline = Lifeline(descriptor)
    lifeline.watch()
    worker = Worker(connection, lifeline)
    os.register_at_fork(after_in_child=worker.leave)
    sys.exit(worker.run())


def leave_signals_to_the_server() -> None:
    """A terminal, or whoever manages the service, signals all of its processes: what that means is the server's to say.

    By a handler, which unlike SIG_IGN is not inherited by the programs that a backend starts; processes that it forks see to it by their id.
    """
    worker = os.getpid()

    def ignore(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != worker:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, ignore)
    signal.signal(signal.SIGTERM, ignore)
