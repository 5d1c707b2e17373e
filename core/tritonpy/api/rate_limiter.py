"""The interface of the rate limiter: which instance may execute now, across all models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup


class RateLimiter(ABC):
    """One object per server. An instance acquires before it takes a batch and releases after `execute` returned.

    `instance` is a text that stands for one instance of one load of a version: no two have the same at one time.
    """

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> None:
        """Take note of an instance and what it needs; raise InvalidArgument where that can never be met."""

    def unregister(self, instance: str) -> None:
        """Forget an instance, and what it waits for."""

    @abstractmethod
    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Return True if `instance` may execute now; otherwise return False and call `granted` when it may.

        Never blocks: not every instance has a thread. `granted` is called once, from any thread, without a lock that `acquire`, `release` or
        `unregister` want; it is quick. An instance that waits does not ask again.
        """

    def release(self, instance: str) -> None:
        """Give back what `acquire` or the later grant gave."""


class NoRateLimiter(RateLimiter):
    """Lets everybody run at once: Triton's `--rate-limit=off`."""

    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Say yes."""
        return True
