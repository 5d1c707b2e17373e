"""The interface that starts worker processes, each of which runs one instance."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tritonpy.api.backend import InstanceContext


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
    def launch(self, instance: InstanceContext, connection: socket.socket, output: int) -> WorkerProcess:
        """Start a process that inherits `connection` and prints to the descriptor `output`.

        The caller closes its own ends of both. Raise an exception to fail the load, or the restart,
        with its text.
        """

    @abstractmethod
    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        """Return the start message of the worker, as values that JSON can represent."""

    def close(self) -> None:
        """Release resources (optional); called after the last worker ended."""
