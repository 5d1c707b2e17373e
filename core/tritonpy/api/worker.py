"""The interface to worker processes: how the process of one instance is started."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tritonpy.api.backend import InstanceContext


class WorkerProcess(ABC):
    """A process that was started for one instance."""

    pid: int

    @abstractmethod
    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end and return its status as subprocess does (negative: the signal); None when it still runs, or nobody can know."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once; nothing happens where it has ended."""


class Launcher(ABC):
    """Starts the workers of one model version. Methods are called from threads that may wait, for several instances at once.

    A worker is any program that speaks the worker protocol on the socket it is given: see `tritonpy.ipc`.
    """

    execution_limit_s: float = 0.0  # a worker whose execution takes longer is killed; 0: no limit

    @abstractmethod
    def launch(self, instance: InstanceContext, connection: socket.socket, output: int) -> WorkerProcess:
        """Start a process that inherits `connection` and writes what it prints to the descriptor `output`.

        The caller closes its own ends of both. Raise to fail the load, or the restart, with that text.
        """

    @abstractmethod
    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        """Return what the worker is told to run, as values that JSON can carry."""

    def close(self) -> None:
        """Free what the launcher holds (optional); called after the last worker ended."""
