"""Who hears of executions and answers: what fails there is logged, and costs nobody an answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.observer import Observer
from tritonpy.model.ordering import Answer
from tritonpy.types import Batch

log = logging.getLogger("tritonpy.model")


def teach(policies: Sequence[BatchPolicy], batch: Batch, now_ns: int) -> None:
    """Tell the policies what a batch cost."""
    for policy in policies:
        try:
            policy.executed(batch.size, now_ns - batch.start_ns)
        except Exception:
            log.exception("batch policy %s failed to learn", type(policy).__name__)


def show(observers: Sequence[Observer], answers: Sequence[Answer], now_ns: int) -> None:
    """Show the answers to the observers."""
    for observer in observers:
        for request, response in answers:
            try:
                observer.answered(request, response, now_ns)
            except Exception:
                log.exception("observer %s failed", type(observer).__name__)
