"""The servers on which candidates are measured: own ones, or one that is running."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import psutil

from tritonpy import StartupError
from tritonpy_analyzer.space import Candidate, Space
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.control import ControlClient, RequestRejected
from tritonpy_load_generator.target.description import open_control

_READY_S = 120.0
_STOP_S = 15.0
_PR_SET_PDEATHSIG = 1
JsonObject = Mapping[str, Any]


class InvalidCandidate(Exception):
    """The server refuses a configuration; the text is the server's."""


@dataclass(frozen=True, slots=True)
class OwnServerOptions:
    """How to start a server: a repository, or a server.yaml, and further flags."""

    repository: Path | None = None
    server_yaml: Path | None = None
    flags: tuple[str, ...] = ()


class OwnServer:
    """A server in a child process on free ports, which ends with this process.

    An asynchronous context manager. `urls` maps "http" and "grpc" to addresses.
    """

    def __init__(self, options: OwnServerOptions, models: Sequence[str], log: Path) -> None:
        self._options = options
        self._models = models
        self._log_path = log
        self._log: IO[bytes] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self.urls: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """The process id; 0 if the server does not run."""
        return self._process.pid if self._process is not None else 0

    async def __aenter__(self) -> Self:
        ports = _free_ports(2)
        self.urls = {"http": f"127.0.0.1:{ports[0]}", "grpc": f"127.0.0.1:{ports[1]}"}
        source = (
            [f"--model-repository={self._options.repository}"]
            if self._options.server_yaml is None
            else [f"--config={self._options.server_yaml}"]
        )
        self._log = self._log_path.open("wb")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tritonpy",
            "serve",
            *source,
            "--model-control-mode=explicit",
            *(f"--load-model={name}" for name in self._models),
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            f"--http-port={ports[0]}",
            f"--grpc-port={ports[1]}",
            "--allow-metrics=false",
            *self._options.flags,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._log is not None:
            self._log.close()

    async def wait_until_ready(self) -> None:
        """Wait until the server serves. Raises StartupError with its log if it ends instead."""
        assert self._process is not None  # noqa: S101  called after the start
        port = int(self.urls["http"].rpartition(":")[2])
        deadline = asyncio.get_running_loop().time() + _READY_S
        while asyncio.get_running_loop().time() < deadline:
            if self._process.returncode is not None:
                raise StartupError(f"the server did not start: {self.log_tail()}")
            if await _is_ready(port):
                return
            await asyncio.sleep(0.05)
        raise StartupError(f"the server was not ready within {_READY_S:.0f} s: {self.log_tail()}")

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        text = self._log_path.read_text(encoding="utf-8", errors="replace").strip()
        return "\n".join(text.splitlines()[-8:])


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(
            b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        head = await asyncio.wait_for(reader.readline(), 5)
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
    return b" 200 " in head


@dataclass(slots=True)
class ReportedMemory:
    """Bytes that a model holds."""

    cpu: int = 0
    gpu: int = 0


@dataclass(slots=True)
class ServerSlot:
    """A server with the candidate that it serves now.

    `changed` collects the models whose configuration differs from the original one.
    """

    options: LoadOptions
    pid: int = 0
    candidate: Candidate | None = None
    changed: set[str] = field(default_factory=set)
    control: ControlClient = field(init=False)

    def __post_init__(self) -> None:
        self.control = open_control(self.options)

    def apply(self, space: Space, candidate: Candidate) -> None:
        """Serve a candidate: load each model whose settings differ from the served ones.

        Raises InvalidCandidate if the server refuses it, StartupError if it cannot be reached.
        """
        if candidate == self.candidate:
            return
        served, self.candidate = self.candidate or space.present, None
        for model in space.models:
            if candidate.of(model) == served.of(model):
                continue
            self.changed.add(model)
            try:
                self.control.load(model, space.config(model, candidate))
            except RequestRejected as error:
                self._load_present(space)
                raise InvalidCandidate(str(error)) from error
        self.candidate = candidate

    def _load_present(self, space: Space) -> None:
        """Return to a configuration that works, so that the next change starts from it."""
        for model in space.models:
            with contextlib.suppress(RequestRejected):
                self.control.load(model, space.configs[model])
        self.candidate = space.present

    def restore(self, configs: Mapping[str, JsonObject]) -> list[str]:
        """Load the original configuration of each changed model; return the errors.

        A plain load is enough if the repository still has it. Otherwise the original configuration
        is sent.
        """
        errors = []
        for model in sorted(self.changed):
            try:
                self.control.load(model)
                if self.control.config(model, "") != configs[model]:
                    self.control.load(model, configs[model])
            except (RequestRejected, StartupError) as error:
                errors.append(f"{model}: {error}")
        self.changed.clear()
        return errors

    def statistics(self, models: Sequence[str]) -> dict[str, Sequence[JsonObject]]:
        """Return the statistics of models by name."""
        return {model: self.control.statistics(model, "") for model in models}

    def close(self) -> None:
        """Close the control connection."""
        self.control.close()


def memory_in(statistics: Mapping[str, Sequence[JsonObject]]) -> ReportedMemory:
    """Return the memory that models report in their statistics."""
    memory = ReportedMemory()
    for versions in statistics.values():
        for version in versions:
            for usage in version.get("memory_usage", ()):
                size = int(usage.get("byte_size", 0))
                if str(usage.get("type", "")).startswith("GPU"):
                    memory.gpu += size
                else:
                    memory.cpu += size
    return memory


def inference_count(statistics: Mapping[str, Sequence[JsonObject]]) -> int:
    """Return the inferences of models since their load."""
    return sum(
        int(version.get("inference_count", 0))
        for versions in statistics.values()
        for version in versions
    )


def process_tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; an empty list if it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
