"""Triton's data types: wire names, numbers in `model_config.proto`, and numpy dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tritonpy_types.errors import InvalidArgument

_LENGTH = Struct("<I")


def encode_strings(elements: Iterable[bytes | str]) -> npt.NDArray[np.uint8]:
    """Return the wire form of `elements` as a flat uint8 array; text is encoded as UTF-8."""
    pack = _LENGTH.pack
    parts: list[bytes] = []
    for element in elements:
        raw = element if isinstance(element, bytes) else _as_bytes(element)
        parts.append(pack(len(raw)))
        parts.append(raw)
    return np.frombuffer(b"".join(parts), np.uint8)


def _as_bytes(element: object) -> bytes:
    if isinstance(element, str):
        return element.encode()
    if isinstance(element, (bytearray, memoryview, np.bytes_)):
        return bytes(element)
    return str(element).encode()


def string_offsets(data: npt.NDArray[np.uint8]) -> list[int]:
    """Return the start of each element of a wire-form buffer and its end: n + 1 offsets.

    Raises InvalidArgument if a length exceeds the buffer.
    """
    size = data.nbytes
    view = data.data if size else memoryview(b"")
    unpack = _LENGTH.unpack_from
    offsets, at = [0], 0
    while at < size:
        if at + 4 > size:
            raise InvalidArgument(f"incomplete string length indicator at byte {at} of {size}")
        at += 4 + unpack(view, at)[0]
        if at > size:
            raise InvalidArgument(
                f"incomplete string data: an element ends at byte {at}, the buffer has {size}"
            )
        offsets.append(at)
    return offsets


def decode_strings(data: npt.NDArray[np.uint8], offsets: list[int]) -> list[bytes]:
    """Return the elements of a wire-form buffer with known `offsets`."""
    raw = data.tobytes()
    return [raw[start + 4 : end] for start, end in pairwise(offsets)]


@dataclass(frozen=True, slots=True)
class DataType:
    """One data type; `itemsize` is in bytes, 0 for BYTES, whose elements vary in size."""

    name: str
    number: int
    dtype: np.dtype[np.generic]
    itemsize: int

    @property
    def config_name(self) -> str:
        """The name in a model configuration, such as `TYPE_FP32`; BYTES is `TYPE_STRING` there."""
        return "TYPE_STRING" if self.name == "BYTES" else f"TYPE_{self.name}"


def _table() -> dict[str, DataType]:
    kinds: list[tuple[str, object]] = [
        ("BOOL", np.bool_), ("UINT8", np.uint8), ("UINT16", np.uint16), ("UINT32", np.uint32),
        ("UINT64", np.uint64),
        ("INT8", np.int8), ("INT16", np.int16), ("INT32", np.int32), ("INT64", np.int64),
        ("FP16", np.float16), ("FP32", np.float32), ("FP64", np.float64), ("BYTES", np.object_),
        ("BF16", ml_dtypes.bfloat16),
    ]  # fmt: skip
    table = {}
    for number, (name, kind) in enumerate(kinds, start=1):
        dtype: np.dtype[np.generic] = np.dtype(kind)  # type: ignore[call-overload]
        table[name] = DataType(name, number, dtype, 0 if name == "BYTES" else dtype.itemsize)
    return table


DATATYPES: Mapping[str, DataType] = _table()
DATATYPE_OF_NUMBER: Mapping[int, DataType] = {kind.number: kind for kind in DATATYPES.values()}
DTYPES: Mapping[str, np.dtype[np.generic]] = {kind.name: kind.dtype for kind in DATATYPES.values()}
ITEMSIZES: Mapping[str, int] = {kind.name: kind.itemsize for kind in DATATYPES.values()}
_NAMES: dict[np.dtype[np.generic], str] = {kind.dtype: kind.name for kind in DATATYPES.values()}


def datatype_of(dtype: np.dtype[np.generic]) -> str:
    """Return the wire name for a numpy dtype; text and object arrays are BYTES.

    Raises KeyError for a dtype that the protocol does not support (complex, dates, records).
    """
    name = _NAMES.get(dtype)
    if name is None and dtype.kind in "SU":
        return "BYTES"
    if name is None and not dtype.isnative:
        return datatype_of(dtype.newbyteorder("="))
    if name is None:
        raise KeyError(str(dtype))
    return name
