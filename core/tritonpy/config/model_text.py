"""Parsing and output of `config.pbtxt`: an `inference.ModelConfig` in protobuf's text format.

protobuf's own parser stops at the first error and does not report the positions of valid fields.
This parser reports all errors at once. For a valid text the result is the same message.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tritonpy.config import text_tree
from tritonpy.config.fields import fields_of, is_map, is_set, map_parts, oneof_conflict
from tritonpy.config.name_suggestions import unknown_name
from tritonpy.config.parsed_config import ParsedConfig
from tritonpy.config.positions import Position, Positions, child, entry
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.scalars import ScalarValue
from tritonpy.config.text_scalar import scalar_value
from tritonpy.config.text_tree import Field, MessageBlock, Scalar
from tritonpy_protos.model_config_pb2 import ModelConfig


def read_config_text(text: str | bytes) -> ParsedConfig:
    """Return the configuration in `text`, the position of each key, and all problems.

    `bytes` must be UTF-8.
    """
    config = ModelConfig()
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(errors="replace")
        place = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        return ParsedConfig(config, Positions(), [ConfigProblem("", "the text is not UTF-8", *place)])
    found, problems = text_tree.parse(decoded)
    decoder = _Decoder(problems)
    decoder.message(config, found, "")
    problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return ParsedConfig(config, decoder.positions, problems)


def config_to_text(config: ModelConfig) -> str:
    """Return `config` as the text of a `config.pbtxt`, with only the fields that are set."""
    return text_format.MessageToString(config, as_utf8=True)


class _Decoder:
    """Fills messages from a syntax tree and records every problem with its key and position."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        self.positions = Positions()
        self.counts: dict[str, int] = {}
        self.problems = problems

    def report(self, path: str, text: str, position: Position) -> None:
        self.problems.append(ConfigProblem(path, text, *position))

    def message(self, message: Message, found: list[Field], path: str) -> None:
        for field in found:
            known = fields_of(message).get(field.name)
            key = child(path, field.name)
            if known is None:
                text = unknown_name("field", field.name, fields_of(message))
                self.report(key, text, field.position)
            else:
                self.field(message, known, field, key)

    def field(self, message: Message, known: FieldDescriptor, field: Field, path: str) -> None:
        if not field.colon and known.message_type is None:
            self.report(path, f"expected ':' after '{field.name}'", field.position)
        elif conflict := oneof_conflict(message, known):
            self.report(path, conflict, field.position)
        elif known.is_repeated:
            self.positions.setdefault(path, field.position)
            self.repeated(message, known, field, path)
        elif field.listed:
            self.report(path, "takes one value, not a list", field.position)
        elif is_set(message, known):
            self.report(path, "is set twice", field.position)
        else:
            self.positions[path] = field.position
            self.single(message, known, field.values[0], path)

    def single(self, message: Message, known: FieldDescriptor, value: Scalar | MessageBlock, path: str) -> None:
        if known.message_type is None:
            scalar = self.scalar(known, value, path)
            if scalar is not None:
                setattr(message, known.name, scalar)
        elif (block := self.block(known, value, path)) is not None:
            inner: Message = getattr(message, known.name)
            inner.SetInParent()
            self.message(inner, block.fields, path)

    def repeated(self, message: Message, known: FieldDescriptor, field: Field, path: str) -> None:
        container = getattr(message, known.name)
        for value in field.values:
            place = field.position if isinstance(value, MessageBlock) and not field.listed else value.position
            if is_map(known):
                self.map_entry(container, known, value, path, place)
                continue
            key = f"{path}[{self.next_index(path)}]"
            self.positions[key] = place
            if known.message_type is None:
                scalar = self.scalar(known, value, key)
                if scalar is not None:
                    container.append(scalar)
            elif (block := self.block(known, value, key)) is not None:
                self.message(container.add(), block.fields, key)

    def next_index(self, path: str) -> int:
        # Counted here, since an invalid element is not in the message, yet later elements keep
        # their keys.
        self.counts[path] = self.counts.get(path, -1) + 1
        return self.counts[path]

    def map_entry(
        self, container: Any, known: FieldDescriptor, value: Scalar | MessageBlock, path: str, place: Position
    ) -> None:
        block = self.block(known, value, path)
        if block is None:
            return
        made = container.GetEntryClass()()
        self.message(made, [field for field in block.fields if field.name == "key"], path)
        self.positions.pop(child(path, "key"), None)
        key = entry(path, made.key)
        for field in block.fields:
            if field.name == "value":
                self.field(made, map_parts(known)[1], field, key)
            elif field.name != "key":
                self.message(made, [field], key)
        self.positions[key] = place
        if isinstance(made.value, Message):
            container[made.key].CopyFrom(made.value)
        else:
            container[made.key] = made.value

    def scalar(self, known: FieldDescriptor, value: Scalar | MessageBlock, path: str) -> ScalarValue | None:
        if isinstance(value, MessageBlock):
            self.report(path, "expected a value, got a block in braces", value.position)
            return None
        try:
            return scalar_value(known, value)
        except ValueError as error:
            self.report(path, str(error), value.position)
            return None

    def block(self, known: FieldDescriptor, value: Scalar | MessageBlock, path: str) -> MessageBlock | None:
        if isinstance(value, MessageBlock):
            return value
        self.report(path, f"expected a block: {known.name} {{ … }}, got {value.text}", value.position)
        return None
