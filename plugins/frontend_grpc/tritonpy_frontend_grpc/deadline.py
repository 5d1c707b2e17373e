"""Deadlines of calls."""

from __future__ import annotations

from tritonpy import Cancelled, Code, InferRequest, TritonError, now_ns
from tritonpy.metrics import FailureReason


class DeadlineExceeded(Cancelled):
    """The request was cancelled because its deadline passed.

    gRPC has a separate status for this.
    """

    def __init__(
        self, message: str = "Deadline Exceeded", reason: FailureReason | None = None
    ) -> None:
        super().__init__(message, reason)


def is_late(request: InferRequest, error: TritonError) -> bool:
    """Return whether `request` was cancelled at its deadline, here or in another process."""
    return (
        request.cancelled or error.code is Code.CANCELLED
    ) and 0 < request.deadline_ns <= now_ns()
