"""Descriptors that are sent together with bytes."""

from __future__ import annotations

import os
import socket

import pytest

from tritonpy_ipc.descriptors import ANCILLARY_SIZE, CLOSE_ON_EXEC, close_all, received_descriptors


@pytest.mark.parametrize("flags", [CLOSE_ON_EXEC, 0])
@pytest.mark.parametrize("count", [1, 2, 253])
def test_all_descriptors_arrive_and_no_child_inherits_them(count: int, flags: int) -> None:
    ours, theirs = socket.socketpair()
    sent = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    with ours, theirs:
        socket.send_fds(ours, [b"x"], sent)
        close_all(sent)
        data, control, _, _ = theirs.recvmsg(10, ANCILLARY_SIZE, flags)
        found = received_descriptors(control)
    assert (data, len(found), len(set(found))) == (b"x", count, count)
    assert not any(os.get_inheritable(descriptor) for descriptor in found)
    close_all(found)


def test_data_without_descriptors_brings_none_and_other_ancillary_data_is_ignored() -> None:
    assert received_descriptors([]) == []
    assert received_descriptors([(socket.SOL_SOCKET, socket.SCM_RIGHTS + 1, b"\0\0\0\0")]) == []
    assert received_descriptors([(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"\0\0")]) == []
