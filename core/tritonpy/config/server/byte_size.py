"""Sizes in bytes, written as a number or as "64MiB"."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

UNIT = {"unit": "bytes"}

ByteSize = Annotated[int, msgspec.Meta(extra=UNIT)]
"""The type of an option for a size: 67108864 and "64MiB" are equal.

An option adds its bounds like this: `Annotated[ByteSize, msgspec.Meta(gt=0, description="…")]`.
"""

_DECIMAL = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BINARY = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_FACTORS = _DECIMAL | _BINARY
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_byte_size(text: str) -> int:
    """Return the number of bytes; "MB" is 10**6, "MiB" is 2**20.

    Raises ValueError for other texts.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in _FACTORS:
        raise ValueError(f"'{text}' is not a size in bytes")
    factor = _FACTORS[match[2].lower()]
    return int(match[1]) * factor if "." not in match[1] else int(float(match[1]) * factor)
