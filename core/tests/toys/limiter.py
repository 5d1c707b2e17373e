"""A rate limiter with a fixed number of named resources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tritonpy.api.rate_limiter import RateLimiter
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup


class ResourceLimiter(RateLimiter):
    """An instance runs while the resources of its group are free, in the order of their requests."""

    def __init__(self, resources: Mapping[str, int]) -> None:
        self._free = dict(resources)
        self._changed = threading.Condition()
        self._queue: dict[str, Callable[[], None]] = {}
        self.demands: dict[str, dict[str, int]] = {}

    def wait_for_queue(self, count: int) -> None:
        """Wait until `count` instances wait for their resources."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._queue) == count, 10), (
                f"{len(self._queue)} instances wait"
            )

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        self.demands[instance] = {
            resource.name: resource.count for resource in group.rate_limiter.resources
        }
        return True

    def unregister(self, instance: str) -> None:
        with self._changed:
            self._queue.pop(instance, None)
            del self.demands[instance]

    def acquire(self, instance: str, granted: Callable[[], None]) -> bool:
        with self._changed:
            if self._take(instance):
                return True
            self._queue[instance] = granted
            self._changed.notify_all()
            return False

    def release(self, instance: str) -> None:
        with self._changed:
            for name, count in self.demands[instance].items():
                self._free[name] += count
            served = [waiting for waiting in self._queue if self._take(waiting)]
            grants = [self._queue.pop(waiting) for waiting in served]
            self._changed.notify_all()
        for granted in grants:
            granted()

    def _take(self, instance: str) -> bool:
        demands = self.demands[instance]
        if any(self._free[name] < count for name, count in demands.items()):
            return False
        for name, count in demands.items():
            self._free[name] -= count
        return True
