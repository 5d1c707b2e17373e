"""A server process under test: the real Triton, or tritonpy."""

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

from tests.conformance import http_response
from tests.conformance.exchange import get, keyed
from tests.conformance.repository import second_repository
from tests.conftest import find_ports
from tests.process_tree import end_tree
from tests.served_transport import transport_flags

TRITONSERVER = "TRITONPY_TRITONSERVER"
MEETINGS = "CONFORMANCE_MEETINGS"
START_S = 120.0
ALIVE_S = 5.0
FLAGS = ("--model-control-mode=explicit", "--exit-timeout-secs=5")


class Server:
    """A running server; `ports` by protocol, `log` is its log file.

    `meetings` is the folder where instances of its models meet.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], ports: dict[str, int], log: Path, meetings: Path
    ) -> None:
        self.process = process
        self.ports = ports
        self.meetings = meetings
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{ports['grpc']}",
            [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)],
        )
        self._log = log

    def logged(self, start: int = 0) -> str:
        """Return the log from a byte position on."""
        return self._log.read_bytes()[start:].decode("utf-8", "backslashreplace")

    def log_size(self) -> int:
        """Return the size of the log in bytes."""
        return self._log.stat().st_size

    def clear_meetings(self) -> None:
        """Remove the traces of instances that met in an earlier exchange or attempt."""
        for place in self.meetings.iterdir():
            shutil.rmtree(place)

    def get_path(self, path: str) -> dict[str, Any]:
        """Send a GET request to the HTTP port."""
        return http_response.send(self.ports["http"], keyed(get(path)))

    def alive(self) -> bool:
        """Return whether the server runs and responds; a hanging process counts as dead."""
        live = keyed(get("/v2/health/live", timeout_s=ALIVE_S))
        return (
            self.process.poll() is None
            and http_response.send(self.ports["http"], live).get("status") == 200
        )

    def wait_until_ready(self) -> None:
        """Return when the server is ready; raises RuntimeError with its log if it ends or never is."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.get_path("/v2/health/ready").get("status") == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError(
            f"the server is not ready (exit status {self.process.poll()}); it printed:\n{self.logged()[-4000:]}"
        )

    def end(self) -> None:
        """Stop the server and all processes that it started."""
        self.channel.close()
        end_tree(self.process, 20)


def triton_command() -> list[str]:
    """Return the command of the real Triton. Raises KeyError if it is not configured."""
    return [os.environ[TRITONSERVER]]


def tritonpy_command() -> list[str]:
    """Return the command of tritonpy, with client shared memory, as in the real Triton."""
    return [
        sys.executable,
        "-m",
        "tritonpy",
        "serve",
        *transport_flags(),
        "--allow-client-shm=true",
    ]


@contextlib.contextmanager
def running(command: Sequence[str], repository: Path, log: Path, *flags: str) -> Iterator[Server]:
    """Start a server on free ports without loaded models, and end it.

    `{second_repository}` in a flag is the folder of the second repository.
    """
    ports = dict(zip(("http", "grpc", "metrics"), find_ports(3), strict=True))
    numbers = [f"--{protocol}-port={number}" for protocol, number in ports.items()]
    expanded_flags = [
        flag.replace("{second_repository}", str(second_repository(repository))) for flag in flags
    ]
    with tempfile.TemporaryDirectory(prefix="meetings-") as meetings:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, f"--model-repository={repository}", *numbers, *FLAGS, *expanded_flags],
                stdout=output, stderr=output, start_new_session=True, cwd=log.parent,
                env={**os.environ, MEETINGS: meetings},
            )  # fmt: skip
        server = Server(process, ports, log, Path(meetings))
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.end()
