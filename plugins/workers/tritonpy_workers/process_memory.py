"""Memory usage of worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tritonpy import MemoryUsage
from tritonpy.execution import Device

PROC = Path("/proc")


def process_memory(
    pid: int, reported: Iterable[MemoryUsage], gpus: Device
) -> Iterator[MemoryUsage]:
    """Yield the memory usage of a process.

    Host memory is the resident memory. Other memory is as `reported` by the backend, or else as the
    driver of `gpus` reports it.
    """
    resident, reported = resident_bytes(pid), list(reported)
    if resident is not None:
        yield MemoryUsage("CPU", 0, resident)
    yield from (usage for usage in reported if resident is None or usage.type != "CPU")
    if not any(usage.type == "GPU" for usage in reported):
        yield from (MemoryUsage("GPU", gpu, size) for gpu, size in gpus.process_memory(pid).items())


def resident_bytes(pid: int, proc: Path = PROC) -> int | None:
    """Return the resident bytes of a process, with its part of shared pages, or None if unknown.

    Workers that were forked from one process share most of their memory, so only the parts add up
    to the total. If the system does not provide the parts, shared pages count in full.
    """
    with suppress(OSError, StopIteration):
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    with suppress(OSError):
        return os.sysconf("SC_PAGE_SIZE") * int((proc / str(pid) / "statm").read_text().split()[1])
    return None
