"""Descriptions of the fields of a model configuration, from `model_fields.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tritonpy_config.fields import is_map, map_parts
from tritonpy_config.problem import child, unknown_name
from tritonpy_protos.model_config_pb2 import ModelConfig

_SEPARATOR = "."


@dataclass(frozen=True, slots=True)
class FieldText:
    """What a field means.

    `default` is empty if there is none, `see` names related fields and lint codes.
    """

    text: str
    default: str = ""
    example: str = ""
    see: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field of a model configuration: its path without indices, its type and its meaning."""

    path: str
    type_name: str
    meaning: FieldText
    choices: tuple[str, ...] = ()
    """The names of an enum's values."""
    children: tuple[str, ...] = ()
    """The names of the fields of a message."""


@cache
def _texts() -> Mapping[str, Mapping[str, FieldText]]:
    content = (files("tritonpy_config") / "model_fields.toml").read_text(encoding="utf-8")
    return {
        message: {
            name: FieldText(**{**given, "see": tuple(given.get("see", ()))})
            for name, given in fields.items()
        }
        for message, fields in tomllib.loads(content).items()
    }


def describe_field(path: str) -> ModelField:
    """Return the field at `path`, such as `dynamic_batching.priority_levels`.

    Indices and map keys are allowed and ignored. Raises KeyError with the closest name for an
    unknown path.
    """
    known = _fields_by_name(ModelConfig.DESCRIPTOR)
    found, prefix = None, ""
    for part in path.split(_SEPARATOR):
        name = part.partition("[")[0]
        if prefix and not known:
            raise KeyError(f"'{prefix}' has no fields")
        if name not in known:
            where = f"'{prefix}': " if prefix else ""
            raise KeyError(f"{where}{unknown_name('field', name, known)}")
        found, prefix = known[name], child(prefix, name)
        known = _fields_by_name(_message(found))
    if found is None:
        raise KeyError("the path is empty")
    return _described(found, prefix)


def all_fields(*, recursive: bool = False) -> Iterator[ModelField]:
    """Yield the fields of a configuration, with those inside messages if `recursive`."""
    yield from _fields(_fields_by_name(ModelConfig.DESCRIPTOR), "", recursive)


def _fields_by_name(descriptor: Any) -> dict[str, FieldDescriptor]:
    """Return the fields of a message in the order of the .proto file; empty for None."""
    return {} if descriptor is None else {each.name: each for each in descriptor.fields}


def _fields(
    known: Mapping[str, FieldDescriptor], prefix: str, recursive: bool
) -> Iterator[ModelField]:
    for found in known.values():
        path = child(prefix, found.name)
        yield _described(found, path)
        inner = _message(found)
        if recursive and inner is not None:
            yield from _fields(_fields_by_name(inner), path, recursive)


def _described(found: FieldDescriptor, path: str) -> ModelField:
    message = found.full_name.removesuffix(f".{found.name}").removeprefix("inference.")
    inner = _message(found)
    value = map_parts(found)[1] if is_map(found) else found
    enum = value.enum_type
    choices = tuple(enum.values_by_name) if enum is not None else ()
    name = _type_name(value)
    if is_map(found):
        name = f"map from text to {name}"
    elif found.is_repeated:
        name = f"list of {name}"
    meaning = _texts()[message][found.name]
    fields = tuple(_fields_by_name(inner))
    return ModelField(path, name, meaning, choices, fields)


def _message(found: FieldDescriptor) -> Descriptor | None:
    """Return the message of a field, or of the values of a map."""
    value = map_parts(found)[1] if is_map(found) else found
    return value.message_type


def _type_name(found: FieldDescriptor) -> str:
    if found.message_type is not None:
        return "block"
    if found.enum_type is not None:
        return "enum"
    names = {
        FieldDescriptor.CPPTYPE_STRING: "text",
        FieldDescriptor.CPPTYPE_BOOL: "true or false",
        FieldDescriptor.CPPTYPE_FLOAT: "number",
        FieldDescriptor.CPPTYPE_DOUBLE: "number",
    }
    return names.get(found.cpp_type, "integer")
