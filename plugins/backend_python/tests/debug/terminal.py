"""The debug command in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

WAIT_S = 60.0
PROMPT = "(Pdb) "


class Terminal:
    """Runs `tritonpy debug` on a pseudo-terminal. A context manager, which ends the process."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "PYTHONBREAKPOINT": "", "COLUMNS": "200"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tritonpy", "debug", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - takes no lock
        )  # fmt: skip
        os.close(theirs)
        self.text = ""
        self._at = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def until(self, *texts: str) -> str:
        """Wait for one of `texts` in the output after the previous match.

        Return the output up to its end.
        """
        pattern = re.compile("|".join(map(re.escape, texts)))
        deadline = time.monotonic() + WAIT_S
        while (found := pattern.search(self.text, self._at)) is None:
            assert self._read(deadline), f"{texts} did not appear:\n{self.text}"
        before, self._at = self._at, found.end()
        return self.text[before : self._at]

    def send(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._ours, b"\x03")

    def ended(self) -> int:
        """Wait for the end and return the exit status. `text` is the complete output."""
        deadline = time.monotonic() + WAIT_S
        while self._read(deadline):
            pass
        return self.process.wait(WAIT_S)

    def kill(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def _read(self, deadline: float) -> bool:
        """Read once. Return false at the end of the output."""
        readable, _, _ = select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))
        assert readable, f"nothing more was printed:\n{self.text}"
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.text += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def _take_terminal() -> None:
    """Make it the terminal of the new session, so that Ctrl-C reaches the process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command without a terminal and return the result."""
    return _run([sys.executable, "-m", "tritonpy", "debug", *arguments], stdin)


def _run(command: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
