"""A byte-limited store with least-recently-used eviction. Callers provide the lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from tritonpy import Tensor

# Overhead of an entry, measured on CPython 3.11 to 3.13: key, dictionary slot and tensor objects.
ENTRY_BYTES = 360
TENSOR_BYTES = 260


def entry_bytes(outputs: Sequence[Tensor]) -> int:
    """Return how many bytes of memory an entry with these outputs takes."""
    return ENTRY_BYTES + sum([TENSOR_BYTES + int(tensor.data.nbytes) for tensor in outputs])


def copy_outputs(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return copies with read-only data."""
    copies = []
    for tensor in outputs:
        data = np.array(tensor.data)
        data.flags.writeable = False
        copies.append(Tensor(tensor.name, tensor.datatype, tensor.shape, data))
    return copies


class LocalStore:
    """Entries of at most `size` bytes in total, overhead included. Larger entries are rejected."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.evictions = 0
        self._entries: OrderedDict[bytes, tuple[Sequence[Tensor], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> Sequence[Tensor] | None:
        """Return the tensors of an entry and mark it as most recently used, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: bytes, outputs: Sequence[Tensor], cost: int) -> None:
        """Store `outputs` of `cost` bytes, at most `size`. An existing entry stays unchanged."""
        if self.get(key) is not None:
            return
        while self.used + cost > self.size:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used -= freed
            self.evictions += 1
        self._entries[key] = outputs, cost
        self.used += cost

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.used = 0
