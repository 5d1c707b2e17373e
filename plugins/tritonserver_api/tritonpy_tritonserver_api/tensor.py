"""Tensors of requests and responses, and the memory that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import tritonpy
from tritonpy_tritonserver_api import dlpack
from tritonpy_tritonserver_api.errors import InvalidArgumentError, UnsupportedError
from tritonpy_tritonserver_api.names import DataType, DLDeviceType, MemoryType

DeviceOrMemoryType = tuple[MemoryType, int] | MemoryType | tuple[DLDeviceType, int] | str
_MEMORY_TYPES = {DLDeviceType.kDLCPU: MemoryType.CPU, DLDeviceType.kDLCUDA: MemoryType.GPU}
_DEVICES = {
    MemoryType.CPU: DLDeviceType.kDLCPU,
    MemoryType.CPU_PINNED: DLDeviceType.kDLCPU,
    MemoryType.GPU: DLDeviceType.kDLCUDA,
}
_ON_HOST = (MemoryType.CPU, MemoryType.CPU_PINNED)


@dataclass
class MemoryBuffer:
    """A buffer: `size` bytes at `data_ptr`, which live as long as `owner`."""

    data_ptr: int
    memory_type: MemoryType
    memory_type_id: int
    size: int
    owner: Any

    @staticmethod
    def from_dlpack(owner: Any) -> MemoryBuffer:
        """Return the memory of an object with `__dlpack__`, without a copy.

        Raises `InvalidArgumentError` if it has none, or if the memory is not contiguous.
        """
        if not hasattr(owner, "__dlpack__"):
            raise InvalidArgumentError("Object does not support DLpack protocol")
        return _buffer_of(owner, dlpack.read(owner))


@dataclass
class Tensor:
    """A tensor: an array with a data type and a shape in a buffer.

    BYTES elements are in the form of the wire: each after its length in 4 bytes. Arrays of other
    libraries share the memory: `numpy.from_dlpack(tensor)`.
    """

    data_type: DataType
    shape: Sequence[int]
    memory_buffer: MemoryBuffer

    @property
    def data_ptr(self) -> int:
        """The address of the data."""
        return self.memory_buffer.data_ptr

    @property
    def memory_type(self) -> MemoryType:
        """The kind of memory that has the data."""
        return self.memory_buffer.memory_type

    @property
    def memory_type_id(self) -> int:
        """The number of the device with the memory."""
        return self.memory_buffer.memory_type_id

    @property
    def size(self) -> int:
        """The size of the data in bytes."""
        return self.memory_buffer.size

    def __dlpack__(self, *, stream: int | None = None, **_versions: Any) -> Any:
        """Offer the data by DLPack. Raises `UnsupportedError` for BYTES."""
        if self.memory_type in _ON_HOST and stream not in (None, 0):
            raise UnsupportedError(
                f"DLPack stream synchronization on memory type {self.memory_type} and stream "
                f"{stream} not supported"
            )
        return dlpack.offer(
            self, self.data_ptr, self.__dlpack_device__(), self.data_type, self.shape
        )

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        """Return kind and number of the device, as DLPack defines them."""
        return _DEVICES[self.memory_type], self.memory_type_id

    @staticmethod
    def from_dlpack(obj: Any) -> Tensor:
        """Return a tensor that shares the memory of an object with `__dlpack__`.

        Raises `InvalidArgumentError` if that is not possible.
        """
        memory = dlpack.read(obj)
        return Tensor(memory.data_type, memory.shape, _buffer_of(obj, memory))

    @staticmethod
    def from_bytes_array(bytes_array: list[str] | list[bytes] | npt.NDArray[Any]) -> Tensor:
        """Return a BYTES tensor of texts or bytes. Raises `InvalidArgumentError` for others."""
        tensor = tensor_of(bytes_array)
        if tensor.data_type is not DataType.BYTES:
            raise InvalidArgumentError(
                f"Unsupported conversion from {bytes_array} to Triton BYTES Tensor. "
                f"Got {tensor.data_type.name}"
            )
        return tensor

    @staticmethod
    def from_string_array(string_array: list[str] | npt.NDArray[Any]) -> Tensor:
        """Return a BYTES tensor of texts. Raises `InvalidArgumentError` for others."""
        return Tensor.from_bytes_array(string_array)

    def to_bytes_array(self) -> npt.NDArray[np.object_]:
        """Return the elements of a BYTES tensor as an array of `bytes`."""
        if self.data_type is not DataType.BYTES:
            raise InvalidArgumentError(f"Tensor has data type {self.data_type.name} not BYTES")
        return to_server("", self.to_host()).numpy()

    def to_string_array(self) -> npt.NDArray[np.str_]:
        """Return the elements of a BYTES tensor, which are UTF-8, as an array of texts."""
        elements = self.to_bytes_array()
        texts = [element.decode() for element in elements.ravel().tolist()]
        return np.array(texts, np.str_).reshape(elements.shape)

    def to_host(self) -> Tensor:
        """Return the tensor in the host's memory: itself if it is there."""
        return self.to_device("cpu")

    def to_device(self, device: DeviceOrMemoryType) -> Tensor:
        """Return the tensor in the memory of a device: itself if it is there, otherwise a copy.

        Raises `InvalidArgumentError` for an unknown name, and `UnsupportedError` if the package
        CuPy, which copies to and from GPUs, is not installed.
        """
        wanted, number = memory_type_of(device)
        here = self.memory_type
        if (here, self.memory_type_id) == (wanted, number) or (
            here is MemoryType.CPU_PINNED and wanted is MemoryType.CPU
        ):
            return self
        return self._copied(wanted, number)

    def _copied(self, wanted: MemoryType, number: int) -> Tensor:
        try:
            import cupy  # type: ignore[import-not-found]
        except ImportError:
            cupy = None
        if cupy is None or wanted is MemoryType.CPU_PINNED:
            raise UnsupportedError(
                f"Conversion from {(self.memory_type, self.memory_type_id)} to {(wanted, number)} "
                "not supported."
            )
        flat = Tensor(DataType.UINT8, [self.size], self.memory_buffer)
        if wanted is MemoryType.CPU:
            moved = Tensor.from_dlpack(cupy.asnumpy(cupy.from_dlpack(flat)))
        else:
            source = (
                np.from_dlpack(flat) if self.memory_type in _ON_HOST else cupy.from_dlpack(flat)
            )
            with cupy.cuda.Device(number):
                moved = Tensor.from_dlpack(cupy.asarray(source))
        return Tensor(self.data_type, self.shape, moved.memory_buffer)


class _Array:
    """Host memory for numpy, which keeps its owner."""

    def __init__(self, buffer: MemoryBuffer) -> None:
        self._owner = buffer.owner
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (buffer.size,),
            "data": (buffer.data_ptr, False),
        }  # fmt: skip


def _buffer_of(owner: Any, memory: dlpack.OfferedMemory) -> MemoryBuffer:
    if memory.device not in _MEMORY_TYPES:
        raise InvalidArgumentError(
            f"Unsupported DLPack device type. Can't convert {memory.device} to Triton server "
            "memory type"
        )
    return MemoryBuffer(
        memory.address, _MEMORY_TYPES[memory.device], memory.device_id, memory.size, owner
    )


def memory_type_of(device: DeviceOrMemoryType) -> tuple[MemoryType, int]:
    """Return the kind of memory and its number: `"gpu:1"` is `(MemoryType.GPU, 1)`.

    Raises `InvalidArgumentError`.
    """
    if isinstance(device, MemoryType):
        return device, 0
    if isinstance(device, tuple) and len(device) == 2:
        kind, number = device
        if isinstance(kind, MemoryType):
            return kind, number
        if isinstance(kind, DLDeviceType) and kind in _MEMORY_TYPES:
            return _MEMORY_TYPES[kind], number
    if isinstance(device, str):
        name, colon, text = device.partition(":")
        if name.upper() in MemoryType.__members__ and (not colon or text.isdecimal()):
            return MemoryType[name.upper()], int(text or 0)
        raise InvalidArgumentError(
            f"Unsupported Memory Type String. Can't convert {device} to Triton server memory type"
        )
    raise InvalidArgumentError(f"Invalid memory type {device}")


def tensor_of(value: Any) -> Tensor:
    """Return a value of a request as a tensor.

    It may be an array, a list, or any object with `__dlpack__`. Raises
    `InvalidArgumentError` for another value.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, list):
        try:
            value = np.array(value)
        except ValueError as error:
            raise InvalidArgumentError(
                f"Conversion from {value} to tensor not supported."
            ) from error
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            return of_server(tritonpy.Tensor.from_numpy("", np.asarray(value)))
        except KeyError:
            raise InvalidArgumentError(
                f"Unsupported Numpy data type. Can't convert {value.dtype} to Triton server data "
                "type"
            ) from None
    if hasattr(value, "__dlpack__"):
        return Tensor.from_dlpack(value)
    raise InvalidArgumentError(
        f"Input type {type(value)} not supported. Must be a list, a numpy array, or a type that "
        "supports __dlpack__"
    )


def of_server(tensor: tritonpy.Tensor) -> Tensor:
    """Return a tensor of the server, which shares the memory."""
    data_type, data = DataType[tensor.datatype], tensor.data
    if isinstance(data, np.ndarray):
        buffer = MemoryBuffer(data.ctypes.data, MemoryType.CPU, 0, data.nbytes, data)
    else:
        buffer = MemoryBuffer.from_dlpack(data)
    return Tensor(data_type, tensor.shape, buffer)


def to_server(name: str, tensor: Tensor) -> tritonpy.Tensor:
    """Return a tensor for the server, which shares the memory and keeps its owner."""
    shape = tuple([int(dim) for dim in tensor.shape])
    if tensor.memory_type not in _ON_HOST:
        device = DLDeviceType.kDLCUDA, tensor.memory_type_id
        return tritonpy.Tensor(name, tensor.data_type.name, shape, tensor, device)
    array = np.asarray(_Array(tensor.memory_buffer)) if tensor.size else np.empty(0, np.uint8)
    return tritonpy.Tensor.from_buffer(name, tensor.data_type.name, shape, array)
