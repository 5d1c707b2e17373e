"""The interface of a batch policy: how a batch is cut from a queue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import msgspec

from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class Pending(msgspec.Struct):
    """What a policy sees of a queue: the requests at its head that may share a batch, in their order.

    `sizes[i]` is the batch size of `requests[i]`, `rows` their sum: never more than the model's maximum. `oldest_ns` is when
    the one that waits longest was queued. `closed` says that no later request can join: the maximum is reached, or the next
    request does not fit (too large, another shape, another set of inputs), so that waiting brings nothing.
    `since_ns` is when an instance was first free for them: what came later came while it waited (0: now).
    The object is the scheduler's own: read it inside `plan`, do not keep or change it.
    """

    requests: Sequence[InferRequest]
    sizes: Sequence[int]
    rows: int
    oldest_ns: int
    closed: bool = False
    since_ns: int = 0

    def first(self, count: int) -> Pending:
        """Return the first `count` requests, at least one, as if no other could join them.

        For a policy with a limit of its own that leaves everything else to the policy that it derives from.
        """
        requests, sizes = self.requests[:count], self.sizes[:count]
        oldest_ns = min([request.queued_ns for request in requests])
        return Pending(requests, sizes, sum(sizes), oldest_ns, closed=True, since_ns=self.since_ns)


@final
class Run(msgspec.Struct, frozen=True, gc=False):
    """Cut the first `count` requests now."""

    count: int


@final
class Wait(msgspec.Struct, frozen=True, gc=False):
    """Cut nothing before `until_ns`, unless the queue changes."""

    until_ns: int


class BatchPolicy(ABC):
    """Decides size and moment of a batch. A model names one in its parameter `batch_policy`.

    `plan` is a pure function of its arguments and of what the policy learnt: no clock, no lock, no thread. What `__init__` raises fails the load.

    A rule on top of the dynamic batcher's own derives from its policy (`tritonpy_batching_dynamic.preferred.PreferredPolicy`) and gives it only
    `pending.first(count)`, those that may share a batch by the rule.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def instances_changed(self, count: int) -> None:
        """Take note of how many instances run the batches (optional); called before the first `plan`, and when their number changes."""

    @abstractmethod
    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Decide; `pending` has at least one request."""

    def cut(self, pending: Pending, count: int, now_ns: int) -> None:
        """Learn that the first `count` requests of `pending` leave as a batch (optional); called under the model's lock, as `plan` is."""

    def executed(self, size: int, duration_ns: int) -> None:
        """Learn what a batch of `size` rows cost, from its start to its first answer (optional); called under the model's lock, as `plan` is."""
