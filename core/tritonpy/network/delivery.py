"""Delivery of responses when a server stops: unread bytes, and waiting for clients to read them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sys
import termios
from collections.abc import Callable

PERIOD_S = 0.05
STALL_TIMEOUT_S = 5.0  # a client that reads nothing for this long is not waited for


def unread(transport: asyncio.Transport) -> int:
    """Return how many written bytes the client's machine has not acknowledged.

    They are in the transport's buffer and in the kernel's, which may hold megabytes.
    """
    waiting, sock = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError, ValueError):  # the socket is closed
            waiting += int.from_bytes(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    return waiting


async def delivered(left: Callable[[], int]) -> None:
    """Return when `left()`, the number of unread bytes, is 0 or stalls for STALL_TIMEOUT_S."""
    before, until = left(), asyncio.get_running_loop().time() + STALL_TIMEOUT_S
    while before:
        await asyncio.sleep(PERIOD_S)
        now, rest = asyncio.get_running_loop().time(), left()
        if rest != before:
            until = now + STALL_TIMEOUT_S
        elif now >= until:
            return
        before = rest
