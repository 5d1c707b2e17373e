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
    The object is the scheduler's own: read it inside `plan`, do not keep or change it.
    """

    requests: Sequence[InferRequest]
    sizes: Sequence[int]
    rows: int
    oldest_ns: int
    closed: bool = False


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

    `plan` is a pure function of its arguments and of what the policy learnt: no clock, no lock, no thread.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    @abstractmethod
    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Decide; `pending` has at least one request."""

    def executed(self, size: int, duration_ns: int) -> None:
        """Learn what a batch of `size` rows cost, from its start to its first answer (optional); called under the model's lock, as `plan` is."""
