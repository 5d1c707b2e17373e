"""Blocks of memory that frameworks and numpy can access."""

from __future__ import annotations

from typing import Any


class MemoryBlock:
    """`byte_size` bytes at `address`, valid while this object or a view of it is referenced."""

    def __init__(self, address: int, byte_size: int, device: int, region: object) -> None:
        self.address = address
        self.byte_size = byte_size
        self.device = device
        self._region = region  # lives as long as its blocks

    def _interface(self) -> dict[str, Any]:
        return {
            "shape": (self.byte_size,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }


class HostBlock(MemoryBlock):
    """Pinned host memory: `np.asarray(block)` is a view of it."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The array interface for numpy."""
        return self._interface()


class CudaBlock(MemoryBlock):
    """Memory of the GPU `device`.

    `torch.as_tensor(block)` and `cupy.asarray(block)` are views of it.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array interface for GPU frameworks: no work is pending on the memory."""
        return self._interface()
