"""Exceptions as text in Triton's format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

_HERE = os.path.dirname(__file__) + os.sep
_CALLERS = {
    _HERE + file for file in ("completion.py", "execution.py", "model_file.py", "model_object.py")
}  # files that call the model's code
_runtime: tuple[str, ...] = (_HERE,)  # folders of the runtime


class ModelContractError(Exception):
    """The model violates a rule of the runtime. Clients only see the text."""


def hide_frames(folder: str) -> None:
    """Treat the code in `folder` as part of the runtime, whose frames are hidden."""
    global _runtime
    _runtime = (*_runtime, folder + os.sep)


def failure_prefix(instance: str) -> str:
    """Return the beginning of the error text of a batch."""
    return f"Failed to process the request(s) for model '{instance}', message: "


def describe_error(error: BaseException) -> str:
    """Return the type and message of an exception, then its frames, innermost first.

    Frames of the runtime are omitted. As in Triton, the cause is not included.
    """
    if isinstance(error, ModelContractError):
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
