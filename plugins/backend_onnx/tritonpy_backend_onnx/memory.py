"""Memory measurement for sessions, because ONNX Runtime does not report their memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonpy import MemoryUsage
from tritonpy.execution import DeviceUnavailable
from tritonpy_backend_onnx.providers import ProviderDevice

# one measurement at a time: growth of a GPU's memory is attributed to the session being opened
_gpu_lock = threading.Lock()


class Measurement:
    """Result of a measurement; `usage` is set when the session is open."""

    usage: MemoryUsage


@contextmanager
def measure_memory(
    device: ProviderDevice, model_bytes: int, used: Callable[[int], tuple[int, int]]
) -> Iterator[Measurement]:
    """Measure the memory of the session that the `with` block opens.

    On the host this is `model_bytes`, the size of the model files. On a GPU it is the growth of
    used memory; `used(gpu)` returns used and total bytes. If that is unknown or not positive,
    because other models were unloaded meanwhile, it is `model_bytes`, too.
    """
    found = Measurement()
    if device.kind != "GPU":
        yield found
        found.usage = MemoryUsage("CPU", 0, model_bytes)
        return
    with _gpu_lock:
        before = _used_bytes(device.id, used)
        yield found
        gained = _used_bytes(device.id, used) - before
    found.usage = MemoryUsage("GPU", device.id, gained if gained > 0 else model_bytes)


def _used_bytes(gpu: int, used: Callable[[int], tuple[int, int]]) -> int:
    try:
        return used(gpu)[0]
    except DeviceUnavailable:
        return 0


def folder_bytes(folder: Path) -> int:
    """Return the total size of all files in a folder and its subfolders."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
