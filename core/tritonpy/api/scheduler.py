"""The interface of schedulers, which decide which requests run together, where and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tritonpy_types import Batch, InferRequest, InferResponse
from tritonpy_types.errors import Internal

if TYPE_CHECKING:
    from tritonpy.api.batch_policy import BatchPolicy
    from tritonpy.api.engine import Engine
    from tritonpy.api.sharing import WaitingQueue
    from tritonpy_protos.model_config_pb2 import ModelConfig

UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class SchedulerContext:
    """The environment of a scheduler; `directory` is the model's folder.

    `new_queue()` returns an empty queue for requests that may run in any order. Each priority level
    has its own. None: first in, first out.

    `policy(name)` returns a new batch policy that a plugin registered under that name.

    `wake()` makes the runner call `ready` again. Call it without the model's lock when something
    other than `enqueue` or `released` made a batch ready.
    """

    name: str
    version: int
    config: ModelConfig
    engine: Engine
    policy: Callable[[str], BatchPolicy]
    wake: Callable[[], None]
    directory: Path = Path()
    new_queue: Callable[[], WaitingQueue] | None = None


class Scheduler(ABC):
    """Owns the requests of one model version from a successful `enqueue` until they are finished.

    All methods are called under the model's lock. They must not block, and must not call blocking
    methods of the engine. The scheduler has no thread. The runner calls `ready` whenever something
    changed, and forms a batch with `take` as late as possible. If the scheduler itself finishes a
    request (error, timeout, cancellation), it calls `request.respond`, which is allowed under the
    lock.

    `enqueue` is the one required method. A scheduler without instances, such as the ensemble's,
    needs no other.

    `uses_instances = False`: there is no backend, and the scheduler forwards the requests to the
    engine. `enqueue` and `cancel` are then called from any thread without a lock, because no lock
    may be held during a call of another model.
    """

    uses_instances: ClassVar[bool] = True
    # True if a waiting batch cannot grow. A worker process may then hold the next batches while it
    # executes.
    prefetch: bool = False

    def __init__(self, context: SchedulerContext) -> None:
        self.context = context

    @abstractmethod
    def enqueue(self, request: InferRequest) -> None:
        """Take the request, or raise a TritonError and leave the request to the caller."""

    def enqueue_many(self, requests: Sequence[InferRequest]) -> bool:
        """Take all of `requests` without responding to any yet (optional).

        They differ only in their input values. Return False if nothing was taken. Implement it if
        it is faster than `enqueue` for each request. It is not called on a subclass that overrides
        only `enqueue`.
        """
        return False

    def ready(self, instance: int, now_ns: int) -> bool | int:
        """Return whether `instance` has a batch to run: True, False, or the earliest time (ns)."""
        raise NotImplementedError(f"{type(self).__name__} must define ready()")

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Return the batch that `ready` announced, at most `limit` requests; None if it is gone."""
        raise NotImplementedError(f"{type(self).__name__} must define take()")

    def cancel(self, request: InferRequest) -> None:
        """If `request` waits here, drop it and respond with Cancelled."""

    def expire(self, now_ns: int) -> int | None:
        """Respond to overdue requests; return the time (ns) of the next call, or None.

        Called after each `enqueue` and at the returned time.
        """
        return None

    def released(self, request: InferRequest, reschedule: bool) -> None:
        """Handle a request that has left its instance: finished, or with `reschedule` to run again.

        The default fails a request with `reschedule`, since only some schedulers can run one again.
        """
        if reschedule:
            text = (
                "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
                "while the model is not configured to handle such a flag."
            )
            request.respond(InferResponse.failed(request, Internal(text)))

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Handle a change of the model's instances.

        Called before the first request and after each in-place update. A removed instance gets only
        work that is already bound to it, such as the rest of its live sequences. The number of an
        instance is never reused.
        """

    def holds(self, instance: int) -> bool:
        """Return whether anything is still bound to the removed `instance` (optional).

        While it is, the instance stays alive, and `ready` and `take` are called for it as before.
        Called again when a request has left an instance, something expired, or `wake` was called.
        """
        return False

    def lost(self, instance: int) -> None:
        """Handle that the process of `instance` ended and its state is lost (optional).

        Another process replaces it. Called before its requests are failed. Respond here to requests
        that cannot run without that state.
        """

    def restored(self, instance: int) -> None:
        """Handle that `instance`, which was lost, serves again (optional).

        Until then, prefer other instances for requests that are bound to none.
        """

    def requeue(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put requests back to the front of the queue (optional).

        Their instance ended before it executed them. They are sorted, oldest first. Called before
        `lost`. Return the requests that cannot run again; they are failed. The default returns all.
        """
        return requests

    def is_live(self) -> bool:
        """Return whether live sequences still expect requests (optional).

        At shutdown the server stops such a scheduler first. It then waits for the sequences before
        it refuses their requests.
        """
        return False

    def pending(self) -> Sequence[InferRequest]:
        """The requests that still wait; used to respond to them when the server stops waiting."""
        return ()

    def stop(self) -> None:
        """Accept no more requests; the core waits for those in flight."""

    def finish(self) -> None:
        """Handle that `enqueue` is never called again after `stop` (optional).

        Run or fail requests that wait for a later request, since none arrives.
        """
