"""CPU time of the client process, and its time without a CPU."""

from __future__ import annotations

import time
from typing import NamedTuple


class ProcessClocks(NamedTuple):
    """Times since the process started, in ns.

    `cpu` is the CPU time of all threads. `starved` is the time that the main thread was ready to
    run but had no CPU.
    """

    cpu: int
    starved: int


def read_process_clocks() -> ProcessClocks:
    """Return both times; `starved` is 0 on systems other than Linux."""
    try:
        with open("/proc/self/schedstat", "rb", buffering=0) as file:
            waited = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        waited = 0
    return ProcessClocks(time.process_time_ns(), waited)
