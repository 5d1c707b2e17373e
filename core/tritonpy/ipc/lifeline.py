"""The end of the server is the end of its workers, whatever their models are doing."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
from contextlib import suppress
from threading import Thread
from typing import NoReturn

_F_SETSIG = 10  # of <linux/fcntl.h>


class Lifeline:
    """What ties the process to the other end of a socket, and of a pipe where the server gives one."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._cut = False
        self._pipe: int | None = None

    def watch(self) -> None:
        """Die when the socket's other end is closed, as soon as the interpreter is free."""
        Thread(target=self._watch, name="tritonpy-lifeline", daemon=True).start()

    def hold(self, pipe: int) -> None:
        """Die when the other end of `pipe` is closed, which the server alone has and never writes to; `pipe` is closed here.

        Linux sends SIGKILL by itself, also while a model holds the interpreter. Elsewhere nothing happens.
        """
        if sys.platform.startswith("linux"):
            # All workers may have been given the same pipe: who gets the signal belongs to an opened file, so each opens its own.
            self._pipe = os.open(f"/proc/self/fd/{pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.fcntl(self._pipe, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(self._pipe, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(self._pipe, fcntl.F_SETFL, fcntl.fcntl(self._pipe, fcntl.F_GETFL) | os.O_ASYNC)
            if select.select([self._pipe], [], [], 0)[0]:
                end("")
        os.close(pipe)

    def cut(self) -> None:
        """Do not die any more when the socket is closed: the worker ends by itself, in its own time."""
        self._cut = True

    def forget(self) -> None:
        """Leave nothing of it: in a process that was forked, or that has been given another."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._connection, 0)  # for nothing but the end
        poll.poll()
        if not self._cut:
            end("")


def end(reason: str) -> NoReturn:
    """Leave at once, without any clean-up that could wait."""
    if reason:
        with suppress(OSError):
            os.write(2, f"tritonpy: the worker ends: {reason}\n".encode())
    os._exit(1)
