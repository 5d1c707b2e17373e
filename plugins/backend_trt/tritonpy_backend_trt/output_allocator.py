"""Memory for outputs whose size is unknown until the engine has run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonpy import TritonError
from tritonpy.execution import DeviceBlock
from tritonpy_backend_trt.logger import log
from tritonpy_backend_trt.signature import Shape


class GrowableBuffer:
    """GPU memory that is replaced by a larger block when it is too small.

    `give(size)` allocates a block.
    """

    def __init__(self, give: Callable[[int], DeviceBlock]) -> None:
        self._allocate = give
        self._block: DeviceBlock | None = None
        self.shape: Shape = ()  # of the last execution

    @property
    def address(self) -> int:
        """Address of the memory; 0 before the first reservation."""
        return 0 if self._block is None else self._block.address

    def reserve(self, size: int) -> int:
        """Return the address of at least `size` bytes, or 0 if the allocation fails."""
        if self._block is None or self._block.byte_size < size:
            self._block = None  # freed before the larger block is allocated
            try:
                self._block = self._allocate(max(size, 1))
            except TritonError as error:
                log.error("%s", error.message)
                return 0
        return self._block.address


def output_allocator(trt: Any, growable: GrowableBuffer) -> Any:
    """Return an `IOutputAllocator` that uses `growable`."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(self, _name: str, _memory: int, size: int, _alignment: int) -> int:
            return growable.reserve(size)

        def reallocate_output_async(
            self, _name: str, _memory: int, size: int, _alignment: int, _stream: int
        ) -> int:
            return growable.reserve(size)

        def notify_shape(self, _name: str, shape: Any) -> None:
            growable.shape = tuple(shape)

    return Allocator()
