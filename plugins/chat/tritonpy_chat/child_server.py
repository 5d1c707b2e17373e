"""A server for one model file, in a child process that ends with this one."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from tritonpy import StartupError
from tritonpy_chat.client import ChatClient

_POLL_S = 0.05
_STOP_S = 15.0
_LOG_LINES = 8
_PR_SET_PDEATHSIG = 1


class ChildServer:
    """Serves `model` on a free port of this machine. A context manager; `url` is its address."""

    def __init__(self, model: Path, flags: tuple[str, ...] = ()) -> None:
        self._model = model
        self._flags = flags
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [
            sys.executable, "-m", "tritonpy", "serve", str(self._model),
            "--allow-http=false", "--allow-grpc=false", "--allow-metrics=false",
            "--openai-address=127.0.0.1", f"--openai-port={port}", *self._flags,
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the chat
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has no threads yet
        )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    def wait_until_ready(self, client: ChatClient) -> None:
        """Wait until the model is loaded. Raises StartupError with the log if the server ends."""
        assert self._process is not None  # noqa: S101 - used as a context manager
        while not client.is_ready():
            if self._process.poll() is not None:
                raise StartupError(f"the server for {self._model} did not start:\n{self._tail()}")
            time.sleep(_POLL_S)

    def _tail(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-_LOG_LINES:])


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
