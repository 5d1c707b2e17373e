"""How much memory a worker process has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tritonpy.api.engine import MemoryUsage
from tritonpy.devices import gpu_memory_of

PROC = Path("/proc")


def process_memory(pid: int, told: Iterable[MemoryUsage]) -> Iterator[MemoryUsage]:
    """Yield what a process holds: of the host's memory what is resident, of other memory what its backend `told`, or else what the driver tells of GPUs."""
    resident, told = resident_bytes(pid), list(told)
    if resident is not None:
        yield MemoryUsage("CPU", 0, resident)
    yield from (usage for usage in told if resident is None or usage.type != "CPU")
    if not any(usage.type == "GPU" for usage in told):
        yield from (MemoryUsage("GPU", gpu, size) for gpu, size in gpu_memory_of(pid).items())


def resident_bytes(pid: int, proc: Path = PROC) -> int | None:
    """Return what is resident of a process, and of what it shares with others its part; None where nobody tells.

    Workers that were forked from one process share most of their memory: only the parts add up to what there is. Where the
    system keeps the parts to itself, shared memory counts as a whole.
    """
    with suppress(OSError, StopIteration):
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    with suppress(OSError):
        return os.sysconf("SC_PAGE_SIZE") * int((proc / str(pid) / "statm").read_text().split()[1])
    return None
