"""The first process of a container, which must reap the orphans of its children."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SIGNAL_STATUS = 128  # added to a signal's number, as a shell does


def become_init() -> None:
    """Fork if this is process 1; return in the child, which continues as the server.

    Process 1 of a container becomes the parent of every orphan, such as an instance whose worker
    died. The server does not know them and cannot reap them. The parent reaps all, forwards
    signals, and exits with the server's status.
    """
    if os.getpid() != 1:
        return
    server = os.fork()
    if server == 0:
        os.setpgrp()  # Ctrl-C in a terminal reaches only the parent, which forwards it once
        return

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(server, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    while True:
        process, status = os.wait()
        if process == server:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else _SIGNAL_STATUS - code)
