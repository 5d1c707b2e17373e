"""Queue policy of one priority level: size limit and timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelQueuePolicy

_US = 1_000


class QueuePolicy(msgspec.Struct, frozen=True, gc=False):
    """Queue policy: at most `max_size` requests wait, each for at most `timeout_ns`; 0 is no limit.

    With `overridable`, a request may shorten its timeout. A request that times out is rejected.
    With `delays`, it moves behind all other requests of its level instead.
    """

    max_size: int = 0
    timeout_ns: int = 0
    overridable: bool = False
    delays: bool = False

    @classmethod
    def of(cls, message: ModelQueuePolicy) -> QueuePolicy:
        """Return the policy of a configuration's `ModelQueuePolicy`."""
        return cls(
            max_size=message.max_queue_size,
            timeout_ns=message.default_timeout_microseconds * _US,
            overridable=message.allow_timeout_override,
            delays=message.timeout_action == message.DELAY,
        )

    def deadline(self, queued_ns: int, timeout_us: int) -> int:
        """Return the deadline (ns) of a request queued at `queued_ns`; `timeout_us` 0: none."""
        timeout_ns = self.timeout_ns
        if self.overridable and 0 < timeout_us * _US < timeout_ns:
            timeout_ns = timeout_us * _US
        return queued_ns + timeout_ns
