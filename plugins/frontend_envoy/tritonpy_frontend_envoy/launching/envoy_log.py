"""What Envoy's process writes to standard error: its own lines become lines of our log, others pass as they are."""

from __future__ import annotations

import logging
import os
import sys

from tritonpy_frontend_envoy.launching.texts import TEXTS

LOG = logging.getLogger("tritonpy.envoy")
MARK = "envoy|"
"""How the lines begin that are Envoy's own."""
FORMAT = f"{MARK}%l|%v"
"""What Envoy is told to write: no other program's line begins like that."""
REFUSED = "refused"
"""The level of lines about requests that Envoy refused, in whose place come status, client, and Envoy's reason."""
_LEVELS = {"warning": logging.WARNING, "error": logging.ERROR, "critical": logging.ERROR, "info": logging.INFO}
_SAID = {str(status): text for status, text in TEXTS.items()}
_LONGEST_LINE = 64 * 1024


class EnvoyLog:
    """Reads a pipe. `last` is the last error that Envoy wrote, "" for none."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._begun = b""
        self.last = ""

    def fileno(self) -> int:
        """Return the descriptor, to wait for it."""
        return self._pipe

    def read(self) -> bool:
        """Take what is there; False where the pipe is at its end."""
        data = os.read(self._pipe, _LONGEST_LINE)
        *lines, self._begun = (self._begun + data).split(b"\n")
        if self._begun and (not data or len(self._begun) > _LONGEST_LINE):
            lines.append(self._begun)
            self._begun = b""
        for line in lines:
            self._take(line)
        return bool(data)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._pipe)

    def _take(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "backslashreplace")
        if not line.startswith(MARK):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
            return
        level, _, text = line[len(MARK) :].partition("|")
        if level == REFUSED:
            LOG.warning("%s", _refusal(text))
            return
        number = _LEVELS.get(level, logging.DEBUG)
        if number >= logging.ERROR:
            self.last = text
        LOG.log(number, "%s", text)


def _refusal(line: str) -> str:
    status, _, rest = line.partition("|")
    client, _, reason = rest.partition("|")
    return f"refused a request from {client}: {_SAID.get(status, f'status {status}')} ({reason})"
