"""Decoding of tensor data in typed fields instead of raw bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy import DTYPES, InvalidArgument, encode_strings

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import InferTensorContents

# Each field with its datatypes. The last one is the type of the field; the others are widened to it.
_FIELDS = (
    ("bool_contents", ("BOOL",)),
    ("int_contents", ("INT8", "INT16", "INT32")),
    ("int64_contents", ("INT64",)),
    ("uint_contents", ("UINT8", "UINT16", "UINT32")),
    ("uint64_contents", ("UINT64",)),
    ("fp32_contents", ("FP32",)),
    ("fp64_contents", ("FP64",)),
    ("bytes_contents", ("BYTES",)),
)


def contents_bytes(contents: InferTensorContents, datatype: str, name: str, model: str) -> bytes:
    """Return the elements of `contents` in wire format.

    `name` and `model` are for error texts only.

    INT8, INT16, UINT8 and UINT16 keep the low bytes of the 32-bit numbers that carry them.
    Raises InvalidArgument if a field does not match `datatype` or several fields have elements.
    """
    found: bytes | None = None
    for field, datatypes in _FIELDS:
        elements = getattr(contents, field)
        if not elements:
            continue
        unexpected = f"unexpected explicit tensor data for input tensor '{name}' for model '{model}'"
        if found:
            raise InvalidArgument(f"{unexpected}, binary data was already supplied.")
        if datatype not in datatypes:
            raise InvalidArgument(f"{unexpected} of type '{datatypes[-1]}', expected datatype '{datatype}'")
        found = _wire_form(elements, datatype, datatypes[-1])
    return found or b""


def _wire_form(elements: Sequence[Any], datatype: str, carrier: str) -> bytes:
    if datatype == "BYTES":
        return encode_strings(elements).tobytes()
    return np.array(elements, DTYPES[carrier]).astype(DTYPES[datatype], copy=False).tobytes()
