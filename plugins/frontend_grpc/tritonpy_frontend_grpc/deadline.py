"""When a client stops waiting."""

from __future__ import annotations

from typing import Any

import grpc

from tritonpy import Cancelled, InferRequest, now_ns


def deadline_of(context: grpc.aio.ServicerContext[Any, Any]) -> int:
    """Return the deadline that the client gave its call, in ns on the server's clock; 0 for none."""
    left_s = context.time_remaining()
    return 0 if left_s is None else now_ns() + max(int(left_s * 1e9), 0)


class DeadlineExceeded(Cancelled):
    """The request was cancelled because its deadline passed, which gRPC has a status of its own for."""


def is_late(request: InferRequest) -> bool:
    """Say whether `request` was cancelled at its deadline."""
    return request.cancelled and 0 < request.deadline_ns <= now_ns()
