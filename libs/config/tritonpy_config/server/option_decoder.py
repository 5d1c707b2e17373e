"""Decoding of plain data from YAML or flags into frozen Structs; reports all problems at once."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tritonpy_config.parameters import parse_byte_size
from tritonpy_config.problem import ConfigProblem, unknown_name
from tritonpy_config.server.expectation import (
    expectation,
    is_byte_size,
    split_annotation,
    union_members,
)
from tritonpy_config.server.invalid_server_config import InvalidServerConfig

T = TypeVar("T", bound=msgspec.Struct)

BOOLEANS = {
    "true": True,
    "on": True,
    "1": True,
    "yes": True,
    "false": False,
    "off": False,
    "0": False,
    "no": False,
}
"""The spellings of true and false, in lower case."""


def decode_options(options_type: type[T], raw: object, path: str) -> T:
    """Return `raw`, the value of the key `path`, as an `options_type`.

    Keys may contain `_` or `-`. A text that spells a number or a boolean is converted. A ByteSize
    may be "64MiB"; a Path is text. None means no options. Raises InvalidServerConfig with every
    problem: unknown and missing keys, wrong types, values out of range.
    """
    walk = _Walk()
    plain = walk.struct(options_type, raw, path)
    if not walk.problems:
        try:
            return msgspec.convert(plain, options_type, strict=False, dec_hook=_decode_path)
        # a rule between keys, from the Struct's own __post_init__
        except msgspec.ValidationError as error:
            walk.add(path, str(error).split(" - at `$")[0])
    raise InvalidServerConfig(walk.problems)


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"Expected {kind.__name__}, got {type(value).__name__}")


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _folded(key: str) -> str:
    return key.replace("-", "_")


class _Walk:
    """Traverses a value together with its type and renames its keys to msgspec's encoded names."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []

    def add(self, path: str, text: str) -> None:
        self.problems.append(ConfigProblem(path, text))

    def unexpected(self, annotation: Any, raw: object, path: str) -> object:
        text = (
            "nothing"
            if raw is None
            else repr(raw)
            if len(repr(raw)) <= 60
            else f"{repr(raw)[:60]}…"
        )
        hint = (
            f'; in quotes it is text: "{raw}"'
            if isinstance(raw, (int, float)) and "text" in expectation(annotation)
            else ""
        )
        self.add(path, f"expected {expectation(annotation)}; got {text}{hint}")
        return raw

    def struct(self, kind: type[msgspec.Struct], raw: object, path: str) -> object:
        if raw is None:
            raw = {}
        if not isinstance(raw, Mapping):
            return self.unexpected(kind, raw, path)
        fields = {}
        for field in msgspec.structs.fields(kind):
            fields[_folded(field.name)] = fields[_folded(field.encode_name)] = field
        seen: dict[str, str] = {}
        result: dict[str, object] = {}
        collecting = fields.get(getattr(kind, "collects", ""))
        collected: dict[str, str] = {}
        for key, value in raw.items():
            here, found = _child(path, str(key)), fields.get(_folded(str(key)))
            if found is None and collecting is not None:
                collected[str(key)] = _text_of(value)
            elif found is None:
                dashed = "-" in str(key)  # the hint uses the same spelling as the key
                names = dict.fromkeys(
                    field.encode_name if dashed else field.name for field in fields.values()
                )
                self.add(here, unknown_name("option", str(key), names))
            elif found.name in seen:
                self.add(here, f"given twice, as '{seen[found.name]}' and as '{key}'")
            else:
                seen[found.name] = str(key)
                result[found.encode_name] = self.value(found.type, value, here)
        if collecting is not None and collected:
            result[collecting.encode_name] = collected
        self._missing(kind, seen, path)
        return result

    def _missing(self, kind: type[msgspec.Struct], seen: Mapping[str, str], path: str) -> None:
        for field in msgspec.structs.fields(kind):
            if field.required and field.name not in seen:
                self.add(
                    path, f"'{field.encode_name}' is missing: expected {expectation(field.type)}"
                )

    def value(self, annotation: Any, raw: object, path: str) -> object:
        bare, metas = split_annotation(annotation)
        members = [member for member in union_members(bare) if member is not type(None)]
        if members and (raw is not None or type(None) not in union_members(bare)):
            return (
                self.value(members[0], raw, path)
                if len(members) == 1
                else self._union(annotation, members, raw, path)
            )
        kind = typing.get_origin(bare) or bare
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind, raw, path)
        if isinstance(kind, type) and issubclass(kind, Mapping):
            return self._mapping(annotation, raw, path)
        if kind in {list, set, frozenset} or (
            kind is tuple and typing.get_args(bare)[-1:] == (...,)
        ):
            return self._list(annotation, raw, path)
        if isinstance(raw, str):
            raw = _spelled(kind, is_byte_size(metas), raw)
        return self._leaf(annotation, raw, path)

    def _union(self, annotation: Any, members: list[Any], raw: object, path: str) -> object:
        for member in members:
            kind = typing.get_origin(member) or member
            if (
                isinstance(kind, type)
                and isinstance(raw, Mapping)
                and issubclass(kind, (Mapping, msgspec.Struct))
            ):
                return self.value(member, raw, path)
            if isinstance(kind, type) and isinstance(raw, list) and issubclass(kind, (list, tuple)):
                return self.value(member, raw, path)
        if bool in members and str not in members and isinstance(raw, str):
            raw = _spelled(bool, False, raw)
        return self._leaf(annotation, raw, path)

    def _mapping(self, annotation: Any, raw: object, path: str) -> object:
        if raw is None:
            raw = {}
        if not isinstance(raw, Mapping):
            return self.unexpected(annotation, raw, path)
        inner = typing.get_args(split_annotation(annotation)[0])
        key_type, value_type = inner or (Any, Any)
        return {
            str(key) if key_type is str else key: self.value(
                value_type, value, _child(path, str(key))
            )
            for key, value in raw.items()
        }

    def _list(self, annotation: Any, raw: object, path: str) -> object:
        if not isinstance(raw, (list, tuple)):
            return self.unexpected(annotation, raw, path)
        inner = (typing.get_args(split_annotation(annotation)[0]) or (Any,))[0]
        before = len(self.problems)
        items = [self.value(inner, item, f"{path}[{index}]") for index, item in enumerate(raw)]
        return self._leaf(annotation, items, path) if len(self.problems) == before else items

    def _leaf(self, annotation: Any, raw: object, path: str) -> object:
        try:
            msgspec.convert(raw, annotation, strict=False, dec_hook=_decode_path)
        except (msgspec.ValidationError, TypeError):
            return self.unexpected(annotation, raw, path)
        return raw


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spelled(kind: Any, byte_size: bool, raw: str) -> object:
    """Return the value of a text for a boolean or a size, or the text itself if it is neither."""
    if kind is bool:
        return BOOLEANS.get(raw.lower(), raw)
    if byte_size:
        try:
            return parse_byte_size(raw)
        except ValueError:
            return raw
    return raw
