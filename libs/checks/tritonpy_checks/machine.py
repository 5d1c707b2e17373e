"""The machine of this process: cores, GPUs and memory, and texts for sizes."""

from __future__ import annotations

import os
from pathlib import Path

from tritonpy_checks.lint import Machine
from tritonpy_config.processors import CGROUP, available_processors

_NVIDIA = Path("/proc/driver/nvidia/gpus")


def this_machine() -> Machine:
    """Return the cores and memory that this process may use, and the GPUs that it can see."""
    return Machine(available_processors(CGROUP), _gpus(), _memory())


def _memory() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = read_kernel_file(CGROUP / "memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _gpus() -> tuple[int, ...]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0
    if visible is not None:
        count = min(
            count, len([each for each in visible.split(",") if each.strip() not in {"", "-1"}])
        )
    return tuple(range(count))


def read_kernel_file(path: Path) -> str:
    """Return the stripped content of a file of the kernel, or "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def size_text(size: float) -> str:
    """Return a number of bytes for a reader: 1.5 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
