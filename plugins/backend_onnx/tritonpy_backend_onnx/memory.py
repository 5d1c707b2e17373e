"""How much memory a session has. ONNX Runtime does not tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonpy import MemoryUsage, NobodyTells, gpu_memory
from tritonpy_backend_onnx.providers import Device

_one_by_one = threading.Lock()  # what a GPU gains meanwhile is the session's


class Measured:
    """`usage` is what a session has, once it is open."""

    usage: MemoryUsage


@contextmanager
def measured(device: Device, weight: int, used: Callable[[int], tuple[int, int]] = gpu_memory) -> Iterator[Measured]:
    """Measure what is opened in the block: on the host the `weight` of the model's files, on a GPU what is used of it more than before.

    Where nobody tells how much is used, or other models went meanwhile, it is the weight of the files there too.
    """
    found = Measured()
    if device.kind != "GPU":
        yield found
        found.usage = MemoryUsage("CPU", 0, weight)
        return
    with _one_by_one:
        before = _used(device.id, used)
        yield found
        gained = _used(device.id, used) - before
    found.usage = MemoryUsage("GPU", device.id, gained if gained > 0 else weight)


def _used(gpu: int, used: Callable[[int], tuple[int, int]]) -> int:
    try:
        return used(gpu)[0]
    except NobodyTells:
        return 0


def file_bytes(folder: Path) -> int:
    """Return the size of all files in a folder and below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
