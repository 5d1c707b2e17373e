"""What schedulers, batching policies, fair queueing and rate limiters implement and use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.batch_policy import BatchPolicy, Pending, Policies, Run, Wait
    from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
    from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
    from tritonpy.api.sharing import OrderedRequestQueue, Sharing, WaitingQueue
    from tritonpy_batching.batch_keys import BatchKey, batch_key

__all__ = [
    "UNBOUNDED",
    "BatchKey",
    "BatchPolicy",
    "NoRateLimiter",
    "OrderedRequestQueue",
    "Pending",
    "Policies",
    "RateLimiter",
    "Run",
    "Scheduler",
    "SchedulerContext",
    "Sharing",
    "Wait",
    "WaitingQueue",
    "batch_key",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.batch_policy": ("BatchPolicy", "Pending", "Policies", "Run", "Wait"),
        "tritonpy.api.rate_limiter": ("NoRateLimiter", "RateLimiter"),
        "tritonpy.api.scheduler": ("UNBOUNDED", "Scheduler", "SchedulerContext"),
        "tritonpy.api.sharing": ("OrderedRequestQueue", "Sharing", "WaitingQueue"),
        "tritonpy_batching.batch_keys": ("BatchKey", "batch_key"),
    },
)
