"""Parsing and output of `config.pbtxt`: an `inference.ModelConfig` in protobuf's text format.

protobuf's own parser stops at the first error and does not report the positions of valid fields.
This parser reports all errors at once. For a valid text the result is the same message.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tritonpy_config import text_tree
from tritonpy_config.fields import (
    FLOATS,
    INTEGER_RANGES,
    ScalarValue,
    enum_numbers,
    fields_of,
    integer_in_range,
    is_map,
    is_set,
    map_parts,
    oneof_conflict,
)
from tritonpy_config.problem import (
    ConfigProblem,
    ParsedConfig,
    Position,
    Positions,
    child,
    entry,
    unknown_name,
)
from tritonpy_config.text_tree import Field, MessageBlock, Scalar, TokenKind
from tritonpy_protos.model_config_pb2 import ModelConfig

_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?", re.ASCII
)
_WORD_FLOAT = re.compile(r"[+-]?(?:inf|infinity|nan)f?", re.IGNORECASE | re.ASCII)
_BOOLS = {
    "true": True,
    "True": True,
    "t": True,
    "1": True,
    "false": False,
    "False": False,
    "f": False,
    "0": False,
}
_ESCAPE = re.compile(
    rb"\\(?:[xX](?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    rb"|(?P<letter>[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*)|$)",
    re.DOTALL,
)
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


def scalar_value(field: FieldDescriptor, scalar: Scalar) -> ScalarValue:
    """Return the value of `field` for `scalar`; raises ValueError with the expected type."""
    if field.cpp_type in INTEGER_RANGES:
        return integer_in_range(field, _integer(scalar))
    if field.cpp_type in FLOATS:
        return _float(scalar)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool(scalar)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field, scalar)
    return _string(scalar)


def _integer(scalar: Scalar) -> int:
    match = _INTEGER.fullmatch(scalar.text)
    if match is None or len(scalar.text) > 40:
        raise ValueError(f"expected an integer, got {_excerpt(scalar)}")
    sign, hexadecimal, octal, decimal = match.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    return -value if sign == "-" else value


def _float(scalar: Scalar) -> float:
    if _FLOAT.fullmatch(scalar.text):
        return float(scalar.text.rstrip("fF"))
    if scalar.kind is not TokenKind.STRING and _WORD_FLOAT.fullmatch(scalar.text):
        word = scalar.text.lower()
        return float(word if word.endswith("inf") else word.removesuffix("f"))
    raise ValueError(f"expected a number, got {_excerpt(scalar)}")


def _bool(scalar: Scalar) -> bool:
    if scalar.text not in _BOOLS:
        raise ValueError(f"expected true or false, got {_excerpt(scalar)}")
    return _BOOLS[scalar.text]


def _enum(field: FieldDescriptor, scalar: Scalar) -> int:
    names = enum_numbers(field)
    if scalar.kind is TokenKind.STRING:
        raise ValueError(
            f"expected one of {', '.join(names)} without quotes, got {_excerpt(scalar)}"
        )
    if scalar.kind is TokenKind.NUMBER:
        number = _integer(scalar)
        if number not in names.values():
            raise ValueError(
                f"there is no value with number {number}; valid here: {', '.join(names)}"
            )
        return number
    if scalar.text not in names:
        raise ValueError(unknown_name("value", scalar.text, names))
    return names[scalar.text]


def _string(scalar: Scalar) -> str:
    if scalar.kind is not TokenKind.STRING:
        raise ValueError(f'expected a string in quotes, got {scalar.text}: write "{scalar.text}"')
    raw = b"".join(_unescaped(piece[1:-1].encode()) for piece in scalar.pieces)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError(
            f"the string is not UTF-8 after its escapes are decoded: {_excerpt(scalar)}"
        ) from None


def _unescaped(piece: bytes) -> bytes:
    return _ESCAPE.sub(_escaped_bytes, piece)


def _escaped_bytes(match: re.Match[bytes]) -> bytes:
    if digits := match["hex"]:
        return bytes([int(digits, 16)])
    if (digits := match["octal"]) and int(digits, 8) < 256:
        return bytes([int(digits, 8)])
    if digits := match["short"] or match["long"]:
        code = int(digits, 16)
        if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code).encode()
    letter = _LETTERS.get(match["letter"] or b"")
    if letter is None:
        raise ValueError(
            f"{match[0].decode()} is not an escape sequence; write \\\\ for a backslash"
        )
    return letter


def _excerpt(scalar: Scalar) -> str:
    text = scalar.text if len(scalar.text) <= 40 else f"{scalar.text[:40]}…"
    return text if scalar.kind is TokenKind.STRING else f"'{text}'"


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
        return ParsedConfig(
            config, Positions(), [ConfigProblem("", "the text is not UTF-8", *place)]
        )
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

    def single(
        self, message: Message, known: FieldDescriptor, value: Scalar | MessageBlock, path: str
    ) -> None:
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
            place = (
                field.position
                if isinstance(value, MessageBlock) and not field.listed
                else value.position
            )
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
        self,
        container: Any,
        known: FieldDescriptor,
        value: Scalar | MessageBlock,
        path: str,
        place: Position,
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

    def scalar(
        self, known: FieldDescriptor, value: Scalar | MessageBlock, path: str
    ) -> ScalarValue | None:
        if isinstance(value, MessageBlock):
            self.report(path, "expected a value, got a block in braces", value.position)
            return None
        try:
            return scalar_value(known, value)
        except ValueError as error:
            self.report(path, str(error), value.position)
            return None

    def block(
        self, known: FieldDescriptor, value: Scalar | MessageBlock, path: str
    ) -> MessageBlock | None:
        if isinstance(value, MessageBlock):
            return value
        self.report(
            path, f"expected a block: {known.name} {{ … }}, got {value.text}", value.position
        )
        return None
