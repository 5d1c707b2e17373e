"""Memory for outputs whose size nobody knows before the engine has run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonpy import DeviceBlock, TritonError
from tritonpy_backend_trt.logger import log
from tritonpy_backend_trt.signature import Shape


class Growing:
    """A piece of a GPU's memory that is replaced by a larger one when it is too small; `give(size)` gives pieces."""

    def __init__(self, give: Callable[[int], DeviceBlock]) -> None:
        self._give = give
        self._block: DeviceBlock | None = None
        self.shape: Shape = ()  # of the last execution

    @property
    def address(self) -> int:
        """Where it lies, 0 before it was needed."""
        return 0 if self._block is None else self._block.address

    def room(self, size: int) -> int:
        """Return the address of at least `size` bytes, 0 where they cannot be had."""
        if self._block is None or self._block.byte_size < size:
            self._block = None  # before the larger one is asked for
            try:
                self._block = self._give(max(size, 1))
            except TritonError as error:
                log.error("%s", error.message)
                return 0
        return self._block.address


def output_allocator(trt: Any, growing: Growing) -> Any:
    """Return an `IOutputAllocator` over `growing`."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(self, _name: str, _memory: int, size: int, _alignment: int) -> int:
            return growing.room(size)

        def reallocate_output_async(self, _name: str, _memory: int, size: int, _alignment: int, _stream: int) -> int:
            return growing.room(size)

        def notify_shape(self, _name: str, shape: Any) -> None:
            growing.shape = tuple(shape)

    return Allocator()
