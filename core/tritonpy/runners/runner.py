"""The interface of runners, which execute a version's instances, and of their factories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.runners.batch_callbacks import BatchCallbacks
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.wakeups import Wakeups
from tritonpy.runners.warmup import MakeSamples
from tritonpy_types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup

READINESS_LIMIT_S = 5.0  # how long a readiness check may take before the model counts as not ready


NewInstance = tuple[InstanceContext, "ModelInstanceGroup"]


class Runner(ABC):
    """Starts, feeds and ends the instances of one model version, known by their indexes.

    `add` and `serve` are called for new instances, `remove` for instances to end, and `stop` once,
    even after an `add` that raised. These methods block, and `stop` may overlap another one. All
    other methods may be called from any thread.
    """

    @abstractmethod
    def add(self, new_instances: Sequence[NewInstance]) -> None:
        """Build further instances; return when all can execute, though none accepts requests yet.

        Raises the error of the first failing instance; none of them is left then.
        """

    @abstractmethod
    def serve(self, indexes: Collection[int]) -> None:
        """Let added instances accept requests; passive ones never do."""

    @abstractmethod
    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        """Drain instances; return a future of the end of each.

        The scheduler has already removed them. Instances that never served end immediately.
        """

    @abstractmethod
    def stop(self) -> None:
        """End every instance after its current execution, and free what they share."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether all instances are alive; runs no code of the model and never blocks."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the model is ready according to all its instances.

        Takes at most `READINESS_LIMIT_S`; the result is False afterwards. It is also False if a
        check raises, and the error is logged.
        """

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the known memory usage, one entry per kind and device; never blocks (optional)."""
        return ()

    def measure_memory(self) -> None:
        """Measure the memory usage, because the instances have changed (optional)."""

    def cancelled(self, request: InferRequest) -> None:
        """Handle the cancellation of `request`, which an instance has taken (optional).

        It may come before the instance begins with the request, or just after its response. An
        instance in this process needs no message: it checks `request.cancelled`.
        """


@dataclass(frozen=True, slots=True)
class RunnerServices:
    """What the runners of one server share.

    - `find_config(name, version)` returns the configuration of a ready model; it raises a
      `TritonError`.
    - `graph` holds the calls between models that are in flight.
    - `threads` execute for instances without a thread of their own, `background` runs queries that
      no
      request waits for.
    - `wakeups` has the event loop of the started server.
    """

    find_config: Callable[[str, int], ModelConfig]
    graph: CallGraph
    limiter: RateLimiter
    wakeups: Wakeups
    threads: ThreadPool
    background: ThreadPool
    policies: HostPolicies


@dataclass(frozen=True, slots=True)
class ModelExecution:
    """The model version for which a runner is made.

    `dispatcher` connects the instances to the scheduler, `callbacks` are called for executed
    batches. `samples` returns the warm-up requests; None: the model has none. With `prefetch`, the
    scheduler allows an instance to take its next batch before the current one has ended.
    """

    model: ModelContext
    backend: type[Backend]
    dispatcher: Dispatcher
    callbacks: BatchCallbacks
    samples: MakeSamples | None
    prefetch: bool


class RunnerFactory(ABC):
    """Makes the runners of one server, registered by the hook `tritonpy_runners`.

    A factory decides where instances execute: "thread" is built in, "process" comes from the
    package tritonpy-workers. A model chooses one by its parameter `isolation`, or its backend does.
    The server opens a factory when the first model needs it, and closes it after all models are
    unloaded.

        class InlineFactory(RunnerFactory):
            def runner(self, execution):
                return InlineRunner(execution, self.services)

        @hookimpl
        def tritonpy_runners():
            return {"inline": InlineFactory}
    """

    def __init__(self, services: RunnerServices) -> None:
        self.services = services

    @abstractmethod
    def runner(self, execution: ModelExecution) -> Runner:
        """Return a runner without instances for one model version. Called from any thread."""

    @classmethod
    def single_instance(
        cls, backend: type[Backend], model: ModelContext, instance: InstanceContext
    ) -> Backend:
        """Return one instance of this factory's kind, without a server (optional).

        Test harnesses use it. The caller calls `execute` and `close` from one thread.
        """
        return backend(model, instance)

    def close(self) -> None:
        """Release what the runners shared (optional)."""
