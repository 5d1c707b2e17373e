"""The JSON part of a frame, as text and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json import encoder
from typing import Any, Callable

_read = json.JSONDecoder().raw_decode  # decode() searches for blanks at both ends, which costs as much again


def read_extras(text: bytes | bytearray) -> Any:
    """Return what the text says; blanks may follow it. Raises ValueError and RecursionError."""
    decoded = text.decode()
    value, end = _read(decoded)
    if end != len(decoded) and not decoded[end:].isspace():
        raise ValueError(f"there is more after character {end}")
    return value


def _writer() -> Callable[[Mapping[str, Any]], str]:
    """Return what writes JSON.

    JSONEncoder makes an encoder in C for every text, which takes most of the time that a short one costs; here it is made once.
    """
    plain = json.JSONEncoder(separators=(",", ":"))
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    write = make(None, plain.default, encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    return lambda extras: "".join(write(extras, 0))


write_extras = _writer()
