"""The tensor type of all parts of the server, and shared-memory regions that contain tensors."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from math import prod
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from tritonpy_types.datatypes import (
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    datatype_of,
    decode_strings,
    encode_strings,
    string_offsets,
)

CPU = (1, 0)  # DLPack's (type, id) of host memory


def shape_text(dims: Iterable[int]) -> str:
    """Return dimensions in Triton's format: `[-1,3]`."""
    return f"[{','.join(map(str, dims))}]"


class Tensor(msgspec.Struct, eq=False, gc=False):
    """A named array, as the protocol defines it.

    On the CPU, `data` is a C-contiguous numpy array with `shape` and the dtype of `datatype`,
    usually a view of the received bytes. BYTES is a flat uint8 array in wire form. A buffer whose
    size does not match `shape` stays a flat uint8 array until validation rejects it. On another
    device, `data` is any DLPack object, complete on the producer's stream. Buffers are immutable
    once the tensor is passed on.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Any
    device: tuple[int, int] = CPU
    _offsets: list[int] | None = None

    @classmethod
    def from_buffer(cls, name: str, datatype: str, shape: tuple[int, ...], buffer: Any) -> Tensor:
        """Return a view of `buffer` (bytes or memoryview) without a copy.

        `datatype` must be a known name.
        """
        itemsize = ITEMSIZES[datatype]
        if itemsize and len(buffer) == itemsize * prod(shape):
            try:
                return cls(
                    name, datatype, shape, np.frombuffer(buffer, DTYPES[datatype]).reshape(shape)
                )
            # negative dimensions whose product fits, or too many dimensions for an array
            except ValueError:
                pass
        return cls(name, datatype, shape, np.frombuffer(buffer, np.uint8))

    @classmethod
    def from_numpy(cls, name: str, array: npt.NDArray[Any]) -> Tensor:
        """Return a tensor of `array`.

        Object and text arrays become BYTES, strided arrays are copied. Raises KeyError for a dtype
        that the protocol does not support.
        """
        datatype = datatype_of(array.dtype)
        if datatype == "BYTES":
            return cls(name, datatype, array.shape, encode_strings(array.ravel().tolist()))
        return cls(
            name,
            datatype,
            array.shape,
            np.ascontiguousarray(array, DTYPES[datatype]).reshape(array.shape),
        )

    def view(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return the same data under another name and shape, without a copy.

        Raises ValueError for a shape of another size.
        """
        data = self.data
        # BYTES is already flat. On another device only the tensor's shape counts.
        if shape != self.shape and self.datatype != "BYTES" and isinstance(data, np.ndarray):
            data = data.reshape(shape)
        return Tensor(name, self.datatype, shape, data, self.device, self._offsets)

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes, on any device."""
        if isinstance(self.data, np.ndarray):
            return int(self.data.nbytes)
        return prod(self.shape) * DATATYPES[self.datatype].itemsize

    def offsets(self) -> list[int]:
        """The start of each element of a BYTES tensor in `data`, and the end: n + 1 offsets.

        The first call scans the whole buffer: keep it off an event loop if the buffer is large.
        Raises InvalidArgument if the buffer is not in wire form.
        """
        if self._offsets is None:
            self._offsets = string_offsets(self.data)
        return self._offsets

    def strings(self) -> list[bytes]:
        """The elements of a BYTES tensor, row-major."""
        return decode_strings(self.data, self.offsets())

    def numpy(self) -> npt.NDArray[Any]:
        """The array on the host, in `shape`; BYTES becomes an object array of `bytes`."""
        if self.datatype == "BYTES":
            flat = np.empty(prod(self.shape), np.object_)
            flat[:] = self.strings()
            return flat.reshape(self.shape)
        if isinstance(self.data, np.ndarray):
            return self.data
        return np.from_dlpack(self.data)


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
