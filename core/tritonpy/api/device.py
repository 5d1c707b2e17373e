"""The interface of devices: GPUs, their memory, and memory on them for models and clients."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from tritonpy.installation import install_command
from tritonpy_batching.gather import Allocate
from tritonpy_config.server.sections import DeviceSettings
from tritonpy_metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy_types import CudaRegion, RegionMemory
from tritonpy_types.errors import InvalidArgument, Unavailable

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

log = logging.getLogger("tritonpy.devices")

CUDA_PACKAGE = "tritonpy-device-cuda"


class DeviceUnavailable(Exception):
    """The state of a GPU cannot be read; the text is the reason."""


class DeviceBlock(Protocol):
    """Memory of a GPU, valid while the block or a view of it is referenced.

    `torch.as_tensor(block)` and `cupy.asarray(block)` are views of it.
    """

    address: int
    byte_size: int
    device: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array interface for GPU frameworks: no work is pending on the memory."""


class ModelMemory:
    """Memory for the inputs and outputs of a model; any thread may call any method.

    This class serves host memory only: nothing is pinned, and no GPU has memory. A device with
    memory pools derives from it. A block returns to its pool when it is garbage-collected.
    """

    @property
    def pinned_input(self) -> Allocate | None:
        """The `out` argument of `gather` for pinned inputs, which a GPU copies fastest.

        None if nothing can be pinned or the model disables it. `pinned_input(name, datatype,
        shape)` returns an array in pinned memory, or in ordinary memory while the pool is full; not
        for BYTES.
        """
        return None

    @property
    def pinned_output(self) -> Allocate | None:
        """The same as `pinned_input`, for outputs that a GPU writes."""
        return None

    def on_device(self, gpu: int, byte_size: int) -> DeviceBlock:
        """Return memory of a GPU from its pool, or allocated separately if the pool is full.

        Raises Unavailable.
        """
        raise Unavailable(
            f"Failed to allocate CUDA memory with byte size {byte_size} on GPU {gpu}: no such GPU"
        )

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Yield the memory that the model holds: kind of memory, device, bytes."""
        yield from ()

    @property
    def has_pools(self) -> bool:
        """Whether GPUs have memory pools."""
        return False


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """The state of one GPU; None for what it does not report.

    Utilization is from 0 to 1, memory is in bytes, power is in watts, energy is in joules and only
    grows.
    """

    utilization: float | None = None
    memory_total: float | None = None
    memory_used: float | None = None
    power: float | None = None
    power_limit: float | None = None
    energy: float | None = None


class DeviceMonitor(ABC):
    """Reads the state of the visible GPUs, as a context manager that calls `close` at the end.

    One thread at a time uses it. `uuids` are the GPUs in the order of their numbers in frameworks.
    """

    uuids: Sequence[str]

    @abstractmethod
    def read(self) -> Mapping[str, DeviceReading]:
        """Return the current state of each GPU by its UUID. May take milliseconds."""

    @abstractmethod
    def close(self) -> None:
        """Release the monitor. No method may be called afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


class Device(ABC):
    """The GPUs of one kind in this process, with their memory. The kind "cuda" serves `KIND_GPU`.

    A plugin registers its class by the kind of device:

        class SimulatedDevice(Device):
            def visible(self):
                return [0, 1]

            def memory(self, gpu):
                return 0, 1 << 30

            def model_memory(self, policy):
                return ModelMemory()

            def open_region(self, region, handle):
                raise InvalidArgument("failed to register shared memory region: invalid args")

        @hookimpl
        def tritonpy_devices():
            return {"cuda": SimulatedDevice}

    The server creates one object at startup, before it loads models. A worker process creates its
    own object of the same class, with the settings and GPUs of the server. So the class must be at
    the top of a module that can be imported by name. Models find the object in `ModelContext.gpus`,
    frontends in `FrontendContext.gpus`.

    The constructor queries the GPUs, but allocates no memory on them. Memory is allocated when a
    model or client first needs it. Any thread may call any method.
    """

    def __init__(self, settings: DeviceSettings, ids: Sequence[int] | None = None) -> None:
        """Find the GPUs that the server uses.

        `settings` is the section `devices` of server.yaml. `ids` are the GPUs of the server in a
        worker process; None queries them.
        """
        self.settings = settings
        self.ids = list(self.supported() if ids is None else ids)

    @abstractmethod
    def visible(self) -> Sequence[int]:
        """Return the ids of the GPUs that frameworks in this process see, counted from 0."""

    def supported(self) -> Sequence[int]:
        """Return the visible GPUs that the settings allow; all by default (optional).

        A GPU of unknown compute capability is allowed.
        """
        return self.visible()

    @abstractmethod
    def memory(self, gpu: int) -> tuple[int, int]:
        """Return used and total bytes of a GPU, for all processes. Raises DeviceUnavailable."""

    def process_memory(self, pid: int) -> Mapping[int, int]:
        """Return how many bytes a process uses on each GPU, as far as known (optional).

        GPUs that it does not use are omitted.
        """
        return {}

    def monitor(self) -> DeviceMonitor | None:
        """Return a monitor for metrics, or None if no GPU is visible (optional).

        The caller closes it. Raises DeviceUnavailable if the GPUs cannot be read.
        """
        return None

    @abstractmethod
    def model_memory(self, policy: ModelOptimizationPolicy) -> ModelMemory:
        """Return a model's view of the memory pools; `policy` defines what is pinned."""

    @abstractmethod
    def open_region(self, region: CudaRegion, handle: bytes) -> RegionMemory:
        """Open memory that a client allocated on a GPU, by its IPC handle.

        The memory is released with the last reference to the result. Raises InvalidArgument if it
        cannot be opened. Log the reason, because clients do not see it, as in Triton.
        """

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return Triton's metrics of the memory pools (default: an unused pinned pool)."""
        total = self.settings.pinned_memory_pool_byte_size
        return [
            _gauge(
                "nv_pinned_memory_pool_total_bytes",
                "Pinned memory pool total memory size, in bytes",
                total,
            ),
            _gauge(
                "nv_pinned_memory_pool_used_bytes",
                "Pinned memory pool used memory size, in bytes",
                0,
            ),
        ]

    def close(self) -> None:
        """Lend no more memory and free what is not lent (optional)."""


class NoDevice(Device):
    """The device of a server without a plugin for GPUs: no GPU, host memory only."""

    def __init__(
        self, settings: DeviceSettings | None = None, ids: Sequence[int] | None = None
    ) -> None:
        super().__init__(settings or DeviceSettings(), ids)

    def visible(self) -> Sequence[int]:
        """Return no GPU."""
        return ()

    def memory(self, gpu: int) -> tuple[int, int]:
        """Raise DeviceUnavailable."""
        raise DeviceUnavailable(missing_plugin())

    def monitor(self) -> DeviceMonitor | None:
        """Raise DeviceUnavailable."""
        raise DeviceUnavailable(missing_plugin())

    def model_memory(self, policy: ModelOptimizationPolicy) -> ModelMemory:
        """Return host memory."""
        return ModelMemory()

    def open_region(self, region: CudaRegion, handle: bytes) -> RegionMemory:
        """Raise InvalidArgument as on a machine without a GPU, and log the package to install."""
        log.warning("failed to open CUDA IPC handle: %s", missing_plugin())
        raise InvalidArgument("failed to register shared memory region: invalid args")


def missing_plugin() -> str:
    """Return the text that no plugin serves GPUs, with the command that installs one."""
    return f"no plugin provides device 'cuda': {install_command(CUDA_PACKAGE)}"


def _gauge(name: str, text: str, value: int) -> FamilySnapshot:
    return FamilySnapshot(name, text, MetricKind.GAUGE, [MetricSnapshot({}, value)])
