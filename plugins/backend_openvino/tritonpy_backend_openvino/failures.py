"""Errors of OpenVINO in the words of Triton."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy import FailureReason, Internal, TritonError

# Where in OpenVINO's own source something was noticed; what was noticed follows in lines of its own.
_WHEREABOUTS = re.compile(r"(Caught exception: )?Exception from \S+:\d+:?$|Check '.*' failed at \S+:\d+:?$")


def failure_of(doing: str, error: Exception) -> TritonError:
    """Return what clients see of an exception that came up while `doing`."""
    if isinstance(error, TritonError):
        return type(error)(error.message, FailureReason.BACKEND)
    return Internal(f"openvino error in {doing} : {_said(error)}", FailureReason.BACKEND)


@contextmanager
def told_as(doing: str, what: object = "") -> Iterator[None]:
    """Raise what comes up inside as an error that says what was being done, and to `what`."""
    try:
        yield
    except Exception as error:
        failure = failure_of(doing, error)
        raise type(failure)(f"{failure.message} ({what})" if what else failure.message, failure.reason) from error


def _said(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not _WHEREABOUTS.fullmatch(line)]
    return " ".join(telling) or " ".join(lines).strip() or type(error).__name__
