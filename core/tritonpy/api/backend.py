"""The interface of backends, which execute models."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_batching.gather import gather, scatter
from tritonpy_config.options import NoOptions, Options
from tritonpy_types import Batch
from tritonpy_types.errors import Internal

if TYPE_CHECKING:
    from tritonpy.api.engine import MemoryUsage
    from tritonpy.api.worker import Launcher
    from tritonpy_config.tuning import SearchDimension
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup

Array = npt.NDArray[Any]


class Backend(ABC):
    """One instance of one model version on one device.

    Subclass it and define `infer`; everything else has a default. A complete backend, in the only
    module of a plugin:

        from tritonpy import Backend, hookimpl

        class Doubler(Backend):
            def infer(self, inputs):
                return {"OUT": inputs["IN"] * 2}

        @hookimpl
        def tritonpy_backends():
            return {"doubler": Doubler}

    The plugin's `pyproject.toml` names the module under `[project.entry-points.tritonpy]`. The
    backend then serves models whose `config.pbtxt` contains `backend: "doubler"`.

    Threads: `__init__`, warm-up, `execute` and `close` of one instance run on one thread, unless
    `runs_on_any_thread` is set. Two calls never overlap. Different instances run at the same time.
    The class methods run on the loading thread.

    Errors: an exception from `__init__` fails the load with its text. An exception from `infer` or
    `execute` fails the unfinished requests of the batch, and those from `take_more`, with its text.
    Raise a `TritonError` to choose the error code.

    Streams: a decoupled backend calls `request.wait_for_credit()` before each response that is not
    final, and stops if it returns False. So it produces no faster than the client consumes, and
    ends when the client leaves. A backend that must not block checks `request.sink.ready(request)`
    and passes a callback to `request.sink.when_ready(request, callback)`. Any backend may check
    `request.cancelled` and end early to free its instance.
    """

    Options: ClassVar[type[Options]] = NoOptions
    # File names in the model's folder in order of preference; the first is the default file name.
    default_filenames: ClassVar[tuple[str, ...]] = ()
    platforms: ClassVar[tuple[str, ...]] = ()
    default_instance_count: ClassVar[int] = 1  # on the CPU, if the configuration gives no count
    uses_gpu: ClassVar[bool] = False  # KIND_AUTO selects a GPU if one is available
    # Where instances run by default: in a "thread" of the server or in a separate "process". The
    # model's parameter `isolation` overrides it.
    isolation: ClassVar[str] = "thread"
    # Values of the configuration's `runtime` for which this backend serves the model itself. In
    # Triton they name a library or a folder.
    runtimes: ClassVar[tuple[str, ...]] = ()
    # The request parameters that the backend reads. None if it may read any, or if they are not
    # known. The generate endpoints reject all others by name.
    request_parameters: ClassVar[frozenset[str] | None] = None
    # Keys of `parameters` in a model configuration that the backend reads; `tritonpy lint` suggests
    # the closest one for a misspelled key. Other keys are allowed.
    model_parameters: ClassVar[tuple[str, ...]] = ()
    # Parameters of the model or of an accelerator whose values are paths in the server's file
    # system. A load request may only set paths inside the model's folder, or values that the
    # model's own configuration file contains, too.
    path_parameters: ClassVar[tuple[str, ...]] = ()
    # Set it if different threads may call `__init__`, `execute` and `close` of an instance, one at
    # a time, and `execute` never blocks. Idle CPU instances then own no thread. They execute on
    # shared threads, and on the event loop if their executions are known to take microseconds.
    # Leave it False if the thread must stay the same, as for the context of a GPU or for a
    # connection bound to its thread.
    runs_on_any_thread: ClassVar[bool] = False

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the model itself (optional).

        Change a copy of `model.config`. Inputs, outputs, `max_batch_size`, the scheduling choice
        and the decoupled flag are used; all other changes are ignored. Objects that are expensive
        to open may be kept in `model.shared`. Raise an exception to fail the load.
        """
        return model.config

    @classmethod
    def preferred_groups(cls, model: ModelContext) -> Sequence[ModelInstanceGroup]:  # noqa: ARG003
        """Return instance groups for models that set none, best first (optional).

        The first one that the machine can run is used. Their counts and GPUs also apply to groups
        of the same kind that leave them open. Called before `auto_complete`.
        """
        return ()

    @classmethod
    def search_dimensions(cls, cores: int) -> Sequence[SearchDimension]:  # noqa: ARG003
        """Return the settings that `tritonpy analyze` may search on `cores` cores (optional).

        Each one is a key of the model's `parameters`, such as a number of threads.
        """
        return ()

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the object that all instances of the version share (optional): `model.shared`."""
        return model.shared

    @classmethod
    def isolation_of(cls, model: ModelContext) -> str:  # noqa: ARG003
        """Return "thread" or "process": where the instances of `model` run by default (optional).

        The model's parameter `isolation` overrides it. The server calls this before `load`,
        possibly several times, so decide by the model's files.
        """
        return cls.isolation

    @classmethod
    def worker_launcher(cls, model: ModelContext) -> Launcher | None:  # noqa: ARG003
        """Return the launcher of an isolated model's worker processes (optional).

        None: the core starts a process that runs this class. Called after `load`, on the loading
        thread.
        """
        return None

    @classmethod
    def worker_environment(cls, model: ModelContext) -> Mapping[str, str]:  # noqa: ARG003
        """Return environment variables of the worker processes that the core starts (optional)."""
        return {}

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        """Prepare the instance for execution; raise an exception to fail the load with its text."""
        self.model = model
        self.instance = instance

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Compute one gathered batch.

        `inputs` maps names to arrays, with the batch dimension first if the model has one. BYTES
        tensors are object arrays of `bytes`. Return one array per output. Extra outputs are
        ignored. A missing output is an error if an unknown name was returned instead of it, or no
        output at all.
        """
        raise NotImplementedError(f"{type(self).__name__} must define infer() or execute()")

    def execute(self, batch: Batch) -> None:
        """Respond to every request of `batch`, now or later, each with exactly one final response.

        The default gathers the inputs, calls `infer` and scatters its outputs. Override it to
        access requests, parameters or device memory, to send several responses (decoupled models),
        or to respond after returning. The instance is free for the next batch as soon as this
        method returns. For the statistics, call `batch.stamp()` when the inputs are ready and again
        when inference ends.
        """
        inputs = {tensor.name: tensor.numpy() for tensor in gather(batch)}
        batch.stamp()
        outputs = self.infer(inputs)
        batch.stamp()
        batch.respond(scatter(batch, outputs))

    def is_ready(self) -> bool:
        """Return whether the instance can serve (optional).

        Called from another thread, also while `execute` runs. The result is part of the model's
        readiness that clients see; the server's own readiness never depends on it. An exception, or
        no result within 5 s, means not ready.
        """
        return True

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the memory of this instance in bytes, one entry per kind and device (optional).

        Clients see the sum in the statistics. Called after the instance is
        built and from time to time, on another thread, also while `execute` runs, but not after
        `close` has begun. Return known values without waiting. If it raises, the usage is not
        reported.
        """
        return ()

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:  # noqa: ARG003
        """Return the memory that `shared` holds for all instances (optional).

        `shared` is the result of `load`. Called together with `memory_usage`.
        """
        return ()

    def close(self) -> None:
        """Release the resources of the instance (optional)."""

    @classmethod
    def unload(cls, shared: object) -> None:
        """Release the result of `load` (optional); called after the last instance is closed."""


def check_returned(returned: object) -> None:
    """Raise Internal if a backend's `execute` returned a value.

    The `execute` of a Python model returns its responses; a value returned here would be lost.
    """
    if returned is not None:
        name = type(returned).__name__
        raise Internal(
            f"execute() of the backend returned a value of type '{name}', expected None: "
            "send responses with batch.respond()"
        )
