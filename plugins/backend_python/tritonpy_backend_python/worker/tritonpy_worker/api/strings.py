"""BYTES tensors: arrays of objects and their wire format.

The elements are in row-major order. Each is a little-endian length of four bytes and the content.
"""

from __future__ import annotations

import struct
from functools import partial
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

from .errors import TritonModelException

_HEADER = struct.Struct("<I")


def serialize_byte_tensor(input_tensor: np.ndarray[Any, Any]) -> Any:
    """Return the wire format of an array of objects or fixed-size bytes.

    Return an empty tuple if it has no elements, and None for other types.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype != np.object_ and input_tensor.dtype.type is not np.bytes_:
        return None
    return _joined(_elements(input_tensor))


def deserialize_bytes_tensor(encoded_tensor: Any) -> np.ndarray[Any, Any]:
    """Return a one-dimensional array of `bytes` objects from wire format (bytes or flat uint8).

    Raises `TritonModelException` if it is malformed.
    """
    return _object_array(_split(np.frombuffer(encoded_tensor, np.uint8)))


def encode(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the wire format of an array of objects or fixed-size bytes as flat uint8.

    Elements other than bytes are converted to text in UTF-8. Raises `UnicodeEncodeError` for text
    that UTF-8 cannot encode.
    """
    return np.frombuffer(_joined(_elements(array)), np.uint8)


def decode(data: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array of `bytes` objects from wire format (flat uint8).

    Raises `TritonModelException` if it is malformed, and `ValueError` if its size does not fit
    `shape`.
    """
    array = _equal_lengths(data, prod(shape))
    if array is None:
        array = _object_array(_split(data))
    return array.reshape(shape)


def _elements(array: np.ndarray[Any, Any]) -> list[bytes]:
    elements: list[Any] = array.ravel().tolist()
    if set(map(type, elements)) <= {bytes}:
        return elements
    return [each if type(each) is bytes else str(each).encode() for each in elements]


def _joined(elements: list[bytes]) -> bytes:
    lengths = list(map(len, elements))
    headers = {length: _HEADER.pack(length) for length in set(lengths)}
    if len(headers) == 1:
        (header,) = headers.values()
        return header + header.join(elements)
    parts = elements * 2
    parts[::2] = map(headers.__getitem__, lengths)
    parts[1::2] = elements
    return b"".join(parts)


def _equal_lengths(data: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any] | None:
    """Return the elements if all lengths are equal, as rows of a matrix; otherwise None."""
    if count == 0 or data.size < 4 * count or data.size % count:
        return None
    row = data.size // count
    rows = data.reshape(count, row)
    if not (rows[:, :4] == np.frombuffer(_HEADER.pack(row - 4), np.uint8)).all():
        return None
    if row == 4:
        return _object_array([b""] * count)
    return np.ndarray(count, np.dtype((np.void, row - 4)), data, 4, (row,)).astype(object)


def _split(data: np.ndarray[Any, Any]) -> list[bytes]:
    read, number = BytesIO(data.data).read, int.from_bytes
    elements = [read(number(header, "little")) for header in iter(partial(read, 4), b"")]
    # Only a read past the end returns less than requested: one check at the end is cheaper than one
    # per element.
    if elements:
        last = len(elements[-1])
        whole = sum(map(len, elements)) + 4 * len(elements) == data.size
        if not whole or _HEADER.unpack_from(data.data, data.size - last - 4)[0] != last:
            raise TritonModelException(f"Invalid bytes tensor data: {_fault(data)}")
    return elements


def _fault(data: np.ndarray[Any, Any]) -> str:
    at, size = 0, data.size
    while at + 4 <= size:
        at += 4 + _HEADER.unpack_from(data.data, at)[0]
    return "incomplete length field" if at < size else "string extends beyond buffer"


def _object_array(elements: list[bytes]) -> np.ndarray[Any, Any]:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array
