"""When a client stops waiting."""

from __future__ import annotations

from tritonpy import Cancelled, InferRequest, now_ns


class DeadlineExceeded(Cancelled):
    """The request was cancelled because its deadline passed, which gRPC has a status of its own for."""


def is_late(request: InferRequest) -> bool:
    """Say whether `request` was cancelled at its deadline."""
    return request.cancelled and 0 < request.deadline_ns <= now_ns()
