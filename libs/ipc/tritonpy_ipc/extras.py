"""Encoding and decoding of the JSON part of a frame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json import encoder
from typing import Any, Callable

# decode() strips whitespace at both ends, which doubles the cost.
_read = json.JSONDecoder().raw_decode


def read_extras(text: bytes | bytearray) -> Any:
    """Return the decoded JSON value; trailing whitespace is ignored.

    Raises `ValueError` and `RecursionError`.
    """
    decoded = text.decode()
    value, end = _read(decoded)
    if end != len(decoded) and not decoded[end:].isspace():
        raise ValueError(f"unexpected data after character {end}")
    return value


def _make_writer() -> Callable[[Mapping[str, Any]], str]:
    """Return a function that encodes JSON.

    `JSONEncoder` creates a C encoder for each value, which takes most of the time of a short one.
    Here it is created once.
    """
    plain = json.JSONEncoder(separators=(",", ":"))
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    write = make(
        None, plain.default, encoder.encode_basestring_ascii, None, ":", ",", False, False, True
    )
    return lambda extras: "".join(write(extras, 0))


write_extras = _make_writer()
