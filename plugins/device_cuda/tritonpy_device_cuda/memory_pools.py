"""The memory pools of a server or of a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from tritonpy.config import DeviceSettings
from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy_device_cuda.block import CudaBlock, HostBlock
from tritonpy_device_cuda.cuda_calls import CudaCalls, open_cuda_calls
from tritonpy_device_cuda.model_memory import CudaModelMemory
from tritonpy_device_cuda.pool import Pool

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

_DEFAULTS = DeviceSettings()
_PINNED, _DEVICE = "nv_pinned_memory_pool", "nv_cuda_memory_pool"


class MemoryPools:
    """One pool of pinned memory and one for each of `gpus`, with the sizes of `settings`.

    Nothing is allocated, and CUDA is not started, before a model needs it.
    """

    def __init__(
        self,
        settings: DeviceSettings = _DEFAULTS,
        gpus: Sequence[int] = (),
        cuda: Callable[[], CudaCalls] = open_cuda_calls,
    ) -> None:
        calls = cache(cuda)
        self._settings = settings
        self._pinned: Pool[HostBlock] | None = None
        if gpus:
            self._pinned = Pool(
                "pinned system memory",
                settings.pinned_memory_pool_byte_size,
                HostBlock,
                lambda size: calls().pin(size),
                lambda address: calls().unpin(address),
            )
        self._devices = {gpu: _device_pool(gpu, settings.cuda_pool(gpu), calls) for gpu in gpus}

    def of_model(self, policy: ModelOptimizationPolicy) -> CudaModelMemory:
        """Return a model's view of the pools; `policy` defines which of its memory is pinned."""
        return CudaModelMemory(self._pinned, self._devices, policy)

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return Triton's metrics of the pinned memory pool and, with GPUs, of their pools."""
        return [*self._pinned_families(), *self._device_families()]

    def close(self) -> None:
        """Lend nothing more and free the memory that is not lent."""
        if self._pinned is not None:
            self._pinned.close()
        for pool in self._devices.values():
            pool.close()

    def _pinned_families(self) -> Iterator[FamilySnapshot]:
        total, pool = self._settings.pinned_memory_pool_byte_size, self._pinned
        used = 0 if pool is None else pool.used()
        yield _gauge(
            f"{_PINNED}_total_bytes", "Pinned memory pool total memory size, in bytes", {"": total}
        )
        yield _gauge(
            f"{_PINNED}_used_bytes", "Pinned memory pool used memory size, in bytes", {"": used}
        )
        if pool is not None:
            text = "Buffers that were not pinned because the pool was full"
            metric = MetricSnapshot({}, pool.misses)
            yield FamilySnapshot(f"{_PINNED}_fallback_count", text, MetricKind.COUNTER, [metric])

    def _device_families(self) -> Iterator[FamilySnapshot]:
        if self._devices:
            total = {str(gpu): pool.total for gpu, pool in self._devices.items()}
            used = {str(gpu): pool.used() for gpu, pool in self._devices.items()}
            yield _gauge(
                f"{_DEVICE}_total_bytes", "GPU memory in the server's pool (total), in bytes", total
            )
            yield _gauge(
                f"{_DEVICE}_used_bytes", "GPU memory in the server's pool (used), in bytes", used
            )


def _device_pool(gpu: int, byte_size: int, calls: Callable[[], CudaCalls]) -> Pool[CudaBlock]:
    return Pool(
        f"CUDA memory on GPU {gpu}",
        byte_size,
        CudaBlock,
        partial(_allocate, calls, gpu),
        lambda address: calls().free(address, gpu),
        gpu,
    )


def _allocate(calls: Callable[[], CudaCalls], gpu: int, byte_size: int) -> int:
    return calls().allocate(byte_size, gpu)


def _gauge(name: str, text: str, values: dict[str, int]) -> FamilySnapshot:
    metrics = [
        MetricSnapshot({"device": device} if device else {}, value)
        for device, value in values.items()
    ]
    return FamilySnapshot(name, text, MetricKind.GAUGE, metrics)
