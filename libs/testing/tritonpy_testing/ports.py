"""Free TCP ports for servers that cannot choose one themselves."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _USUAL = 10_000, 32_768


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 without a listener.

    The port is outside the range that the kernel assigns to clients and to port 0, so a collision
    before its use is unlikely.
    """
    # a seeded generator would choose the same ports in parallel test runs
    choice = random.SystemRandom()
    end = max(_first_ephemeral_port(), _LOWEST + 1000)
    while True:
        port = choice.randrange(_LOWEST, end)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port


def _first_ephemeral_port() -> int:
    try:
        return int(RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL
