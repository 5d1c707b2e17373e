"""Memory that clients registered for tensors, and where in it a tensor lies."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from tritonpy.types.request import InferRequest
    from tritonpy.types.response import InferResponse
    from tritonpy.types.tensor import Tensor


class RegionKind(enum.StrEnum):
    """Whose memory it is: the host's, or a GPU's. The values are those of the protocol."""

    SYSTEM = "system"
    CUDA = "cuda"


class SystemRegion(msgspec.Struct, frozen=True):
    """`byte_size` bytes from `offset` of the POSIX shared-memory object `key`, registered as `name`."""

    name: str
    key: str
    offset: int
    byte_size: int


class CudaRegion(msgspec.Struct, frozen=True):
    """`byte_size` bytes of the memory of a GPU, registered as `name`."""

    name: str
    device_id: int
    byte_size: int


class RegionSlice(msgspec.Struct, frozen=True, gc=False):
    """`byte_size` bytes from `offset` of the region `name`, in the place of a tensor's data.

    As an input's data it says where the engine finds them (set `InferRequest.uses_regions`); as an output's data, that they are there now
    and do not travel.
    """

    name: str
    offset: int
    byte_size: int


class HeldRegions(Protocol):
    """The regions that a request uses, held from its hand-over to its final answer."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        """Write the outputs that belong into regions; return the response without them, or the error. Never raises."""

    def outputs(self, response: InferResponse) -> Sequence[Tensor]:
        """Return the outputs of a finished response with their data, as far as that is still there. Never raises."""
