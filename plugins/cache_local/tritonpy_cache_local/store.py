"""Entries of known size, of which the least recently used go first. No lock, no clock: the cache brings those."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from tritonpy import Tensor

# What an entry costs beside its data, measured on CPython 3.11 to 3.13: the key, its place in the dictionary, and the tensors' objects.
ENTRY_BYTES = 360
TENSOR_BYTES = 260


def cost_of(outputs: Sequence[Tensor]) -> int:
    """Return how many bytes of memory an entry with these outputs takes."""
    return ENTRY_BYTES + sum([TENSOR_BYTES + int(tensor.data.nbytes) for tensor in outputs])


def copy_of(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors with data of their own that nobody can write to."""
    copies = []
    for tensor in outputs:
        data = np.array(tensor.data)
        data.flags.writeable = False
        copies.append(Tensor(tensor.name, tensor.datatype, tensor.shape, data))
    return copies


class Store:
    """At most `size` bytes of entries, overhead included. One that is larger than all of it is not taken."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.evictions = 0
        self._entries: OrderedDict[bytes, tuple[Sequence[Tensor], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> Sequence[Tensor] | None:
        """Return the tensors of an entry, which is the last to go now; None where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: bytes, outputs: Sequence[Tensor], cost: int) -> None:
        """Keep `outputs`, which take `cost` bytes, `size` at most; an entry of that key stays as it is."""
        if self.get(key) is not None:
            return
        while self.used + cost > self.size:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used -= freed
            self.evictions += 1
        self._entries[key] = outputs, cost
        self.used += cost

    def clear(self) -> None:
        """Let everything go."""
        self._entries.clear()
        self.used = 0
