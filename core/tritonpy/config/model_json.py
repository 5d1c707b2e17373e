"""Parsing of model configurations in JSON, as in the `config` parameter of load requests.

Field names are those of the .proto file or their lowerCamelCase form. 64-bit integers are numbers
or strings. Invalid JSON is parsed again in protobuf's dialect, which allows unquoted keys and more.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tritonpy.config.fields import fields_of, is_map, map_parts, oneof_conflict
from tritonpy.config.json_scalar import excerpt, scalar_value
from tritonpy.config.lenient_json import parse_lenient_json
from tritonpy.config.name_suggestions import unknown_name
from tritonpy.config.parsed_config import ParsedConfig
from tritonpy.config.positions import Positions, child, entry
from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig


def read_config_json(text: str | bytes) -> ParsedConfig:
    """Return the configuration in `text` and all problems; only a syntax error has a position."""
    config = ModelConfig()
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        try:
            document = parse_lenient_json(text if isinstance(text, str) else text.decode())
        except ValueError:
            return ParsedConfig(config, Positions(), [ConfigProblem("", error.msg, error.lineno, error.colno)])
    except RecursionError:
        return ParsedConfig(config, Positions(), [ConfigProblem("", "the JSON is nested too deeply")])
    except ValueError as error:
        # not UTF-8, a number with thousands of digits, or a constant such as NaN
        return ParsedConfig(config, Positions(), [ConfigProblem("", f"not JSON: {error}")])
    reader = _Reader()
    reader.message(config, document, "")
    return ParsedConfig(config, Positions(), reader.problems)


def config_from_json(text: str | bytes, source: str) -> ModelConfig:
    """Return the configuration in `text`. Raises InvalidConfig with `source` and every problem."""
    return read_config_json(text).checked(source)


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is written as a string: "{name}"')


class _Reader:
    """Fills messages from decoded JSON and records every problem with its key."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []

    def report(self, path: str, text: str) -> None:
        self.problems.append(ConfigProblem(path, text))

    def message(self, message: Message, document: object, path: str) -> None:
        if not isinstance(document, dict):
            self.report(path, f"expected an object, got {excerpt(document)}")
            return
        names = fields_of(message)
        known = {field.camelcase_name: field for field in names.values()} | names
        for name, value in document.items():
            field = known.get(name)
            if field is None:
                self.report(child(path, name), unknown_name("field", name, names))
            elif value is not None:  # null means not set
                self.field(message, field, value, child(path, field.name))

    def field(self, message: Message, field: FieldDescriptor, value: object, path: str) -> None:
        if conflict := oneof_conflict(message, field):
            self.report(path, conflict)
        elif is_map(field):
            self.map(getattr(message, field.name), field, value, path)
        elif field.is_repeated:
            self.repeated(getattr(message, field.name), field, value, path)
        elif field.message_type is not None:
            inner: Message = getattr(message, field.name)
            inner.SetInParent()
            self.message(inner, value, path)
        else:
            for scalar in self.scalar(field, value, path):
                setattr(message, field.name, scalar)

    def repeated(self, container: Any, field: FieldDescriptor, value: object, path: str) -> None:
        if not isinstance(value, list):
            self.report(path, f"expected a list, got {excerpt(value)}")
            return
        for index, item in enumerate(value):
            if field.message_type is not None:
                self.message(container.add(), item, f"{path}[{index}]")
            else:
                container.extend(self.scalar(field, item, f"{path}[{index}]"))

    def map(self, container: Any, field: FieldDescriptor, value: object, path: str) -> None:
        if not isinstance(value, dict):
            self.report(path, f"expected an object, got {excerpt(value)}")
            return
        key_field, value_field = map_parts(field)
        for name, item in value.items():
            for key in self.scalar(key_field, name, entry(path, name)):
                key_path = entry(path, key)
                if value_field.message_type is not None:
                    self.message(container[key], item, key_path)
                else:
                    for scalar in self.scalar(value_field, item, key_path):
                        container[key] = scalar

    def scalar(self, field: FieldDescriptor, value: object, path: str) -> list[Any]:
        """Return the value in a list, or an empty list after recording the problem."""
        try:
            return [scalar_value(field, value)]
        except ValueError as error:
            self.report(path, str(error))
            return []
