"""The `print` function of models in this process."""

from __future__ import annotations

import builtins
import threading
from typing import Any, TextIO

from tritonpy_worker.host import Host


class Printer:
    """Logs the lines that a model's own code prints, with the IDs of current requests.

    The process's streams are not replaced. They receive the output of other code, such as
    libraries. `print` with a `file` writes to that file.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._begun = threading.local()  # the incomplete line of each thread

    def print(
        self,
        *values: object,
        sep: str | None = " ",
        end: str | None = "\n",
        file: TextIO | None = None,
        flush: bool = False,
    ) -> None:
        """Print like the builtin function, which this method replaces."""
        if file is not None:
            builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        else:
            builtins.print(*values, sep=sep, end=end, file=self)

    def write(self, text: str) -> None:
        """Log the lines that `text` completes."""
        whole, newline, rest = (self._take() + text).rpartition("\n")
        self._begun.line = rest
        if newline:
            self._host.log("INFO", whole)

    def end_line(self) -> None:
        """Log the incomplete line of this thread."""
        line = self._take()
        if line:
            self._host.log("INFO", line)

    def builtins(self) -> dict[str, Any]:
        """Return the builtins that the model's code uses instead of Python's."""
        return {"print": self.print}

    def _take(self) -> str:
        line: str = getattr(self._begun, "line", "")
        self._begun.line = ""
        return line
