"""The rules by which a field of a protobuf message may be set, the same in the text format and in JSON."""

from __future__ import annotations

from functools import cache
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


def fields_of(message: Message) -> dict[str, FieldDescriptor]:
    """Return the fields of the message by name, in the order of the .proto file."""
    return _fields(message.DESCRIPTOR)


@cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return cast("dict[str, FieldDescriptor]", {field.name: field for field in descriptor.fields})


def map_parts(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the fields for the key and the value of a map."""
    parts = field.message_type
    if parts is None:
        raise AssertionError(f"{field.full_name} is not a map: this is a bug")
    return parts.fields_by_name["key"], parts.fields_by_name["value"]


@cache
def is_map(field: FieldDescriptor) -> bool:
    """Tell whether the field is a map; protobuf describes one as a repeated message of keys and values."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def oneof_conflict(message: Message, field: FieldDescriptor) -> str | None:
    """Return why `field` cannot be set beside another one of its oneof, or None."""
    oneof = field.containing_oneof
    taken = message.WhichOneof(oneof.name) if oneof is not None else None
    if taken is None or taken == field.name:
        return None
    return f"cannot be set together with '{taken}': choose one"


def is_set(message: Message, field: FieldDescriptor) -> bool:
    """Tell whether a field that takes one value has one; a scalar that holds its default counts as not set."""
    if field.has_presence:
        return message.HasField(field.name)
    return bool(getattr(message, field.name) != field.default_value)
