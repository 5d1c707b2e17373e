"""Parsing of protobuf messages."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from tritonpy import InvalidArgument

MessageT = TypeVar("MessageT", bound=Message)


def parse_message(kind: type[MessageT], raw: bytes) -> MessageT:
    """Return the message in `raw`.

    Raises InvalidArgument if it is no valid message of that type.
    """
    try:
        return kind.FromString(raw)
    except DecodeError:
        name = kind.DESCRIPTOR.full_name
        raise InvalidArgument(f"unable to parse the request: its {len(raw)} bytes are not a message {name}") from None
