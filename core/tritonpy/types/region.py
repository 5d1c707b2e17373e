"""Shared-memory regions that clients registered, and slices of them that contain tensors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy.typing as npt

if TYPE_CHECKING:
    from tritonpy.types.request import InferRequest, InferResponse
    from tritonpy.types.tensor import Tensor


class RegionKind(enum.StrEnum):
    """The kind of memory, host or GPU; the values are those of the protocol."""

    SYSTEM = "system"
    CUDA = "cuda"


class SystemRegion(msgspec.Struct, frozen=True):
    """`byte_size` bytes from `offset` of the shared-memory object `key`, registered as `name`."""

    name: str
    key: str
    offset: int
    byte_size: int


class CudaRegion(msgspec.Struct, frozen=True):
    """`byte_size` bytes of a GPU's memory, registered as `name`."""

    name: str
    device_id: int
    byte_size: int


class RegionSlice(msgspec.Struct, frozen=True, gc=False):
    """`byte_size` bytes from `offset` of the region `name`, used instead of a tensor's data.

    In an input it is where the engine reads the data (set `InferRequest.uses_regions`). In an
    output it means that the data is already there and not part of the response.
    """

    name: str
    offset: int
    byte_size: int


class RegionMemory(Protocol):
    """The bytes of a region; the caller has checked offsets and sizes.

    Any thread may use it. The memory is released with the last reference to the object and to the
    views that it returned.
    """

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset`, read-only. Raises TritonError if they do not exist."""

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to `offset`. Raises TritonError if the memory does not exist."""


class HeldRegions(Protocol):
    """The regions that a request uses, held from `Engine.infer` to its final response."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        """Write outputs to their regions; return the response without them, or an error.

        Never raises.
        """

    def outputs(self, response: InferResponse) -> Sequence[Tensor]:
        """Return the outputs of a finished response with the data that still exists. Never raises."""
