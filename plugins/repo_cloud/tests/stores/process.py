"""A store server in its own process."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

START_S = 90.0


class Running:
    """A running command that listens on a port of 127.0.0.1."""

    def __init__(self, command: Sequence[str], port: int, log: Path) -> None:
        self.port = port
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, env=dict(os.environ)
        )
        deadline = time.monotonic() + START_S
        while not _listens(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise AssertionError(f"{command[0]} does not listen:\n{log.read_text()}")
            time.sleep(0.05)

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
