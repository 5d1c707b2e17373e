"""Where the weights of a network are, and how many bytes they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tritonpy import MemoryUsage

_TYPES = {"cpu": "CPU", "cuda": "GPU"}


def home_of(weights: Iterable[Any]) -> Any:
    """Return the device of the first tensor that is not on the host, None where all are."""
    return next((tensor.device for tensor in weights if tensor.device.type != "cpu"), None)


def memory_of(weights: Iterable[Any]) -> list[MemoryUsage]:
    """Return what the tensors take on each device; memory that several of them share counts once."""
    storages = {}
    for tensor in weights:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr(), tensor.device] = storage.nbytes()
    sizes: Counter[tuple[str, int]] = Counter()
    for (_, device), size in storages.items():
        if device.type in _TYPES:
            sizes[_TYPES[device.type], device.index or 0] += size
    return [MemoryUsage(kind, number, size) for (kind, number), size in sizes.items()]
