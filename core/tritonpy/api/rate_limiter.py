"""The interface of rate limiters, which decide across all models which instance may execute.

Classes are registered by the hook `tritonpy_rate_limiters`, by the name in `rate_limit: mode:`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup


class RateLimiter(ABC):
    """Grants executions to instances; a server has one limiter.

    An instance acquires a grant before it takes a batch and releases it after `execute` returned.
    `instance` is a text that identifies one instance of one load of a version. `resources` are
    those of `rate_limit:` in server.yaml: the count of each resource, by "name" or "name:device".
    """

    def __init__(self, resources: Mapping[str, int] | None = None) -> None:
        self.resources = resources or {}

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        """Register an instance with its demands; return whether it needs grants at all.

        If not, the limiter is not called for it again, except for `unregister`. Called before the
        instance is created, also for an instance added to a serving model. Raises InvalidArgument
        if its demands can never be met; it is not registered then.
        """
        return True

    def unregister(self, instance: str) -> None:
        """Remove an instance: cancel its wait and release its grant."""

    @abstractmethod
    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Return True if `instance` may execute now; otherwise call `granted` when it may.

        It never blocks, since not every instance has a thread. `granted` is called once, from any
        thread, without a lock that `acquire`, `release` or `unregister` needs. It is fast. A
        waiting instance does not call `acquire` again.
        """

    def reacquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Release a grant and acquire the next one in one step (optional).

        It returns what `acquire` returns. For an instance with more work: it joins the waiting
        instances before the released grant is assigned.
        """
        self.release(instance)
        return self.acquire(instance, granted)

    def release(self, instance: str) -> None:
        """Release the grant of `instance`; nothing happens if it was unregistered meanwhile."""


class NoRateLimiter(RateLimiter):
    """Grants every execution immediately: Triton's `--rate-limit=off`."""

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        """Return False: no instance needs a grant."""
        return False

    def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
        """Return True."""
        return True
