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

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        """Take note of an instance and what it needs; return whether it has to ask at all: if not, nothing but `unregister` is called for it.

        Called before the instance is made, also for one that joins a model that serves. Raises InvalidArgument where what it needs can
        never be met; it is then not registered.
        """
        return True

    def unregister(self, instance: str) -> None:
        """Forget an instance, what it waits for, and what it holds: that is free again."""

    @abstractmethod
    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Return True if `instance` may execute now; otherwise return False and call `granted` when it may.

        Never blocks: not every instance has a thread. `granted` is called once, from any thread, without a lock that `acquire`, `release` or
        `unregister` want; it is quick. An instance that waits does not ask again.
        """

    def again(self, instance: str, granted: Callable[[], object]) -> bool:
        """Give back a grant and ask for the next one, in one step; answers as `acquire` does (optional).

        For an instance that has more to do: it stands in line with those that wait before anybody gets what it gives back.
        """
        self.release(instance)
        return self.acquire(instance, granted)

    def release(self, instance: str) -> None:
        """Give back what `acquire`, `again` or the later grant gave; nothing happens where `instance` was forgotten meanwhile."""


class NoRateLimiter(RateLimiter):
    """Lets everybody run at once: Triton's `--rate-limit=off`."""

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        """Say that nobody has to ask."""
        return False

    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Say yes."""
        return True
