"""The machine that lint and explain assume: processor cores, GPUs and memory."""

from __future__ import annotations

import os
from pathlib import Path

from tritonpy_checks import Machine

_NVIDIA = Path("/proc/driver/nvidia/gpus")
_CGROUP = Path("/sys/fs/cgroup")


def this_machine() -> Machine:
    """Return the cores and memory that this process may use, and the GPUs that it can see."""
    return Machine(_cores(), _gpus(), _memory())


def _cores() -> int:
    available = len(os.sched_getaffinity(0))
    quota, _, period = _read(_CGROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        available = min(available, max(1, round(int(quota) / int(period))))
    return available


def _memory() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(_CGROUP / "memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _gpus() -> tuple[int, ...]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0
    if visible is not None:
        count = min(
            count, len([each for each in visible.split(",") if each.strip() not in {"", "-1"}])
        )
    return tuple(range(count))


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""
