"""A parser for the JSON dialect that protobuf accepts, for configurations written for Triton.

It accepts unquoted keys, single quotes, trailing commas, line breaks in strings and additional
escape sequences.
"""

from __future__ import annotations

import re
from typing import Any

MAX_CHARACTERS = 1 << 20
MAX_NESTING = 100  # protobuf's limit

_SPACE = re.compile(r"[ \t\n\r\v\f]*")
_KEY = re.compile(r"(?!(?:true|false|null)(?![A-Za-z0-9_$]))[A-Za-z_$][A-Za-z0-9_$]*")
_LITERAL = re.compile(r"(?:true|false|null)(?![A-Za-z0-9_$])")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?(?![A-Za-z0-9_$.+-])")
_STRINGS = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", re.DOTALL) for quote in "\"'"}
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
