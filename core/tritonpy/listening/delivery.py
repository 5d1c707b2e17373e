"""Answers that clients have yet to read: how much of them there is, and the wait for them when a server ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sys
import termios
from collections.abc import Callable

PERIOD_S = 0.05
PATIENCE_S = 5.0  # a client of whom nothing is heard for so long does not read: others are not to wait for it


def unread(transport: asyncio.Transport) -> int:
    """Return how many bytes of what was written the client's machine has not taken: they lie in the transport, and further megabytes in the kernel."""
    waiting, sock = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError, ValueError):  # it is closed
            waiting += int.from_bytes(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    return waiting


async def delivered(left: Callable[[], int]) -> None:
    """Return when `left()`, the bytes that clients have yet to take, is 0, or did not change for PATIENCE_S."""
    before, until = left(), asyncio.get_running_loop().time() + PATIENCE_S
    while before:
        await asyncio.sleep(PERIOD_S)
        now, rest = asyncio.get_running_loop().time(), left()
        if rest != before:
            until = now + PATIENCE_S
        elif now >= until:
            return
        before = rest
