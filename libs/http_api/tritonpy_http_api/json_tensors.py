"""Conversion between tensors and nested or flat JSON lists, with Triton's checks and texts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Internal, InvalidArgument, Tensor, encode_strings
from tritonpy.frontend import ITEMSIZES
from tritonpy_http_api.json_document import INT64_MAX, MAX_NESTING, TOO_DEEP, UINT64_MAX

_BINARY_ONLY = ("FP16", "BF16")
# The JSON types that a datatype accepts, the error text for others, and the widest numpy type.
_FLOATS = (
    frozenset((int, float)),
    "attempt to access JSON non-number as double",
    np.dtype(np.float64),
)
_SIGNED = (
    frozenset((int,)),
    "attempt to access JSON non-signed-integer as signed-integer",
    np.dtype(np.int64),
)
_UNSIGNED = (
    frozenset((int,)),
    "attempt to access JSON non-unsigned-integer as unsigned-integer",
    np.dtype(np.uint64),
)
_READERS: dict[str, tuple[frozenset[type], str, np.dtype[Any]]] = {
    "BOOL": (
        frozenset((bool,)),
        "attempt to access JSON non-boolean as boolean",
        np.dtype(np.bool_),
    ),
    "FP32": _FLOATS,
    "FP64": _FLOATS,
    **dict.fromkeys(("INT8", "INT16", "INT32", "INT64"), _SIGNED),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "UINT64"), _UNSIGNED),
}
_MAX_VALUE_CHARS = 40  # characters of a value in an error text
_OTHER_NAMES = {
    "float16": "FP16", "half": "FP16", "bfloat16": "BF16", "float": "FP32", "float32": "FP32",
    "double": "FP64", "float64": "FP64",
    "int": "INT32", "long": "INT64", "boolean": "BOOL", "string": "BYTES", "str": "BYTES",
    "object": "BYTES",
}  # fmt: skip
_TOO_MANY = "Unable to parse 'data': Shape does not match true shape of 'data' field"
_TOO_FEW = "Failed to parse 'data' field: shape does not match true shape"


def from_json(name: str, datatype: str, shape: tuple[int, ...], data: Any, limit: int) -> Tensor:
    """Return the tensor of `data`, an arbitrarily nested list in row-major order.

    Integers that do not fit a small type wrap, as in Triton. A tensor without elements ignores
    `data`. Raises InvalidArgument for an invalid shape or datatype and for more than `limit` bytes.
    Raises Internal, as Triton does, if the type or number of the values does not match.
    """
    count = element_count(name, shape)
    if count == 0:
        known = datatype if datatype in DTYPES else _refuse_datatype(name, datatype)
        return Tensor(name, known, shape, _empty_data(known, shape))
    if not isinstance(data, list):
        words = f"'data' of input '{name}' is {_abbreviate(data)}, it takes a list"
        raise Internal(
            f"Unable to parse 'data': attempt to access JSON non-array as array: {words}"
        )
    if datatype == "BYTES":
        return _strings(name, shape, data, limit)
    size = count * ITEMSIZES.get(datatype, 0)
    if size > INT64_MAX:
        raise InvalidArgument(
            f"byte size overflow for input '{name}': element count ({count}) * data type size "
            f"({ITEMSIZES[datatype]}) "
            f"exceeds maximum allowed size ({INT64_MAX})"
        )
    _check_size(name, size, limit)
    if datatype in _BINARY_ONLY:
        raise InvalidArgument(
            f"receiving {datatype} data via JSON is not supported. Please use the binary data "
            f"format for input {name}"
        )
    if datatype not in _READERS:
        _refuse_datatype(name, datatype)
    return _numbers(name, datatype, shape, data, count)


def element_count(name: str, shape: tuple[int, ...]) -> int:
    """Return the number of elements; like Triton, 0 for an empty shape.

    Raises InvalidArgument on overflow.
    """
    if not shape or 0 in shape:
        return 0
    count = 1
    for dim in shape:
        if dim > UINT64_MAX:
            raise Internal(
                "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as "
                "unsigned-integer"
            )
        if dim > INT64_MAX:
            raise invalid_shape(name, shape, "contains one or more invalid dimensions")
        count *= dim
        if count > INT64_MAX:
            raise invalid_shape(
                name, shape, f"causes total element count to exceed maximum size of {INT64_MAX}"
            )
    return count


def invalid_shape(name: str, shape: tuple[int, ...], why: str) -> InvalidArgument:
    """Return the error for an invalid shape."""
    return InvalidArgument(
        f"invalid shape for input '{name}': shape [{','.join(map(str, shape))}] {why}"
    )


def _empty_data(datatype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    try:
        return (
            np.empty(0, DTYPES[datatype]).reshape(shape)
            if datatype != "BYTES"
            else np.empty(0, np.uint8)
        )
    except ValueError:  # no dimensions, or more than numpy supports: the engine reports the error
        return np.empty(0, np.uint8)


def _refuse_datatype(name: str, datatype: str) -> str:
    known = [*DTYPES, "BYTES"] if "BYTES" not in DTYPES else [*DTYPES]
    meant = _OTHER_NAMES.get(
        datatype.lower().removeprefix("type_"), datatype.upper().removeprefix("TYPE_")
    )
    hint = f"; did you mean '{meant}'?" if meant in known else f": it is one of {', '.join(known)}"
    raise InvalidArgument(
        f"invalid datatype for input {name}: there is no datatype '{datatype}'{hint}"
    )


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise InvalidArgument(
            f"JSON input '{name}' has a byte_size ({size} bytes) that exceeds the maximum "
            f"allowed value of {limit} bytes. "
            "Use --http-max-input-size to increase the limit."
        )


def _strings(name: str, shape: tuple[int, ...], data: list[Any], limit: int) -> Tensor:
    raw = strings_from_json(data, name)
    _check_size(name, raw.nbytes, limit)
    return Tensor(name, "BYTES", shape, raw)


def strings_from_json(data: list[Any], name: str = "") -> npt.NDArray[np.uint8]:
    """Return the strings of an arbitrarily nested list in wire format.

    Raises Internal for values that are no strings, and InvalidArgument if the nesting is too deep.
    """
    flat = _flatten(data, TOO_DEEP)
    if not set(map(type, flat)) <= {str}:
        words = _kind_hint(name, "BYTES", flat, frozenset((str,)), "strings")
        raise Internal(
            f"Unable to parse JSON bytes array: attempt to access JSON non-string as string{words}"
        )
    return encode_strings(flat)


def _numbers(
    name: str, datatype: str, shape: tuple[int, ...], data: list[Any], count: int
) -> Tensor:
    kinds, words, wide = _READERS[datatype]
    flat, found = data, set(map(type, data))
    if list in found:
        flat = _flatten(data, f"Unable to parse 'data': {TOO_DEEP}")
        found = set(map(type, flat))
    if not found <= kinds and not set(map(type, flat[:count])) <= kinds:
        raise Internal(
            "Unable to parse 'data': "
            f"{words}{_kind_hint(name, datatype, flat, kinds, _accepted_values(datatype))}"
        )
    if len(flat) != count:
        takes = (
            f"shape [{','.join(map(str, shape))}] of input '{name}' takes {count} values, "
            f"'data' has {len(flat)}"
        )
        raise Internal(f"{_TOO_MANY if len(flat) > count else _TOO_FEW}: {takes}")
    dtype = DTYPES[datatype]
    try:
        array = np.array(flat, wide if dtype == np.float32 else dtype)
    except OverflowError:
        array = _wrapped(flat, wide, name, datatype, words)
    if array.dtype != dtype:
        with np.errstate(over="ignore"):
            array = array.astype(dtype)
    try:
        return Tensor(name, datatype, shape, array.reshape(shape))
    except ValueError:
        raise invalid_shape(name, shape, "has more dimensions than a tensor can have") from None


def _wrapped(
    flat: list[Any], wide: np.dtype[Any], name: str, datatype: str, words: str
) -> npt.NDArray[Any]:
    try:
        return np.array(flat, wide).astype(DTYPES[datatype])
    except OverflowError:
        raise Internal(
            f"Unable to parse 'data': {words}: a value of input '{name}' does not fit into "
            f"datatype {datatype}"
        ) from None


def _accepted_values(datatype: str) -> str:
    if datatype == "BOOL":
        return "true and false"
    if datatype in ("FP32", "FP64"):
        return "numbers"
    return "whole numbers from 0 on" if datatype.startswith("U") else "whole numbers"


def _kind_hint(
    name: str, datatype: str, flat: list[Any], kinds: frozenset[type], takes: str
) -> str:
    """Return a text that names the first value of the wrong type.

    Empty if the tensor has no name.
    """
    place = next((number for number, value in enumerate(flat) if type(value) not in kinds), None)
    if not name or place is None:
        return ""
    return (
        f": value {place} of input '{name}' is {_abbreviate(flat[place])}, "
        f"datatype {datatype} takes {takes}"
    )


def _abbreviate(value: Any) -> str:
    """Return a value as shortened JSON; the value may be as large as a request."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(
            value[: _MAX_VALUE_CHARS + 1] if isinstance(value, str) else value, ensure_ascii=False
        )
    except ValueError:  # more digits than Python converts
        return "a number"
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}..."


def _flatten(data: list[Any], too_deep: str) -> list[Any]:
    if list not in set(map(type, data)):
        return data
    flat: list[Any] = []
    _collect(data, flat, 1, too_deep)
    return flat


def _collect(data: list[Any], flat: list[Any], depth: int, too_deep: str) -> None:
    if depth >= MAX_NESTING:
        raise InvalidArgument(too_deep)
    if list not in set(map(type, data)):
        flat.extend(data)
        return
    for item in data:
        if type(item) is list:
            _collect(item, flat, depth + 1, too_deep)
        else:
            flat.append(item)


def to_json(tensor: Tensor) -> list[Any] | msgspec.Raw:
    """Return the flat data of an output for a JSON encoder.

    Raises InvalidArgument for FP16 and BF16.

    Like Triton, NaN and Infinity are written literally, and non-UTF-8 strings byte by byte.
    """
    datatype = tensor.datatype
    if datatype in _BINARY_ONLY:
        raise InvalidArgument(
            f"sending {datatype} data via JSON is not supported. Please use the binary data "
            "format for output"
        )
    if datatype == "BYTES":
        return _strings_to_json(tensor.strings())
    array = tensor.numpy()
    values: list[Any] = array.ravel().tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return msgspec.Raw(json.dumps(values, separators=(",", ":")).encode())
    return values


def _strings_to_json(elements: list[bytes]) -> list[str] | msgspec.Raw:
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError:
        byte_by_byte = [element.decode("latin-1") for element in elements]
        return msgspec.Raw(
            json.dumps(byte_by_byte, ensure_ascii=False, separators=(",", ":")).encode("latin-1")
        )
