"""File descriptors sent over a Unix socket."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence

ANCILLARY_SIZE = socket.CMSG_SPACE(
    253 * array.array("i").itemsize
)  # for the most descriptors that Linux sends in one message
CLOSE_ON_EXEC = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))  # a flag of recvmsg


def received_descriptors(control: Sequence[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors in the ancillary data of `recvmsg`.

    The caller closes them. Child processes do not inherit them.
    """
    found = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    for descriptor in found:
        os.set_inheritable(descriptor, False)  # on systems without that flag of recvmsg
    return list(found)


def close_all(descriptors: Sequence[int]) -> None:
    """Close all `descriptors`."""
    for descriptor in descriptors:
        os.close(descriptor)
