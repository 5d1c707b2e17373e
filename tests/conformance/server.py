"""A server process that is asked: the real Triton, or tritonpy."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from tests.conformance import http_answer
from tests.conformance.exchange import get, keyed
from tests.conformance.repository import beside
from tests.conftest import find_ports
from tests.process_tree import end_tree
from tests.served_transport import transport_flags

TRITONSERVER = "TRITONPY_TRITONSERVER"
MEETINGS = "CONFORMANCE_MEETINGS"
START_S = 120.0
ALIVE_S = 5.0
FLAGS = ("--model-control-mode=explicit", "--exit-timeout-secs=5")


class Server:
    """A running server; `ports` by protocol, `log` is the file that it writes, `meetings` the folder in which instances of its models meet."""

    def __init__(self, process: subprocess.Popen[bytes], ports: dict[str, int], log: Path, meetings: Path) -> None:
        self.process = process
        self.ports = ports
        self.meetings = meetings
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{ports['grpc']}",
            [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)],
        )
        self._log = log

    def logged(self, start: int = 0) -> str:
        """Return what was logged, from a position on."""
        return self._log.read_bytes()[start:].decode("utf-8", "backslashreplace")

    def log_size(self) -> int:
        """Return how much is logged, in bytes."""
        return self._log.stat().st_size

    def forget_meetings(self) -> None:
        """Have no instance find who met in an earlier exchange, or the last time that this one was asked."""
        for place in self.meetings.iterdir():
            shutil.rmtree(place)

    def ask(self, path: str) -> dict[str, Any]:
        """GET a path of the HTTP port."""
        return http_answer.ask(self.ports["http"], keyed(get(path)))

    def alive(self) -> bool:
        """Return whether it runs and answers: a process that is stuck while it dies is as good as dead."""
        live = keyed(get("/v2/health/live", patience=ALIVE_S))
        return self.process.poll() is None and http_answer.ask(self.ports["http"], live).get("status") == 200

    def wait_until_ready(self) -> None:
        """Return when it answers that it is ready; raises RuntimeError with its log when it ends before, or never is."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.ask("/v2/health/ready").get("status") == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError(
            f"the server is not ready (exit status {self.process.poll()}); it printed:\n{self.logged()[-4000:]}"
        )

    def end(self) -> None:
        """Stop it, and whatever it started."""
        self.channel.close()
        end_tree(self.process, 20)


def triton_command() -> list[str]:
    """Return how the real Triton is started; KeyError where nobody said."""
    return [os.environ[TRITONSERVER]]


def tritonpy_command() -> list[str]:
    """Return how tritonpy is started: with client shared memory, which the real one of this version always has."""
    return [sys.executable, "-m", "tritonpy", "serve", *transport_flags(), "--allow-client-shm=true"]


@contextlib.contextmanager
def running(command: Sequence[str], repository: Path, log: Path, *flags: str) -> Iterator[Server]:
    """Start a server on free ports, with no model loaded, and end it; `{beside}` in a flag is the second repository."""
    ports = dict(zip(("http", "grpc", "metrics"), find_ports(3), strict=True))
    numbers = [f"--{protocol}-port={number}" for protocol, number in ports.items()]
    told = [flag.replace("{beside}", str(beside(repository))) for flag in flags]
    with tempfile.TemporaryDirectory(prefix="meetings-") as meetings:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, f"--model-repository={repository}", *numbers, *FLAGS, *told],
                stdout=output, stderr=output, start_new_session=True, cwd=log.parent,
                env={**os.environ, MEETINGS: meetings},
            )  # fmt: skip
        server = Server(process, ports, log, Path(meetings))
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.end()
