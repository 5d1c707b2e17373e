"""How busy the machine or the container is: processors and memory."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


class MachineLoad:
    """Reads the kernel's counters; limits of a control group (version 2) count as the machine."""

    def __init__(self, cgroup: Path = _CGROUP, proc: Path = _PROC) -> None:
        self._cgroup = cgroup
        self._proc = proc
        self._before = (time.monotonic(), self._used_s(), *self._times())

    def cpu(self) -> float:
        """Return the share of processor time that was used since the last call, 0 to 1."""
        now = (time.monotonic(), self._used_s(), *self._times())
        elapsed, used, busy, total = (
            after - before for after, before in zip(now, self._before, strict=True)
        )
        self._before = now
        cores = self._cores()
        if cores and elapsed > 0:
            return min(used / (elapsed * cores), 1.0)
        return min(busy / total, 1.0) if total > 0 else 0.0

    def memory(self) -> float:
        """Return the share of memory that is used, 0 to 1."""
        with suppress(OSError, ValueError):
            limit = int((self._cgroup / "memory.max").read_text())
            return min(int((self._cgroup / "memory.current").read_text()) / limit, 1.0)
        with suppress(OSError, ValueError, KeyError):
            lines = (self._proc / "meminfo").read_text().splitlines()
            sizes = {
                name: int(rest.split()[0]) for name, rest in (each.split(":") for each in lines)
            }
            return 1 - sizes["MemAvailable"] / sizes["MemTotal"]
        return 0.0

    def _cores(self) -> float:
        """Return the limit of the control group in processors, 0 for none."""
        with suppress(OSError, ValueError):
            quota, period = (self._cgroup / "cpu.max").read_text().split()
            return int(quota) / int(period)
        return 0.0

    def _used_s(self) -> float:
        with suppress(OSError, ValueError, IndexError):
            return int((self._cgroup / "cpu.stat").read_text().split()[1]) / 1e6
        return 0.0

    def _times(self) -> tuple[float, float]:
        """Return busy and total time of all processors, in ticks."""
        with suppress(OSError, ValueError, IndexError):
            ticks = [
                int(each) for each in (self._proc / "stat").read_text().splitlines()[0].split()[1:9]
            ]
            return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
        return 0.0, 0.0
