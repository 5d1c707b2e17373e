"""Workers that are not children of the server."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tritonpy_backend_python.forked_process import ForkedProcess

from .serving import wait_for

# A parent that starts a child, prints its PID, and reaps it on request.
PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print(child.pid, flush=True)
sys.stdin.readline()
print(child.wait(), flush=True)
"""


@pytest.fixture
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def test_the_end_and_status_of_a_forked_process_are_detected(parent) -> None:
    pid = int(parent.stdout.readline())

    def status(queried_pid: int) -> int:
        assert queried_pid == pid
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        return int(parent.stdout.readline())

    forked = ForkedProcess(pid, status)
    assert forked.wait(0.01) is None
    forked.kill()
    assert forked.wait(60) == -signal.SIGKILL
    assert forked.wait(0) == -signal.SIGKILL  # queried_pid once
    forked.kill()  # the process is gone: does nothing
    wait_for(lambda: not psutil.pid_exists(pid))


def test_an_unknown_status_is_none(parent) -> None:
    pid = int(parent.stdout.readline())
    forked = ForkedProcess(pid, lambda _: None)
    forked.kill()
    parent.stdin.write(b"\n")
    parent.stdin.flush()
    assert forked.wait(60) is None
