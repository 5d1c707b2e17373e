"""Pieces of memory that frameworks and numpy can look at."""

from __future__ import annotations

from typing import Any


class Block:
    """`byte_size` bytes at `address`, for as long as there is a reference to this object, or to a view that was made of it."""

    def __init__(self, address: int, byte_size: int, device: int, region: object) -> None:
        self.address = address
        self.byte_size = byte_size
        self.device = device
        self._region = region  # it lives as long as its parts

    def _interface(self) -> dict[str, Any]:
        return {"shape": (self.byte_size,), "typestr": "|u1", "data": (self.address, False), "version": 3}


class HostBlock(Block):
    """Pinned memory of the host: `np.asarray(block)` is a view on it."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What numpy needs."""
        return self._interface()


class DeviceBlock(Block):
    """Memory of the GPU `device`; `torch.as_tensor(block)` and `cupy.asarray(block)` are views on it."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """What frameworks on GPUs need: no work is pending on the memory."""
        return self._interface()
