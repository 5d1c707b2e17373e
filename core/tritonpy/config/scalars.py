"""Values of protobuf scalar fields: type names and integer ranges."""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import FieldDescriptor

_SIGNED_32, _SIGNED_64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
INTEGER_RANGES: dict[int, tuple[int, int]] = {
    FieldDescriptor.CPPTYPE_INT32: _SIGNED_32,
    FieldDescriptor.CPPTYPE_INT64: _SIGNED_64,
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
FLOATS = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})

ScalarValue = bool | int | float | str


def integer_in_range(field: FieldDescriptor, value: int) -> int:
    """Return `value`; raises ValueError with the field's range if it is outside."""
    low, high = INTEGER_RANGES[field.cpp_type]
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range, it must be from {low} to {high}")
    return value


@cache
def enum_numbers(field: FieldDescriptor) -> dict[str, int]:
    """Return the values of an enum field by name."""
    if field.enum_type is None:
        raise AssertionError(f"{field.full_name} is not an enum: this is a bug")
    return {value.name: value.number for value in field.enum_type.values}
