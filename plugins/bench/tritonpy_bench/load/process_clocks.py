"""What the process that makes the load costs, and what the machine withholds from it."""

from __future__ import annotations

import time
from typing import NamedTuple


class Spent(NamedTuple):
    """Since the process began, in ns: processor time of all its threads; time that its main thread was ready to run and had no processor."""

    cpu: int
    starved: int


def spent() -> Spent:
    """Return both; `starved` stays 0 where the system does not tell (it is Linux that does)."""
    try:
        with open("/proc/self/schedstat", "rb", buffering=0) as file:
            waited = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        waited = 0
    return Spent(time.process_time_ns(), waited)
