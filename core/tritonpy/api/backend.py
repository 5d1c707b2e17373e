"""The interface of a backend: what runs a model."""

from __future__ import annotations

import logging
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy.api.options import NoOptions, Options
from tritonpy.config.qualified import qualified
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.device_memory import ModelMemory
from tritonpy.errors import Internal
from tritonpy.gather import gather, scatter
from tritonpy.types import Batch

if TYPE_CHECKING:
    from tritonpy.api.engine import Engine, MemoryUsage
    from tritonpy.api.worker import Launcher
    from tritonpy.layout import BatchLayout
    from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]


@dataclass(slots=True)
class ModelContext:
    """One version of a model, as its backend sees it.

    `path` is the version's folder, `directory` the model's; `parameters` are the string values of the configuration's
    `parameters`; `output_types` maps each configured output to its data type;
    `options` are the backend's own from `server.yaml`; `shared` is what `load` returned (or what
    `auto_complete` left there); `metrics` makes metrics of the model's own, which end with it (those that `auto_complete`
    made, with that call). `backend_directory` is the folder of a Python-based backend, where the model is one of its models, None otherwise.
    `layout` tells `gather` and `scatter` of tensors that are not simply rows; None where there are none. `namespace` is the model's repository, where
    several may hold models of the same name. `memory` is for inputs and outputs that travel to GPUs and back. `cancellation` tells a backend that its load
    is no longer wanted.
    """

    name: str
    version: int
    config: ModelConfig
    directory: Path
    path: Path
    parameters: Mapping[str, str]
    output_types: Mapping[str, str]
    options: Options
    engine: Engine
    log: logging.LoggerAdapter[logging.Logger]
    shared: Any = None
    default_max_batch_size: int = 4
    metrics: ModelMetrics = field(default_factory=lambda: ModelMetrics(CustomMetrics()))
    backend_directory: Path | None = None
    layout: BatchLayout | None = None
    namespace: str = ""
    memory: ModelMemory = field(default_factory=ModelMemory)
    cancellation: LoadCancellation = field(default_factory=LoadCancellation)

    @property
    def qualified_name(self) -> str:
        """The name that no other model of the server has."""
        return qualified(self.namespace, self.name)


@dataclass(slots=True)
class InstanceContext:
    """One instance of a model: `kind` is CPU, GPU or MODEL, `device_id` counts within that kind.

    `max_open` bounds the requests that the instance may hold unanswered (None: no bound); set it in the backend's
    `__init__`. `take_more(n)` returns up to n further requests as a batch, or None when nothing waits: for backends that
    admit requests continuously, between their steps. A `passive` one is loaded, and given no request. `secondary_devices` are (kind, id), as
    the instance group lists them. `host_policy` names the policy of the host that the instance follows, `cores` are the processor cores that its
    thread, or process, is bound to by that (empty: none in particular).
    """

    name: str
    kind: str
    device_id: int
    index: int
    profiles: tuple[str, ...] = ()
    passive: bool = False
    secondary_devices: tuple[tuple[str, int], ...] = ()
    host_policy: str = ""
    cores: tuple[int, ...] = ()
    max_open: int | None = None
    take_more: Callable[[int], Batch | None] = field(default=lambda _n: None)


class Backend(ABC):
    """One instance of one model version on one device. Subclass it and write `infer`; everything else has a default.

    A whole backend, in the plugin's only module:

        from tritonpy import Backend, hookimpl

        class Doubler(Backend):
            def infer(self, inputs):
                return {"OUT": inputs["IN"] * 2}

        @hookimpl
        def tritonpy_backends():
            return {"doubler": Doubler}

    and its `pyproject.toml` names the module under `[project.entry-points.tritonpy]`. A model whose `config.pbtxt` says
    `backend: "doubler"` is then served by it.

    Threads: `__init__`, warm-up, `execute` and `close` of one instance run on one thread, unless `runs_on_any_thread` says that they need not; two calls
    never overlap. Different instances run at the same time. The class methods run while the model loads, on the loading thread.
    Errors: an exception from `__init__` fails the load with its text; one from `infer` or `execute` answers the requests of that
    batch (and of those that `take_more` gave) that are still unanswered with its text. Raise a `TritonError` to choose the code.
    Streams: a decoupled backend calls `request.wait_for_room()` before each answer that is not the final one, and stops when that is False:
    so it goes no faster than the client, and ends with it. Who must not block looks at `request.sink.ready(request)` and is called back by
    `request.sink.when_ready(request, callback)`. Any backend may look at `request.cancelled` and end early: its instance is free sooner.
    """

    Options: ClassVar[type[Options]] = NoOptions
    # What the model's folder holds, in order of preference; the first one is the default file name.
    default_filenames: ClassVar[tuple[str, ...]] = ()
    platforms: ClassVar[tuple[str, ...]] = ()
    default_instance_count: ClassVar[int] = 1  # on the CPU, where the configuration gives no count
    uses_gpu: ClassVar[bool] = False  # KIND_AUTO takes a GPU where there is one
    # Where an instance runs unless the model's parameter `isolation` says otherwise: "thread" of the server, or "process" of its own.
    isolation: ClassVar[str] = "thread"
    # What the configuration's `runtime` may say for this backend to serve the model itself, where Triton has a library or a folder of that name.
    runtimes: ClassVar[tuple[str, ...]] = ()
    # The request parameters that the backend reads; None: any, or it is not known. The generate endpoints refuse the others by name.
    request_parameters: ClassVar[frozenset[str] | None] = None
    # Parameters, of the model or of an accelerator, whose values are paths of the server's file system. A load request may only give those that lead
    # into the model's folder, or that the model's own configuration file has too.
    path_parameters: ClassVar[tuple[str, ...]] = ()
    # `__init__`, `execute` and `close` of an instance may be called from different threads, one after the other, and `execute` never blocks. Then
    # instances on the CPU own no thread while they are idle: they execute on threads that they share with others, and what is known to finish in
    # microseconds on the event loop. Leave it False where a thread has to stay the same, as for the context of a GPU or a connection bound to its thread.
    runs_on_any_thread: ClassVar[bool] = False

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the model itself (optional).

        Change a copy of `model.config`: inputs, outputs, max_batch_size, the scheduling choice and the decoupled flag are
        taken over, anything else is ignored. What is costly to open may be kept in `model.shared`. Raise to fail the load.
        """
        return model.config

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return what all instances of the version share (optional); it becomes `model.shared`."""
        return model.shared

    @classmethod
    def isolation_of(cls, model: ModelContext) -> str:  # noqa: ARG003
        """Return where the instances of `model` run unless its parameter `isolation` says otherwise, "thread" or "process" (optional).

        Asked before `load`, and not only once: answer from what the model's files are.
        """
        return cls.isolation

    @classmethod
    def worker_launcher(cls, model: ModelContext) -> Launcher | None:  # noqa: ARG003
        """Return what starts the worker processes of a model that is isolated (optional).

        None: this class itself runs in a process that the core starts. Called after `load`, on the loading thread.
        """
        return None

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        """Make the instance ready to execute; raise to fail the load with that text."""
        self.model = model
        self.instance = instance

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Compute one gathered batch: arrays by name, batch dimension first where the model has one.

        BYTES tensors are object arrays of `bytes`. Return an array per output; extra ones are ignored, and an output
        whose place is taken by another name, or by nothing, is an error.
        """
        raise NotImplementedError(f"{type(self).__name__} must define infer() or execute()")

    def execute(self, batch: Batch) -> None:
        """Answer every request of `batch`, now or later, each with exactly one final answer.

        The default gathers the inputs, calls `infer` and scatters what it returns. Override it to see requests, parameters or
        device memory, to answer many times (decoupled models) or after returning. The instance is free for the next batch as soon as
        this returns. Call `batch.stamp()` at the end of input and at the end of inference, for the statistics.
        """
        inputs = {tensor.name: tensor.numpy() for tensor in gather(batch)}
        batch.stamp()
        outputs = self.infer(inputs)
        batch.stamp()
        batch.respond(scatter(batch, outputs))

    def is_ready(self) -> bool:
        """Say whether the instance can serve (optional); called from another thread, also while `execute` runs.

        Clients hear the answer when they ask for the model; the server's own readiness never waits for it. An exception, or silence for 5 s, means no.
        """
        return True

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return what this instance holds for itself, in bytes (optional): an entry per kind of memory and device.

        Clients see the sum in the statistics. Asked when the instance is built, and now and then, on another thread, also while `execute` runs, never
        once `close` began: answer from what is known, without waiting. What an exception hides is not shown.
        """
        return ()

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:  # noqa: ARG003
        """Return what `shared`, which `load` returned, holds for all instances (optional); asked together with `memory_usage`."""
        return ()

    def close(self) -> None:
        """Free what the instance holds (optional)."""

    @classmethod
    def unload(cls, shared: object) -> None:
        """Free what `load` returned (optional); called after the last instance closed."""


def check_returned(returned: object) -> None:
    """Raise Internal where `execute` of a backend returned something, as that of a Python model does: what it returns goes nowhere."""
    if returned is not None:
        name = type(returned).__name__
        raise Internal(
            f"execute() of the backend returned a value of type '{name}', expected None: requests are answered by batch.respond()"
        )
