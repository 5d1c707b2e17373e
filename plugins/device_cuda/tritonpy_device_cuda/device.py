"""The device `cuda`: NVIDIA GPUs as the server and its worker processes use them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy import ModelMemory
from tritonpy.config import DeviceSettings
from tritonpy.execution import Device, DeviceMonitor, DeviceReading, DeviceUnavailable
from tritonpy.frontend import CudaRegion
from tritonpy.metrics import FamilySnapshot
from tritonpy.plugins import install_command
from tritonpy_device_cuda.gpus import gpu_memory, gpu_memory_of, supported_gpus, visible_gpus
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_device_cuda.nvml import Nvml, NvmlError, open_nvml
from tritonpy_device_cuda.region_memory import CudaMemory, open_cuda

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

log = logging.getLogger("tritonpy.devices")


class CudaDevice(Device):
    """The NVIDIA GPUs of this process, with one pool of pinned memory and one for each GPU."""

    def __init__(self, settings: DeviceSettings, ids: Sequence[int] | None = None) -> None:
        super().__init__(settings, ids)
        self._pools = MemoryPools(settings, self.ids)

    def visible(self) -> Sequence[int]:
        """Return the GPUs in the driver's list that CUDA_VISIBLE_DEVICES selects."""
        return visible_gpus()

    def supported(self) -> Sequence[int]:
        """Return the visible GPUs with the minimum compute capability, or with an unknown one."""
        return supported_gpus(self.settings.min_supported_compute_capability)

    def memory(self, gpu: int) -> tuple[int, int]:
        """Return used and total bytes of a GPU, as NVML reports them."""
        return gpu_memory(gpu)

    def process_memory(self, pid: int) -> Mapping[int, int]:
        """Return how many bytes a process uses on each GPU, as far as NVML reports it."""
        return gpu_memory_of(pid)

    def monitor(self) -> DeviceMonitor | None:
        """Return a monitor that keeps NVML open until it is closed."""
        try:
            nvml = open_nvml(os.environ)
        except ImportError as error:
            command = install_command("tritonpy-device-cuda[gpu]")
            raise DeviceUnavailable(f"install nvidia-ml-py with: {command}") from error
        except NvmlError as error:
            raise DeviceUnavailable(str(error)) from error
        return None if nvml is None else NvmlMonitor(nvml)

    def model_memory(self, policy: ModelOptimizationPolicy) -> ModelMemory:
        """Return a model's view of the pools."""
        return self._pools.of_model(policy)

    def open_region(self, region: CudaRegion, handle: bytes) -> CudaMemory:
        """Open memory by its CUDA IPC handle."""
        return open_cuda(region, handle)

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return Triton's metrics of the pinned memory pool and, with GPUs, of their pools."""
        return self._pools.metrics()

    def close(self) -> None:
        """Lend no more memory and free what is not lent."""
        self._pools.close()


# How NVML reads each field of a `DeviceReading`; it gets the nvidia-ml-py module and a GPU's
# handle.
_FIELDS: Mapping[str, Callable[[Any, Any], float]] = {
    "utilization": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "memory_total": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).total,
    "memory_used": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).used,
    "power": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "power_limit": lambda nvml, gpu: nvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000,
    "energy": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
}


class NvmlMonitor(DeviceMonitor):
    """Reads the GPUs of the open library; `close` shuts it down."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self.uuids = list(nvml.handles)

    def read(self) -> Mapping[str, DeviceReading]:
        """Return the current state of each GPU by its UUID."""
        return {uuid: self._reading(uuid, gpu) for uuid, gpu in self._nvml.handles.items()}

    def close(self) -> None:
        """Shut NVML down."""
        self._nvml.close()

    def _reading(self, uuid: str, gpu: Any) -> DeviceReading:
        library = self._nvml.library
        found: dict[str, float] = {}
        for field, read in _FIELDS.items():
            try:
                found[field] = read(library, gpu)
            except library.NVMLError as error:
                log.debug("GPU %s does not report %s: %s", uuid, field, error)
        return DeviceReading(**found)
