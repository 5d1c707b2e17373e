"""CPU and memory of the machine, from /proc on Linux.

Formats: proc_stat(5), first line `cpu user nice system idle iowait irq softirq steal …` in clock
ticks since boot; proc_meminfo(5), lines `Name: value kB`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.registry import Collector

PROC = Path("/proc")


class CpuTicks(NamedTuple):
    """Clock ticks since boot, summed over all processors."""

    busy: int
    idle: int


def parse_ticks(stat: str) -> CpuTicks:
    """Return the ticks in the text of /proc/stat.

    Waiting for a disk counts as idle, as in Triton.
    """
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.split(None, 9)[1:9])
    return CpuTicks(user + nice + system + irq + softirq + steal, idle + iowait)


def utilization(now: CpuTicks, before: CpuTicks) -> float:
    """Return the busy share of the time between two readings, from 0 to 1."""
    busy, idle = max(now.busy - before.busy, 0), max(now.idle - before.idle, 0)
    return busy / (busy + idle) if busy + idle else 0.0


def parse_memory(meminfo: str) -> tuple[int, int]:
    """Return total and used bytes from the text of /proc/meminfo.

    Reclaimable memory is not used.
    """
    sizes = {}
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name in {"MemTotal", "MemAvailable"}:
            sizes[name] = int(value.split()[0]) * 1024
    return sizes["MemTotal"], sizes["MemTotal"] - sizes["MemAvailable"]


class CpuCollector(Collector):
    """Yields the CPU families. The utilization covers the last `interval_ns` or longer.

    Nothing runs between scrapes: a scrape at least `interval_ns` after the last reading takes a new
    one. Not thread-safe.
    """

    def __init__(self, interval_ns: int, clock: Callable[[], int], proc: Path = PROC) -> None:
        self._interval_ns = interval_ns
        self._clock = clock
        self._proc = proc
        self._read_ns = clock()
        self._ticks = self._read_ticks()
        self._utilization = utilization(self._ticks, CpuTicks(0, 0))

    def collect(self) -> Iterator[Metric]:
        """Yield the utilization (0 to 1) and total and used bytes."""
        total, used = parse_memory((self._proc / "meminfo").read_text())
        yield _gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", self._current())
        yield _gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", total)
        yield _gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", used)

    def _current(self) -> float:
        now_ns = self._clock()
        if now_ns - self._read_ns >= self._interval_ns:
            ticks = self._read_ticks()
            self._utilization = utilization(ticks, self._ticks)
            self._ticks, self._read_ns = ticks, now_ns
        return self._utilization

    def _read_ticks(self) -> CpuTicks:
        return parse_ticks((self._proc / "stat").read_text())


def _gauge(name: str, text: str, value: float) -> Metric:
    metric = Metric(name, text, "gauge")
    metric.add_sample(name, {}, value)
    return metric
