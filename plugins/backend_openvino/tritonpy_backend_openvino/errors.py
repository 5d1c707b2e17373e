"""Conversion of OpenVINO errors to Triton's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy import Internal, TritonError
from tritonpy.metrics import FailureReason

# Lines with the location of a failure in OpenVINO's source. The message follows in separate lines.
_SOURCE_LOCATION = re.compile(
    r"(Caught exception: )?Exception from \S+:\d+:?$|Check '.*' failed at \S+:\d+:?$"
)


def to_triton_error(action: str, error: Exception) -> TritonError:
    """Return the `TritonError` that clients receive for an exception raised while `action`."""
    if isinstance(error, TritonError):
        return type(error)(error.message, FailureReason.BACKEND)
    return Internal(f"openvino error in {action} : {_message(error)}", FailureReason.BACKEND)


@contextmanager
def translate_errors(action: str, what: object = "") -> Iterator[None]:
    """Convert exceptions in the `with` block to `TritonError`s that name `action` and `what`."""
    try:
        yield
    except Exception as error:
        failure = to_triton_error(action, error)
        raise type(failure)(
            f"{failure.message} ({what})" if what else failure.message, failure.reason
        ) from error


def _message(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    messages = [line for line in lines if line and not _SOURCE_LOCATION.fullmatch(line)]
    return " ".join(messages) or " ".join(lines).strip() or type(error).__name__
