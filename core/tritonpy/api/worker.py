"""The interface that starts worker processes, each of which runs one instance."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from tritonpy.api.contexts import InstanceContext


class WorkerProcess(ABC):
    """A process that runs one instance."""

    pid: int

    @abstractmethod
    def wait(self, timeout_s: float) -> int | None:
        """Wait for the process to end; return its status as subprocess does (negative: the signal).

        None if it still runs, or if its status cannot be known.
        """

    @abstractmethod
    def kill(self) -> None:
        """Kill the process; nothing happens if it has ended."""


class Launcher(ABC):
    """Starts the worker processes of one model version.

    Methods are called from threads that may block, for several instances at once. A worker is any
    program that implements the worker protocol on its socket: see `tritonpy_ipc`.
    """

    execution_limit_s: float = 0.0  # a worker whose execution takes longer is killed; 0: no limit

    @abstractmethod
    def launch(
        self, instance: InstanceContext, connection: socket.socket, output: int
    ) -> WorkerProcess:
        """Start a process that inherits `connection` and prints to the descriptor `output`.

        The caller closes its own ends of both. Raise an exception to fail the load, or the restart,
        with its text.
        """

    @abstractmethod
    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        """Return the start message of the worker, as values that JSON can represent."""

    def close(self) -> None:
        """Release resources (optional); called after the last worker ended."""


class SpawnedProcess(WorkerProcess):
    """The process of a command, in its own session, beyond the signals of a terminal."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        connection: socket.socket,
        output: int,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Start `command`, which inherits `connection` and writes its output to `output`.

        The descriptor of `connection` keeps its number. `environment` replaces the environment of
        the server. Raises `OSError` if the command cannot be started.
        """
        return cls(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[connection.fileno()],
                env=environment,
                start_new_session=True,
            )
        )

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
