"""Parsing of model configurations in JSON, as in the `config` parameter of load requests.

Field names are those of the .proto file or their lowerCamelCase form. 64-bit integers are numbers
or strings. Invalid JSON is parsed again in protobuf's dialect, which allows unquoted keys and more.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tritonpy_config.fields import (
    FLOATS,
    INTEGER_RANGES,
    ScalarValue,
    enum_numbers,
    fields_of,
    integer_in_range,
    is_map,
    map_parts,
    oneof_conflict,
)
from tritonpy_config.problem import (
    ConfigProblem,
    ParsedConfig,
    Positions,
    child,
    entry,
    unknown_name,
)
from tritonpy_protos.model_config_pb2 import ModelConfig

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WORD_BOOLS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(
    ("false", "f", "no", "n", "0"), False
)
_WORD_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


MAX_CHARACTERS = 1 << 20
MAX_NESTING = 100  # protobuf's limit

_SPACE = re.compile(r"[ \t\n\r\v\f]*")
_KEY = re.compile(r"(?!(?:true|false|null)(?![A-Za-z0-9_$]))[A-Za-z_$][A-Za-z0-9_$]*")
_LITERAL = re.compile(r"(?:true|false|null)(?![A-Za-z0-9_$])")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?(?![A-Za-z0-9_$.+-])")
_STRINGS = {
    quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", re.DOTALL) for quote in "\"'"
}
_ESCAPE = re.compile(r"\\(u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)
_LITERALS = {"true": True, "false": False, "null": None}
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_lenient_json(text: str) -> Any:
    """Return the document in `text` as Python values.

    Raises ValueError if protobuf would reject it. The time is proportional to the length. Texts
    longer than `MAX_CHARACTERS` or nested deeper than `MAX_NESTING` are rejected.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError("the text is too long")
    parser = _Parser(text)
    value = parser.value(0)
    parser.skip_space()
    if parser.at != len(text):
        raise ValueError("something follows the document")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip_space(self) -> str:
        """Skip white space; return the next character, or an empty text at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError(f"unexpected text at {self.at}")
        self.at = found.end()
        return found

    def value(self, depth: int) -> Any:
        first = self.skip_space()
        if first in {"{", "["} and first:
            if depth == MAX_NESTING:
                raise ValueError("nested too deeply")
            self.at += 1
            return self.object(depth + 1) if first == "{" else self.array(depth + 1)
        if first in _STRINGS:
            return self.string(first)
        if first in {"t", "f", "n"} and first:
            return _LITERALS[self.take(_LITERAL)[0]]
        number = self.take(_NUMBER)
        return float(number[0]) if number[1] or number[2] else int(number[0])

    def object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (first := self.skip_space()) != "}":
            key = self.string(first) if first in _STRINGS else self.take(_KEY)[0]
            if self.skip_space() != ":":
                raise ValueError(f"a colon is missing at {self.at}")
            self.at += 1
            found[key] = self.value(depth)
            if self.is_last("}"):
                break
        self.at += 1
        return found

    def array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while self.skip_space() != "]":
            found.append(self.value(depth))
            if self.is_last("]"):
                break
        self.at += 1
        return found

    def is_last(self, end: str) -> bool:
        """Skip the comma after an element; return True if the end follows instead."""
        following = self.skip_space()
        if following == ",":
            self.at += 1
            return False
        if following != end:
            raise ValueError(f"a comma is missing at {self.at}")
        return True

    def string(self, quote: str) -> str:
        return _ESCAPE.sub(_unescaped, self.take(_STRINGS[quote])[1])


def _unescaped(escape: re.Match[str]) -> str:
    text = escape[1]
    if not text.startswith("u"):
        return _ESCAPED.get(text, text)
    if text == "u":
        raise ValueError("four digits are missing after \\u")
    units = bytes.fromhex("".join(part[:4] for part in text.replace("\\", "").split("u")[1:]))
    # half of a surrogate pair raises UnicodeDecodeError, a ValueError
    return units.decode("utf-16-be")


def scalar_value(field: FieldDescriptor, value: object) -> ScalarValue:
    """Return the value of `field` for the JSON `value`.

    Raises ValueError with the expected type.
    """
    if field.cpp_type in INTEGER_RANGES:
        return integer_in_range(field, _integer(value))
    if field.cpp_type in FLOATS:
        return _float(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field, value)
    return _string(value)


def excerpt(value: object) -> str:
    """Return `value` as JSON, truncated to 40 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _integer(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"expected an integer, got {excerpt(value)}")


def _float(value: object) -> float:
    if isinstance(value, str) and value in _WORD_FLOATS:
        return _WORD_FLOATS[value]
    if isinstance(value, str) and _FLOAT.fullmatch(value):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise ValueError(f"expected a number, got {excerpt(value)}")


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _WORD_BOOLS:
        return _WORD_BOOLS[value.lower()]
    raise ValueError(f"expected true or false, got {excerpt(value)}")


def _enum(field: FieldDescriptor, value: object) -> int:
    names = enum_numbers(field)
    if isinstance(value, str):
        found = names.get(value, names.get(value.upper().replace("-", "_")))
        if found is not None:
            return found
        if not _INTEGER.fullmatch(value):
            raise ValueError(unknown_name("value", value, names))
    number = value if isinstance(value, float) else _integer(value)
    if number not in names.values():
        raise ValueError(f"expected one of {', '.join(names)}, got {excerpt(value)}")
    return int(number)


def _string(value: object) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("the string contains half of a surrogate pair") from None
        return value
    raise ValueError(f"expected a string, got {excerpt(value)}")


def read_config_json(text: str | bytes) -> ParsedConfig:
    """Return the configuration in `text` and all problems; only a syntax error has a position."""
    config = ModelConfig()
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        try:
            document = parse_lenient_json(text if isinstance(text, str) else text.decode())
        except ValueError:
            return ParsedConfig(
                config, Positions(), [ConfigProblem("", error.msg, error.lineno, error.colno)]
            )
    except RecursionError:
        return ParsedConfig(
            config, Positions(), [ConfigProblem("", "the JSON is nested too deeply")]
        )
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
