"""Worker processes that are started from a command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from tritonpy.api.worker import WorkerProcess


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
