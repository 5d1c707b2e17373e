"""Conversion of JSON values to field values, as in protobuf's JSON mapping.

See https://protobuf.dev/programming-guides/json.
"""

from __future__ import annotations

import contextlib
import json
import math
import re

from google.protobuf.descriptor import FieldDescriptor

from tritonpy.config.name_suggestions import unknown_name
from tritonpy.config.scalars import FLOATS, INTEGER_RANGES, ScalarValue, enum_numbers, integer_in_range

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WORD_BOOLS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)
_WORD_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def scalar_value(field: FieldDescriptor, value: object) -> ScalarValue:
    """Return the value of `field` for the JSON `value`.

    Raises ValueError with the expected type.
    """
    if field.cpp_type in INTEGER_RANGES:
        return integer_in_range(field, _integer(value))
    if field.cpp_type in FLOATS:
        return _float(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field, value)
    return _string(value)


def excerpt(value: object) -> str:
    """Return `value` as JSON, truncated to 40 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _integer(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"expected an integer, got {excerpt(value)}")


def _float(value: object) -> float:
    if isinstance(value, str) and value in _WORD_FLOATS:
        return _WORD_FLOATS[value]
    if isinstance(value, str) and _FLOAT.fullmatch(value):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise ValueError(f"expected a number, got {excerpt(value)}")


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _WORD_BOOLS:
        return _WORD_BOOLS[value.lower()]
    raise ValueError(f"expected true or false, got {excerpt(value)}")


def _enum(field: FieldDescriptor, value: object) -> int:
    names = enum_numbers(field)
    if isinstance(value, str):
        found = names.get(value, names.get(value.upper().replace("-", "_")))
        if found is not None:
            return found
        if not _INTEGER.fullmatch(value):
            raise ValueError(unknown_name("value", value, names))
    number = value if isinstance(value, float) else _integer(value)
    if number not in names.values():
        raise ValueError(f"expected one of {', '.join(names)}, got {excerpt(value)}")
    return int(number)


def _string(value: object) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("the string contains half of a surrogate pair") from None
        return value
    raise ValueError(f"expected a string, got {excerpt(value)}")
