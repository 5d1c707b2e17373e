"""Descriptions of option types for error texts and help."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import msgspec

_WORDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "nothing",
}
_LIMITS = {
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "multiple_of": "in steps of {}",
}
_LENGTHS = {
    "min_length": "of length {} or more",
    "max_length": "of length {} at most",
    "pattern": "matching {}",
}


UNIT = {"unit": "bytes"}

ByteSize = Annotated[int, msgspec.Meta(extra=UNIT)]
"""The type of an option for a size: 67108864 and "64MiB" are equal.

An option adds its bounds like this: `Annotated[ByteSize, msgspec.Meta(gt=0, description="…")]`.
"""


def split_annotation(annotation: Any) -> tuple[Any, list[msgspec.Meta]]:
    """Return the bare type of an `Annotated[…]` and its msgspec metadata."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, []
    bare, *extras = typing.get_args(annotation)
    return bare, [extra for extra in extras if isinstance(extra, msgspec.Meta)]


def is_byte_size(metas: list[msgspec.Meta]) -> bool:
    """Return whether the metadata is that of ByteSize."""
    return any(meta.extra == UNIT for meta in metas)


def union_members(bare: Any) -> tuple[Any, ...]:
    """Return the members of a union, or nothing for another type."""
    return typing.get_args(bare) if typing.get_origin(bare) in {Union, types.UnionType} else ()


def description(annotation: Any) -> str:
    """Return the description in the metadata, or an empty text."""
    return next(
        (meta.description for meta in split_annotation(annotation)[1] if meta.description), ""
    )


def expectation(annotation: Any) -> str:
    """Return a description of the valid values of a type: `an integer, at least 1`."""
    bare, metas = split_annotation(annotation)
    kind = 'a size such as 67108864 or "64MiB"' if is_byte_size(metas) else _kind(bare)
    limits = [
        words.format(getattr(meta, name))
        for name, words in (_LIMITS | _LENGTHS).items()
        for meta in metas
        if getattr(meta, name) is not None
    ]
    return ", ".join([kind, *limits])


def _kind(bare: Any) -> str:
    members, origin = union_members(bare), typing.get_origin(bare)
    if members:
        return " or ".join(expectation(member) for member in members if member is not type(None))
    if origin is Literal:
        return f"one of: {', '.join(map(str, typing.get_args(bare)))}"
    kind = origin or bare
    if kind is Any or not isinstance(kind, type):
        return "anything"
    if issubclass(kind, enum.Enum):
        return f"one of: {', '.join(str(member.value) for member in kind)}"
    if issubclass(kind, msgspec.Struct):
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        return f"a mapping with the keys {', '.join(names)}" if names else "an empty mapping"
    if issubclass(kind, Mapping):
        return "a mapping"
    if issubclass(kind, (list, tuple, set, frozenset)):
        return "a list"
    return _WORDS.get(kind, f"a {kind.__name__.lower()}")
