from __future__ import annotations

import os

import pytest

from tritonpy_ipc.progress import Progress


def test_both_ends_see_which_execution_began_last() -> None:
    descriptor = Progress.create()
    server, worker = Progress(os.dup(descriptor)), Progress(descriptor)
    assert server.begun == 0
    worker.begin(1 << 40)
    assert server.begun == 1 << 40


def test_it_outlives_the_process_that_wrote_it() -> None:
    descriptor = Progress.create()
    server = Progress(os.dup(descriptor))
    child = os.fork()
    if child == 0:
        Progress(descriptor).begin(7)
        os._exit(0)
    os.close(descriptor)
    os.waitpid(child, 0)
    assert server.begun == 7


def test_a_descriptor_that_cannot_be_mapped_is_closed() -> None:
    read, write = os.pipe()
    with pytest.raises((OSError, ValueError)):
        Progress(read)
    os.close(write)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)
