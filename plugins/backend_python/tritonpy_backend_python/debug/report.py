"""Reports of the model's exceptions on the terminal."""

from __future__ import annotations

import bdb
import pdb  # noqa: T100 - entering it is what the command is for
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tritonpy_worker.failure import ModelContractError

_RUNTIME = str(Path(__file__).parents[1])


def print_message(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


class Reporter:
    """Reports exceptions, and enters the debugger where they were raised if `post_mortem`.

    Calls `leave()` if the exception is Ctrl-C or the debugger's `quit`. `has_reported` is true
    after the first report.
    """

    def __init__(self, post_mortem: bool, leave: Callable[[], None]) -> None:
        self._post_mortem = post_mortem
        self._leave = leave
        self.has_reported = False

    def report(self, error: BaseException) -> None:
        """Report an exception of the model in the main thread, before the response is sent."""
        self.has_reported = True
        if isinstance(error, (KeyboardInterrupt, bdb.BdbQuit)):
            self._leave()
            return
        if isinstance(error, ModelContractError):
            print_message(f"error: {error}")
            return
        trace = _of_model(error.__traceback__)
        print_message(
            "".join(traceback.TracebackException(type(error), error, trace).format()).rstrip()
        )
        if self._post_mortem and trace is not None:
            pdb.post_mortem(trace)


def _of_model(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the first frame of the model's code on, all of it without one."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename.startswith((_RUNTIME, "<frozen ")):
        at = at.tb_next
    return trace if at is None else at
