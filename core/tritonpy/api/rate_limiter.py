"""The interface of the rate limiter: which instance may execute now, across all models."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
        """Forget an instance."""

    @abstractmethod
    def acquire(self, instance: str) -> None:
        """Block until `instance` may execute."""

    def release(self, instance: str) -> None:
        """Give back what `acquire` took."""


class NoRateLimiter(RateLimiter):
    """Lets everybody run at once: Triton's `--rate-limit=off`."""

    def acquire(self, instance: str) -> None:
        """Go."""
