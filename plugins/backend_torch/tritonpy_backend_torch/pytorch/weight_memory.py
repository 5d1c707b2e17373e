"""Device and memory usage of a network's weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tritonpy import MemoryUsage

_TYPES = {"cpu": "CPU", "cuda": "GPU"}


def find_weight_device(weights: Iterable[Any]) -> Any:
    """Return the device of the first tensor that is not on the host, or None."""
    return next((tensor.device for tensor in weights if tensor.device.type != "cpu"), None)


def weight_memory(weights: Iterable[Any]) -> list[MemoryUsage]:
    """Return the memory of the tensors on each device; memory shared by several counts once."""
    storages = {}
    for tensor in weights:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr(), tensor.device] = storage.nbytes()
    sizes: Counter[tuple[str, int]] = Counter()
    for (_, device), size in storages.items():
        if device.type in _TYPES:
            sizes[_TYPES[device.type], device.index or 0] += size
    return [MemoryUsage(kind, number, size) for (kind, number), size in sizes.items()]
