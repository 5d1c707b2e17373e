"""The processor cores that this process may use: its affinity, and the quota of its container."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""The limits of the container, or of the control group, that this process runs in."""


def processor_quota(cgroup: Path = CGROUP) -> float | None:
    """Return the cores that the container may use on average, None without a quota.

    Reads `cpu.max` of control groups 2, or the files of version 1.
    """
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    if not quota:
        quota = _read(cgroup / "cpu" / "cpu.cfs_quota_us")
        period = _read(cgroup / "cpu" / "cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit() and int(period):
        return int(quota) / int(period)
    return None


def available_processors(cgroup: Path = CGROUP) -> int:
    """Return the number of cores to make threads for, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = processor_quota(cgroup)
    return max(1, min(affinity or 1, round(quota) if quota is not None else affinity or 1))


def default_threads(cgroup: Path = CGROUP) -> int:
    """Return the number of threads for a framework, 0 if its own default fits.

    Frameworks count the cores of the machine. In a container with a quota, as many threads would
    take turns and be stopped together.
    """
    return available_processors(cgroup) if processor_quota(cgroup) is not None else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
