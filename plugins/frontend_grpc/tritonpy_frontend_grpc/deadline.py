"""When a client stops waiting."""

from __future__ import annotations

from tritonpy import Cancelled, Code, FailureReason, InferRequest, TritonError, now_ns


class DeadlineExceeded(Cancelled):
    """The request was cancelled because its deadline passed, which gRPC has a status of its own for."""

    def __init__(self, message: str = "Deadline Exceeded", reason: FailureReason | None = None) -> None:
        super().__init__(message, reason)


def is_late(request: InferRequest, error: TritonError) -> bool:
    """Say whether `request` ended with `error` because it was cancelled at its deadline, here or by an engine in another process."""
    return (request.cancelled or error.code is Code.CANCELLED) and 0 < request.deadline_ns <= now_ns()
