"""Binary format of cached outputs.

"TPYC" · format 1 · CRC-32 of the rest · length of the head · head · data of each tensor

Numbers are little-endian, unsigned, of 4 bytes. The head is MessagePack: (name, datatype, shape,
bytes) per tensor. Head and data are padded to 16 bytes each for alignment. The format contains no
code, and every field is validated.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from math import prod

import msgspec
import numpy as np

from tritonpy import DATATYPES, Tensor

_MAGIC = b"TPYC"
_FORMAT = 1
_START = struct.Struct("<4sIII")
_ALIGNMENT = 16
_Head = list[tuple[str, str, tuple[int, ...], int]]
_decode = msgspec.msgpack.Decoder(_Head).decode
_encode = msgspec.msgpack.Encoder().encode


class BrokenValue(ValueError):
    """The stored bytes do not have this version of the format."""


def pack(outputs: Sequence[Tensor]) -> bytes:
    """Return the outputs as bytes."""
    head = _encode(
        [(tensor.name, tensor.datatype, tensor.shape, tensor.data.nbytes) for tensor in outputs]
    )
    parts = [head, _padding(len(head))]
    for tensor in outputs:
        parts += [tensor.data.reshape(-1).view(np.uint8).data, _padding(tensor.data.nbytes)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([_START.pack(_MAGIC, _FORMAT, checksum, len(head)), *parts])


def unpack(value: bytes) -> list[Tensor]:
    """Return the outputs as views of `value`. Raises `BrokenValue`."""
    if len(value) < _START.size:
        raise BrokenValue("it is too short")
    magic, version, checksum, length = _START.unpack_from(value)
    if (magic, version) != (_MAGIC, _FORMAT):
        raise BrokenValue("it has another format")
    if zlib.crc32(memoryview(value)[_START.size :]) != checksum:
        raise BrokenValue("its checksum is wrong")
    try:
        head = _decode(value[_START.size : _START.size + length])
    except msgspec.DecodeError as error:
        raise BrokenValue(f"its head is invalid: {error}") from error
    at, outputs = _START.size + length + len(_padding(length)), []
    for name, datatype, shape, size in head:
        outputs.append(_tensor(name, datatype, shape, memoryview(value)[at : at + size], size))
        at += size + len(_padding(size))
    if at != len(value):
        raise BrokenValue("its length is wrong")
    return outputs


def _tensor(
    name: str, datatype: str, shape: tuple[int, ...], data: memoryview, size: int
) -> Tensor:
    kind = DATATYPES.get(datatype)
    if kind is None or len(data) != size or any(dim < 0 for dim in shape):
        raise BrokenValue(f"its output '{name}' is invalid")
    if kind.itemsize and prod(shape) * kind.itemsize != size:
        raise BrokenValue(f"its output '{name}' has a size that does not match its shape")
    return Tensor.from_buffer(name, datatype, shape, data)


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNMENT)
