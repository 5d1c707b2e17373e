"""BYTES tensors in wire form.

Each element is a 4-byte little-endian length followed by the bytes, in row-major order without
padding.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from struct import Struct

import numpy as np
import numpy.typing as npt

from tritonpy.errors import InvalidArgument

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
            raise InvalidArgument(f"incomplete string data: an element ends at byte {at}, the buffer has {size}")
        offsets.append(at)
    return offsets


def decode_strings(data: npt.NDArray[np.uint8], offsets: list[int]) -> list[bytes]:
    """Return the elements of a wire-form buffer with known `offsets`."""
    raw = data.tobytes()
    return [raw[start + 4 : end] for start, end in pairwise(offsets)]
