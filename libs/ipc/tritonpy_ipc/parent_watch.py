"""Termination of a worker when its server ends, whatever its model is doing."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
from contextlib import suppress
from threading import Thread
from typing import NoReturn

_F_SETSIG = 10  # from <linux/fcntl.h>


class ParentWatcher:
    """Ends this process when the server closes the socket or the parent pipe."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._stopped = False
        self._pipe: int | None = None

    def watch(self) -> None:
        """Exit when the other end of the socket closes, as soon as the interpreter is free."""
        Thread(target=self._watch, name="tritonpy-parent-watch", daemon=True).start()

    def watch_pipe(self, pipe: int) -> None:
        """Exit when the other end of `pipe` closes; `pipe` itself is closed here.

        Only the server holds the other end, and it never writes to it. Linux sends SIGKILL, even
        while a model holds the interpreter. On other systems this does nothing.
        """
        if sys.platform.startswith("linux"):
            # Workers may share one pipe. The signal goes to the owner of an open file, so each
            # worker opens its own.
            self._pipe = os.open(
                f"/proc/self/fd/{pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            )
            fcntl.fcntl(self._pipe, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(self._pipe, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(
                self._pipe, fcntl.F_SETFL, fcntl.fcntl(self._pipe, fcntl.F_GETFL) | os.O_ASYNC
            )
            if select.select([self._pipe], [], [], 0)[0]:
                exit_process("")
        os.close(pipe)

    def stop_watching(self) -> None:
        """Do not exit when the socket closes: the worker exits by itself."""
        self._stopped = True

    def close_pipe(self) -> None:
        """Close the pipe, in a forked process or in one that gets another pipe."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._connection, 0)  # hang-ups only
        poll.poll()
        if not self._stopped:
            exit_process("")


def exit_process(reason: str) -> NoReturn:
    """Exit immediately, without any cleanup that could block."""
    if reason:
        with suppress(OSError):
            os.write(2, f"tritonpy: worker exits: {reason}\n".encode())
    os._exit(1)
