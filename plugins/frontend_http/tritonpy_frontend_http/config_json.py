"""A model configuration as the JSON that Triton's config endpoint sends."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.message import Message


def config_to_dict(message: Message) -> dict[str, Any]:
    """Return the fields in the order of their definition, under the names of the .proto.

    Like Triton: fields with their default are there, messages that are not set are not, enums are names, and 64-bit
    integers are numbers (protobuf's own JSON makes them strings).
    """
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        result[field.name] = _field(field, getattr(message, field.name))
    return result


def _field(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _value(inner, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_value(field, item) for item in value]
    return _value(field, value)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return config_to_dict(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named else value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
