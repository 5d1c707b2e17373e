"""Ports for servers that cannot be asked to choose one themselves."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _USUAL = 10_000, 32_768


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on.

    It is none of those that the system itself gives to clients and to who binds port 0: between this and its use nobody takes it but by chance.
    """
    choice = random.SystemRandom()  # a test that seeds the other generator would meet the same ports as those beside it
    end = max(_given_from(), _LOWEST + 1000)
    while True:
        port = choice.randrange(_LOWEST, end)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port


def _given_from() -> int:
    try:
        return int(RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL
