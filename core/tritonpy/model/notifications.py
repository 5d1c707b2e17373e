"""Calls to batch policies and observers. Their exceptions are logged and affect no request."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.observer import Observer
from tritonpy.model.delivery import RequestResponse
from tritonpy_types import Batch

log = logging.getLogger("tritonpy.model")


def notify_policies(policies: Sequence[BatchPolicy], batch: Batch, now_ns: int) -> None:
    """Report the size and duration of an executed batch to `policies`."""
    for policy in policies:
        try:
            policy.executed(batch.size, now_ns - batch.start_ns)
        except Exception:
            log.exception("batch policy %s failed to learn", type(policy).__name__)


def notify_observers(
    observers: Sequence[Observer], pairs: Sequence[RequestResponse], now_ns: int
) -> None:
    """Report each (request, response) pair to `observers`."""
    for observer in observers:
        for request, response in pairs:
            try:
                observer.responded(request, response, now_ns)
            except Exception:
                log.exception("observer %s failed", type(observer).__name__)
