"""Workers that are not the server's own children."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tritonpy_backend_python.forked import ForkedProcess

from .serving import wait_for

# A parent that starts a child, says its number, and reaps it when told to.
PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print(child.pid, flush=True)
sys.stdin.readline()
print(child.wait(), flush=True)
"""


@pytest.fixture
def parent():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_its_end_is_seen_and_its_status_asked_for(parent) -> None:
    pid = int(parent.stdout.readline())

    def status(asked: int) -> int:
        assert asked == pid
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        return int(parent.stdout.readline())

    forked = ForkedProcess(pid, status)
    assert forked.wait(0.01) is None
    forked.kill()
    assert forked.wait(60) == -signal.SIGKILL
    assert forked.wait(0) == -signal.SIGKILL  # asked once
    forked.kill()  # nobody is there: nothing happens
    wait_for(lambda: not psutil.pid_exists(pid))


def test_where_nobody_knows_the_status_there_is_none(parent) -> None:
    pid = int(parent.stdout.readline())
    forked = ForkedProcess(pid, lambda _: None)
    forked.kill()
    parent.stdin.write(b"\n")
    parent.stdin.flush()
    assert forked.wait(60) is None
