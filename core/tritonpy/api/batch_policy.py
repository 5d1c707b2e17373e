"""The interface of batch policies, which decide when a batch is formed and how large it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, final

import msgspec

from tritonpy_types import InferRequest

if TYPE_CHECKING:
    from pathlib import Path

    from tritonpy_protos.model_config_pb2 import ModelConfig


class Pending(msgspec.Struct):
    """The requests at the head of a queue that may share a batch, in order.

    `sizes[i]` is the batch size of `requests[i]`; `rows` is their sum and never exceeds the model's
    maximum. `oldest_ns` is when the request that waits longest was queued. If `closed`, no later
    request can join, and waiting is useless: the maximum is reached, or the next request does not
    fit (its size, shape or set of inputs differs). `since_ns` is when an instance became free for
    these requests (0: now). Requests queued after that time arrived while the instance waited.

    The object belongs to the scheduler. Read it inside `plan`; do not keep or change it.
    """

    requests: Sequence[InferRequest]
    sizes: Sequence[int]
    rows: int
    oldest_ns: int
    closed: bool = False
    since_ns: int = 0

    def first(self, count: int) -> Pending:
        """Return the first `count` requests (at least one) as a closed set that no other can join.

        Use it in a policy that adds a limit and leaves everything else to its base class.
        """
        requests, sizes = self.requests[:count], self.sizes[:count]
        oldest_ns = min([request.queued_ns for request in requests])
        return Pending(requests, sizes, sum(sizes), oldest_ns, closed=True, since_ns=self.since_ns)


@final
class Run(msgspec.Struct, frozen=True, gc=False):
    """Form a batch of the first `count` requests now."""

    count: int


@final
class Wait(msgspec.Struct, frozen=True, gc=False):
    """Form no batch before `until_ns` (ns), unless the queue changes."""

    until_ns: int


Policies = Callable[[str], "BatchPolicy"]


class BatchPolicy(ABC):
    """Decides the size and the time of batches. Models select one by the parameter `batch_policy`.

    `plan` depends only on its arguments and on the policy's own state. It uses no clock, lock or
    thread. An exception from `__init__` fails the load.

    To add a rule to the dynamic batcher, derive from
    `tritonpy_batching_dynamic.preferred.PreferredPolicy`. Pass it `pending.first(count)`, the
    requests that may share a batch by your rule.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    @classmethod
    def create(cls, config: ModelConfig, _version: int, _folder: Path, _others: Policies) -> Self:
        """Return the policy of a version of a model in a folder (optional).

        The last argument returns another policy by its name, for one that adds a rule to it.
        """
        return cls(config)

    def instances_changed(self, count: int) -> None:
        """Handle a new number of instances that execute the batches (optional).

        Called before the first `plan` and whenever the number changes.
        """

    @abstractmethod
    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Return the decision; `pending` contains at least one request."""

    def cut(self, pending: Pending, count: int, now_ns: int) -> None:
        """Handle that the first `count` requests of `pending` are executed as a batch (optional).

        Called under the model's lock, as `plan` is.
        """

    def executed(self, size: int, duration_ns: int) -> None:
        """Handle the time that a batch of `size` rows took from start to first response (optional).

        Called under the model's lock, as `plan` is.
        """
