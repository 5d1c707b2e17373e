"""What a model of this process prints."""

from __future__ import annotations

import builtins
import threading
from typing import Any, TextIO

from tritonpy_worker.host import Host


class Printer:
    """The `print` of one model's own code: whole lines go to the server's log, with the requests that are being executed.

    The process's streams are left alone: what other code writes, libraries among it, and what is printed to a given `file` goes there.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._begun = threading.local()  # a line without its end, of each thread

    def print(
        self,
        *values: object,
        sep: str | None = " ",
        end: str | None = "\n",
        file: TextIO | None = None,
        flush: bool = False,
    ) -> None:
        """Stand in for the builtin function."""
        if file is not None:
            builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        else:
            builtins.print(*values, sep=sep, end=end, file=self)

    def write(self, text: str) -> None:
        """Log what of it, and of what came before, is whole lines."""
        whole, newline, rest = (self._take() + text).rpartition("\n")
        self._begun.line = rest
        if newline:
            self._host.log("INFO", whole)

    def end_line(self) -> None:
        """Let go of a line of this thread that has no end."""
        line = self._take()
        if line:
            self._host.log("INFO", line)

    def builtins(self) -> dict[str, Any]:
        """Return what the model's code is to have instead of Python's own."""
        return {"print": self.print}

    def _take(self) -> str:
        line: str = getattr(self._begun, "line", "")
        self._begun.line = ""
        return line
