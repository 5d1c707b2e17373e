"""GPU metrics from the server's device."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy.execution import Device, DeviceMonitor, DeviceReading, DeviceUnavailable

log = logging.getLogger("tritonpy.metrics")

DRIVER = Path("/proc/driver/nvidia")


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """A family with one sample per GPU, for which `read` returns the value or None."""

    name: str
    kind: str
    help: str
    read: Callable[[DeviceReading], float | None]


FAMILIES = (
    GpuFamily(
        "nv_gpu_utilization", "gauge", "GPU utilization rate [0.0 - 1.0)",
        lambda reading: reading.utilization,
    ),
    GpuFamily(
        "nv_gpu_memory_total_bytes", "gauge", "GPU total memory, in bytes",
        lambda reading: reading.memory_total,
    ),
    GpuFamily(
        "nv_gpu_memory_used_bytes", "gauge", "GPU used memory, in bytes",
        lambda reading: reading.memory_used,
    ),
    GpuFamily(
        "nv_gpu_power_usage", "gauge", "GPU power usage in watts",
        lambda reading: reading.power,
    ),
    GpuFamily(
        "nv_gpu_power_limit", "gauge", "GPU power management limit in watts",
        lambda reading: reading.power_limit,
    ),
    GpuFamily(
        "nv_energy_consumption", "counter", (
            "GPU energy consumption in joules since the "
            "Triton Server started"
        ),
        lambda reading: reading.energy,
    ),
)  # fmt: skip


class GpuCollector(Collector):
    """Yields the GPU families, one sample per GPU. Unsupported values are omitted.

    Nothing runs between scrapes: a scrape at least `interval_ns` after the last reading takes a new
    one. Not thread-safe. `close` closes the monitor.
    """

    def __init__(self, monitor: DeviceMonitor, interval_ns: int, clock: Callable[[], int]) -> None:
        self._monitor = monitor
        self._interval_ns = interval_ns
        self._clock = clock
        self._read_ns = clock()
        self._first: dict[tuple[str, str], float] = {}
        self._readings = self._read()

    @property
    def uuids(self) -> list[str]:
        """UUIDs of the GPUs, in the order of their numbers in frameworks."""
        return list(self._monitor.uuids)

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
                metric.add_sample(
                    family.name, {"gpu_uuid": uuid}, value - self._first.get((family.name, uuid), 0)
                )
            if metric.samples:
                yield metric

    def close(self) -> None:
        """Close the monitor. No collection may follow."""
        self._monitor.close()

    def _read(self) -> dict[str, dict[str, float]]:
        found = self._monitor.read()
        readings = {
            family.name: {
                uuid: value
                for uuid, reading in found.items()
                if (value := family.read(reading)) is not None
            }
            for family in FAMILIES
        }
        for family in FAMILIES:
            if family.kind == "counter":
                for uuid, value in readings[family.name].items():
                    self._first.setdefault((family.name, uuid), value)
        return readings


def open_gpus(gpus: Device, interval_ns: int, clock: Callable[[], int]) -> GpuCollector | None:
    """Return the collector of the GPUs that frameworks see.

    Returns None without a visible GPU. It logs the reason if the machine has a driver, but the GPUs
    cannot be read.
    """
    try:
        monitor = gpus.monitor()
    except DeviceUnavailable as error:
        if DRIVER.exists():
            log.warning("no GPU metrics: %s", error)
        return None
    return None if monitor is None else GpuCollector(monitor, interval_ns, clock)
