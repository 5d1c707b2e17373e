"""Exceptions as text, in the form that Triton gives them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

_HERE = os.path.dirname(__file__) + os.sep
_CALLERS = {
    _HERE + file for file in ("completion.py", "execution.py", "model_file.py", "model_object.py")
}  # of the model's code
_runtime: tuple[str, ...] = (_HERE,)  # folders


class Refused(Exception):
    """The runtime refuses what a model did: clients see the text alone."""


def leave_out(folder: str) -> None:
    """Take the code in `folder` for a part of this runtime."""
    global _runtime
    _runtime = (*_runtime, folder + os.sep)


def failure_of(instance: str) -> str:
    """Return how the error of a whole batch begins."""
    return f"Failed to process the request(s) for model '{instance}', message: "


def describe(error: BaseException) -> str:
    """Return type and message, then where it happened: the innermost frame first, then its callers.

    The frames of this runtime are left out. What an exception was raised from is not told, as in Triton.
    """
    if isinstance(error, Refused):
        return str(error)
    text = f"{type(error).__name__}: {_message(error)}"
    places = "".join([f"  {place}\n" for place in _places(error)])
    return f"{text}\n\nAt:\n{places}" if places else text


def _message(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # the model's own __str__
        return "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"
    return message.encode(errors="backslashreplace").decode() or "<EMPTY MESSAGE>"


def _places(error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    if trace is None:
        return
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame: FrameType | None = trace.tb_frame
    while frame is not None and frame.f_code.co_filename not in _CALLERS:
        code = frame.f_code
        if not code.co_filename.startswith(_runtime):
            yield f"{code.co_filename}({frame.f_lineno}): {code.co_name}"
        frame = frame.f_back
