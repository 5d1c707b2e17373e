"""What one priority level does with a request that finds it full or waits too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelQueuePolicy

_US = 1_000


class QueuePolicy(msgspec.Struct, frozen=True, gc=False):
    """`max_size` requests may wait (0: any number), each for `timeout_ns` (0: for ever).

    `overridable` lets a request shorten its own time. A request whose time is up is refused, or with `delays` moved
    behind all others of its level.
    """

    max_size: int = 0
    timeout_ns: int = 0
    overridable: bool = False
    delays: bool = False

    @classmethod
    def of(cls, message: ModelQueuePolicy) -> QueuePolicy:
        """Return the policy that a configuration's `ModelQueuePolicy` describes."""
        return cls(
            max_size=message.max_queue_size,
            timeout_ns=message.default_timeout_microseconds * _US,
            overridable=message.allow_timeout_override,
            delays=message.timeout_action == message.DELAY,
        )

    def deadline(self, queued_ns: int, timeout_us: int) -> int:
        """Return when the time of a request is up that was queued at `queued_ns` and asks for `timeout_us` (0: nothing)."""
        timeout_ns = self.timeout_ns
        if self.overridable and 0 < timeout_us * _US < timeout_ns:
            timeout_ns = timeout_us * _US
        return queued_ns + timeout_ns
