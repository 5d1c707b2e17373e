"""Rules for setting fields of protobuf messages, shared by the text format and JSON."""

from __future__ import annotations

from functools import cache
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

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


def fields_of(message: Message) -> dict[str, FieldDescriptor]:
    """Return the fields of the message by name, in the order of the .proto file."""
    return _fields(message.DESCRIPTOR)


@cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return cast("dict[str, FieldDescriptor]", {field.name: field for field in descriptor.fields})


def map_parts(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the key field and the value field of a map."""
    parts = field.message_type
    if parts is None:
        raise AssertionError(f"{field.full_name} is not a map: this is a bug")
    return parts.fields_by_name["key"], parts.fields_by_name["value"]


@cache
def is_map(field: FieldDescriptor) -> bool:
    """Return whether the field is a map, which protobuf represents as a repeated message."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def oneof_conflict(message: Message, field: FieldDescriptor) -> str | None:
    """Return why `field` cannot be set in addition to another field of its oneof, or None."""
    oneof = field.containing_oneof
    taken = message.WhichOneof(oneof.name) if oneof is not None else None
    if taken is None or taken == field.name:
        return None
    return f"cannot be set together with '{taken}': choose one"


def is_set(message: Message, field: FieldDescriptor) -> bool:
    """Return whether a singular field is set; a scalar with its default value counts as not set."""
    if field.has_presence:
        return message.HasField(field.name)
    return bool(getattr(message, field.name) != field.default_value)
