"""GPU metrics from NVIDIA's management library (NVML)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Nvml

log = logging.getLogger("tritonpy.metrics")


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """A family with one sample per GPU. `read` gets the nvidia-ml-py module and a device."""

    name: str
    kind: str
    help: str
    read: Callable[[Any, Any], float]


FAMILIES = (
    GpuFamily(
        "nv_gpu_utilization", "gauge", "GPU utilization rate [0.0 - 1.0)",
        lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    ),
    GpuFamily(
        "nv_gpu_memory_total_bytes", "gauge", "GPU total memory, in bytes",
        lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).total,
    ),
    GpuFamily(
        "nv_gpu_memory_used_bytes", "gauge", "GPU used memory, in bytes",
        lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).used,
    ),
    GpuFamily(
        "nv_gpu_power_usage", "gauge", "GPU power usage in watts",
        lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    ),
    GpuFamily(
        "nv_gpu_power_limit", "gauge", "GPU power management limit in watts",
        lambda nvml, gpu: nvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000,
    ),
    GpuFamily(
        "nv_energy_consumption", "counter", "GPU energy consumption in joules since the Triton Server started",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
    ),
)  # fmt: skip


class GpuCollector(Collector):
    """Yields the GPU families, one sample per GPU. Unsupported values are omitted.

    Nothing runs between scrapes: a scrape at least `interval_ns` after the last reading takes a new
    one. Not thread-safe. `close` shuts NVML down.
    """

    def __init__(self, nvml: Nvml, interval_ns: int, clock: Callable[[], int]) -> None:
        self._nvml = nvml
        self._interval_ns = interval_ns
        self._clock = clock
        self._read_ns = clock()
        self._first: dict[tuple[str, str], float] = {}
        self._readings = self._read()

    @property
    def uuids(self) -> list[str]:
        """UUIDs of the GPUs, in the order of their numbers in frameworks."""
        return list(self._nvml.handles)

    def collect(self) -> Iterator[Metric]:
        """Yield the families that some GPU supports.

        Counters start at 0 with their first reading.
        """
        now_ns = self._clock()
        if now_ns - self._read_ns >= self._interval_ns:
            self._readings, self._read_ns = self._read(), now_ns
        for family in FAMILIES:
            metric = Metric(family.name, family.help, family.kind)
            for uuid, value in self._readings[family.name].items():
                metric.add_sample(family.name, {"gpu_uuid": uuid}, value - self._first.get((family.name, uuid), 0))
            if metric.samples:
                yield metric

    def close(self) -> None:
        """Shut NVML down. No collection may follow."""
        self._nvml.close()

    def _read(self) -> dict[str, dict[str, float]]:
        readings = {family.name: dict(self._values(family)) for family in FAMILIES}
        for family in FAMILIES:
            if family.kind == "counter":
                for uuid, value in readings[family.name].items():
                    self._first.setdefault((family.name, uuid), value)
        return readings

    def _values(self, family: GpuFamily) -> Iterator[tuple[str, float]]:
        library = self._nvml.library
        for uuid, gpu in self._nvml.handles.items():
            try:
                yield uuid, family.read(library, gpu)
            except library.NVMLError as error:
                log.debug("GPU %s does not report %s: %s", uuid, family.name, error)
