"""What went wrong in the model, on the terminal."""

from __future__ import annotations

import bdb
import pdb  # noqa: T100 - entering it is what the command is for
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tritonpy_worker.failure import Refused

_RUNTIME = str(Path(__file__).parents[1])


def say(text: str) -> None:
    """Tell the user."""
    print(text, file=sys.stderr, flush=True)


class Reporter:
    """Tells of exceptions, and enters the debugger where they were raised if `post_mortem`.

    `leave()` is called where the exception says that the user wants to go: Ctrl-C, or the debugger's `quit`. `has_told` says whether
    there was any.
    """

    def __init__(self, post_mortem: bool, leave: Callable[[], None]) -> None:
        self._post_mortem = post_mortem
        self._leave = leave
        self.has_told = False

    def tell(self, error: BaseException) -> None:
        """Report an exception of the model, in the main thread and before anybody is answered."""
        self.has_told = True
        if isinstance(error, (KeyboardInterrupt, bdb.BdbQuit)):
            self._leave()
            return
        if isinstance(error, Refused):
            say(f"error: {error}")
            return
        trace = _of_model(error.__traceback__)
        say("".join(traceback.TracebackException(type(error), error, trace).format()).rstrip())
        if self._post_mortem and trace is not None:
            pdb.post_mortem(trace)


def _of_model(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the model's own code on, or the whole where it has none."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename.startswith((_RUNTIME, "<frozen ")):
        at = at.tb_next
    return trace if at is None else at
