"""Tensors as readable values for reports."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from tests.conformance.inference import NUMPY


def values(datatype: str, data: bytes) -> list[Any]:
    """Return the elements of a tensor in wire form; strings with a JSON object or list are parsed."""
    if datatype != "BYTES":
        found: list[Any] = np.frombuffer(data, NUMPY[datatype]).tolist()
        return found
    texts = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        texts.append(_readable(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return texts


def _readable(element: bytes) -> Any:
    text = element.decode("utf-8", "backslashreplace")
    if text[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
