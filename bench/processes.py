"""Server processes: start, readiness, CPU time and memory of the process tree, end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tritonpy_testing import free_port

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Running:
    """A ready server; a port is 0 if the server does not have the protocol."""

    name: str
    pid: int
    http: int = 0
    grpc: int = 0

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process tree so far."""
        total = 0.0
        for process in self._tree():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def resident_bytes(self) -> int:
        """Return the resident memory of the process tree."""
        total = 0
        for process in self._tree():
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def children(self) -> set[int]:
        """Return the process ids of all descendants."""
        return {process.pid for process in self._tree()} - {self.pid}

    def _tree(self) -> list[psutil.Process]:
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]


@contextlib.contextmanager
def tritonpy(
    repository: Path,
    *flags: str,
    python: str = sys.executable,
    wait: Callable[[int], None] | None = None,
) -> Iterator[Running]:
    """Run `tritonpy serve` on free ports; yield after `wait(port)`, or when ready."""
    http, grpc, metrics = free_port(), free_port(), free_port()
    command = [
        python, "-m", "tritonpy", "serve", f"--model-repository={repository}",
        f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}", *flags,
    ]  # fmt: skip
    with process(command, lambda: (wait or wait_http)(http)) as pid:
        yield Running("tritonpy", pid, http, grpc)


@contextlib.contextmanager
def triton(
    binary: Path, repository: Path, *flags: str, wait: Callable[[int], None] | None = None
) -> Iterator[Running]:
    """Run the real Triton on free ports; yield after `wait(port)`, or when ready."""
    http, grpc = free_port(), free_port()
    command = [
        str(binary), f"--model-repository={repository}", f"--http-port={http}",
        f"--grpc-port={grpc}",
        "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--allow-metrics=false", *flags,
    ]  # fmt: skip
    with process(command, lambda: (wait or wait_http)(http)) as pid:
        yield Running("Triton", pid, http, grpc)


@contextlib.contextmanager
def echo(kind: str, model: str) -> Iterator[Running]:
    """Run the bare echo server of a protocol; `h2` is gRPC on tritonpy's own HTTP/2."""
    port = free_port()
    wait = wait_http if kind == "http" else wait_port
    with process(
        [sys.executable, "-m", "bench.echo", kind, str(port), model], lambda: wait(port)
    ) as pid:
        yield Running("echo", pid, **{"http" if kind == "http" else "grpc": port})


def wait_http(port: int, seconds: float = 60) -> None:
    """Wait until the server reports that it is ready. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/v2/health/ready", timeout=1
            ) as response:
                if response.status == 200:
                    return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"no server became ready on port {port} in {seconds} s")


def wait_port(port: int, seconds: float = 60) -> None:
    """Wait until the port accepts connections. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port} after {seconds} s")


@contextlib.contextmanager
def process(command: Sequence[str], wait: Callable[[], None]) -> Iterator[int]:
    """Run a server; yield its process id after `wait()`, and end it with its children."""
    with tempfile.TemporaryFile() as output:
        # A separate session, so that ending it reaches children that the server left behind.
        server = subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, stdout=output, stderr=output
        )
        try:
            wait()
            yield server.pid
        except TimeoutError as error:
            output.seek(0)
            raise TimeoutError(
                f"{error}; it printed:\n{output.read().decode(errors='replace')[-3000:]}"
            ) from None
        finally:
            end(server)


def end(process: subprocess.Popen[Any]) -> None:
    """End a process and its session."""
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
