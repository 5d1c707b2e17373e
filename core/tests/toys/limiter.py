"""A rate limiter with named resources, of which there is a fixed number."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tritonpy.api.rate_limiter import RateLimiter
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup


class ResourceLimiter(RateLimiter):
    """An instance runs while the resources of its group are free."""

    def __init__(self, resources: Mapping[str, int]) -> None:
        self._free = dict(resources)
        self._changed = threading.Condition()
        self._queue = 0
        self.needs: dict[str, dict[str, int]] = {}

    def wait_for_queue(self, count: int) -> None:
        """Wait until `count` instances wait for their resources."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._queue == count, 10), f"{self._queue} instances wait"

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> None:
        self.needs[instance] = {resource.name: resource.count for resource in group.rate_limiter.resources}

    def unregister(self, instance: str) -> None:
        del self.needs[instance]

    def acquire(self, instance: str) -> None:
        needs = self.needs[instance]
        with self._changed:
            self._queue += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: all(self._free[name] >= count for name, count in needs.items()))
            self._queue -= 1
            for name, count in needs.items():
                self._free[name] -= count

    def release(self, instance: str) -> None:
        with self._changed:
            for name, count in self.needs[instance].items():
                self._free[name] += count
            self._changed.notify_all()
