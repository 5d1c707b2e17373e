"""Bytes -> protobuf messages."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from tritonpy import InvalidArgument

MessageT = TypeVar("MessageT", bound=Message)


def parse_message(kind: type[MessageT], raw: bytes) -> MessageT:
    """Return the message that `raw` holds. Raises InvalidArgument where it holds none, or text that is not UTF-8."""
    try:
        return kind.FromString(raw)
    except DecodeError:
        name = kind.DESCRIPTOR.full_name
        raise InvalidArgument(f"unable to parse the request: its {len(raw)} bytes are not a message {name}") from None
