"""Descriptors that travel with bytes."""

from __future__ import annotations

import os
import socket

import pytest

from tritonpy.ipc.descriptors import CLOSE_ON_EXEC, ROOM, arrived, close_all


@pytest.mark.parametrize("flags", [CLOSE_ON_EXEC, 0])
@pytest.mark.parametrize("count", [1, 2, 253])
def test_all_that_were_sent_arrive_and_no_child_inherits_them(count: int, flags: int) -> None:
    ours, theirs = socket.socketpair()
    sent = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    with ours, theirs:
        socket.send_fds(ours, [b"x"], sent)
        close_all(sent)
        data, control, _, _ = theirs.recvmsg(10, ROOM, flags)
        found = arrived(control)
    assert (data, len(found), len(set(found))) == (b"x", count, count)
    assert not any(os.get_inheritable(descriptor) for descriptor in found)
    close_all(found)


def test_bytes_alone_bring_none_and_other_data_is_passed_over() -> None:
    assert arrived([]) == []
    assert arrived([(socket.SOL_SOCKET, socket.SCM_RIGHTS + 1, b"\0\0\0\0")]) == []
    assert arrived([(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"\0\0")]) == []
