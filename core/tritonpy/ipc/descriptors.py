"""Descriptors that travel with the bytes of a Unix socket."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence

ROOM = socket.CMSG_SPACE(253 * array.array("i").itemsize)  # for the most descriptors that Linux puts into one message
CLOSE_ON_EXEC = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))  # a flag of recvmsg


def arrived(control: Sequence[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors in what recvmsg calls ancillary data; they are the caller's to close, and no child inherits them."""
    found = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    for descriptor in found:
        os.set_inheritable(descriptor, False)  # where the flag of recvmsg is not known
    return list(found)


def close_all(descriptors: Sequence[int]) -> None:
    """Close them."""
    for descriptor in descriptors:
        os.close(descriptor)
