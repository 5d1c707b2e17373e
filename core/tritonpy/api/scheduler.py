"""The interface of a scheduler: which requests run together, where and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tritonpy.errors import Internal
from tritonpy.types import Batch, InferRequest, InferResponse

if TYPE_CHECKING:
    from tritonpy.api.batch_policy import BatchPolicy
    from tritonpy.api.engine import Engine
    from tritonpy.api.sharing import Line
    from tritonpy_protos.model_config_pb2 import ModelConfig

UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class SchedulerContext:
    """What a scheduler knows of its model; `directory` is the model's folder.

    `line()` returns an empty line for requests that may run in any order, each priority level's own; None: first in, first out.

    `policy(name)` returns a new batch policy that a plugin registered under that name. `wake()` makes the runner ask
    `ready` again; call it when something other than `enqueue` or `released` made a batch ready, without the model's lock.
    """

    name: str
    version: int
    config: ModelConfig
    engine: Engine
    policy: Callable[[str], BatchPolicy]
    wake: Callable[[], None]
    directory: Path = Path()
    line: Callable[[], Line] | None = None


class Scheduler(ABC):
    """Owns the requests of one model version from a successful `enqueue` until they are answered.

    Every method is called under the model's lock and must not block or call the engine's blocking methods. The scheduler has no thread:
    the runner asks `ready` whenever something changed, and cuts a batch with `take` at the last moment. A request that the scheduler itself answers
    (an error, a time-out, a cancellation) is handed to `request.respond`, which may be called under the lock.
    `enqueue` is the one required method; a scheduler without instances (an ensemble) needs no more.

    `uses_instances = False`: there is no backend, and the requests are handed on to the engine. `enqueue` and `cancel` are then called
    without any lock, from any thread, because a lock must not be held while another model is called.
    """

    uses_instances: ClassVar[bool] = True
    # True where a batch that waits cannot grow: a worker process may then hold the next ones while it executes.
    prefetch: bool = False

    def __init__(self, context: SchedulerContext) -> None:
        self.context = context

    @abstractmethod
    def enqueue(self, request: InferRequest) -> None:
        """Take the request, or raise a TritonError and leave it to the caller."""

    def enqueue_alike(self, requests: Sequence[InferRequest]) -> bool:
        """Take requests that differ in the values of their inputs alone, all of them, and answer none yet; False: nothing happened (optional).

        For who can do that sooner than by one `enqueue` for each. It is not asked of a subclass that changes `enqueue` alone.
        """
        return False

    def ready(self, instance: int, now_ns: int) -> bool | int:
        """Say whether `instance` has a batch to run: yes, no, or not before this time (ns)."""
        raise NotImplementedError(f"{type(self).__name__} must define ready()")

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Cut the batch that `ready` promised, of at most `limit` requests; None if there is nothing after all."""
        raise NotImplementedError(f"{type(self).__name__} must define take()")

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` and answer it with Cancelled if it waits here; do nothing if it does not."""

    def expire(self, now_ns: int) -> int | None:
        """Answer what is overdue; return when to be called again (ns), or None. Asked after each enqueue and at that time."""
        return None

    def released(self, request: InferRequest, reschedule: bool) -> None:
        """Take note that `request` left its instance: answered for good, or with `reschedule` to run again.

        The default refuses the latter: only schedulers that know the notion can take a request back.
        """
        if reschedule:
            text = (
                "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
                "while the model is not configured to handle such a flag."
            )
            request.respond(InferResponse.failed(request, Internal(text)))

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Take note of which instances exist; called before the first request and after each in-place update.

        An instance that is not named any more gets nothing but what is bound to it already, such as the rest of its live sequences.
        The number of an instance is never given to another one.
        """

    def holds(self, instance: int) -> bool:
        """Say whether anything is still bound to `instance`, which `instances_changed` names no more (optional).

        While it is, the instance lives on: it is asked `ready` and `take` as before. Asked again whenever a request left an instance,
        something expired, or `wake` was called.
        """
        return False

    def lost(self, instance: int) -> None:
        """Take note that the process of `instance` ended and another one takes its place: what it remembered is gone (optional).

        Asked before the requests that it had are answered with an error. What cannot run without that memory is refused here.
        """

    def restored(self, instance: int) -> None:
        """Record that `instance`, which was lost, serves again (optional).

        Until then another instance is the better place for what is bound to none.
        """

    def take_back(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Let requests wait again, before all others, whose instance ended before it executed them, oldest first (optional).

        Called before `lost`. Returns those that cannot run again, which are answered with an error; the default returns all.
        """
        return requests

    def is_live(self) -> bool:
        """Say whether sequences live to which requests that are still to come belong (optional).

        A server that exits stops such a scheduler first, and then waits for its sequences before it refuses their requests.
        """
        return False

    def pending(self) -> Sequence[InferRequest]:
        """The requests that still wait; used to answer them when the server gives up on them."""
        return ()

    def stop(self) -> None:
        """Accept no more; the core waits for what is open."""

    def finish(self) -> None:
        """Take note that `enqueue` is never called again, after `stop` (optional): what waits for a request that is to come waits in vain."""
