from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.workers.tests.backend_process.wire import WAIT_S, eventually
from tritonpy.execution import SpawnedProcess, WorkerProcess

REPORT = """
import os, sys
print(sys.stdin.read(), os.getsid(0) == os.getpid(), os.environ.get("COLOUR"))
print("errors too", file=sys.stderr)
os.write(int(sys.argv[1]), b"hello")
open_ones = [int(each) for each in os.listdir("/proc/self/fd")]
os.write(int(sys.argv[1]), str(max(open_ones) > int(sys.argv[1]) + 1).encode())
"""
SLEEPY_FAMILY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print(child.pid, flush=True)
child.wait()
"""


class Started:
    """A program in a process, and its output."""

    def __init__(self, program: str, environment: dict[str, str] | None = None) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(WAIT_S)
        read, write = os.pipe()
        command = [sys.executable, "-c", program, str(theirs.fileno())]
        self.process = SpawnedProcess.start(command, theirs, write, environment)
        theirs.close()
        os.close(write)
        self.output = os.fdopen(read)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        self.socket.close()
        self.output.close()


@pytest.fixture
def started() -> Iterator[list[Started]]:
    every: list[Started] = []
    yield every
    for each in every:
        each.close()


def test_a_process_has_only_its_socket_and_output(
    started: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "blue")
    with Path(__file__).open() as other:
        os.set_inheritable(other.fileno(), True)
        started.append(Started(REPORT))
        assert sorted(started[0].output) == [" True blue\n", "errors too\n"]
    assert started[0].socket.recv(100, socket.MSG_WAITALL) == b"helloFalse"
    assert started[0].process.wait(WAIT_S) == 0


def test_an_environment_can_be_chosen(started: list[Started]) -> None:
    started.append(Started(REPORT, {"COLOUR": "green"}))
    assert " True green\n" in list(started[0].output)


def test_wait_returns_the_exit_status(started: list[Started]) -> None:
    started.append(Started("import sys; sys.stdin.read(); sys.exit(5)"))
    started.append(Started("import time; time.sleep(1000)"))
    assert isinstance(started[0].process, WorkerProcess)
    assert started[0].process.wait(WAIT_S) == 5
    assert started[1].process.wait(0.001) is None
    os.kill(started[1].process.pid, signal.SIGTERM)
    assert started[1].process.wait(WAIT_S) == -signal.SIGTERM


def test_its_children_are_killed_with_it_and_kill_may_be_repeated(started: list[Started]) -> None:
    started.append(Started(SLEEPY_FAMILY))
    child = int(started[0].output.readline())
    started[0].process.kill()
    assert started[0].process.wait(WAIT_S) == -signal.SIGKILL
    started[0].process.kill()
    assert started[0].output.read() == ""  # no process has it open
    eventually(lambda: not _runs(child))


def test_a_command_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(OSError, match="nowhere"):
        SpawnedProcess.start([str(tmp_path / "nowhere")], theirs, 2)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
