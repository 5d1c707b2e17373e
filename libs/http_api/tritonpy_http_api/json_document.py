"""Slow JSON parsing that reports errors with Triton's texts.

The fast path uses a typed decoder. If that fails, the document is parsed again here. For invalid
JSON, the error has the text and the byte offset of Triton's parser. For valid JSON, the accessors
find the wrong member. Like Triton's parser, this one accepts NaN and Infinity.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Never

from tritonpy import Internal, InvalidArgument

MAX_NESTING = 100
TOO_DEEP = f"JSON nesting depth exceeds maximum allowed limit ({MAX_NESTING})"
UINT64_MAX = (1 << 64) - 1
INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)

# Python's text of a syntax error -> Triton's. `_translate` corrects offsets that differ.
_SYNTAX = {
    "Expecting value": "Invalid value.",
    "Expecting property name enclosed in double quotes": "Missing a name for object member.",
    "Illegal trailing comma before end of object": "Missing a name for object member.",
    "Illegal trailing comma before end of array": "Invalid value.",
    "Expecting ':' delimiter": "Missing a colon after a name of object member.",
    "Unterminated string starting at": "Missing a closing quotation mark in string.",
    "Invalid control character at": "Invalid escape character in string.",
    "Invalid \\escape": "Invalid escape character in string.",
    "Invalid \\uXXXX escape": "Incorrect hex digit after \\u escape in string.",
    "Extra data": "The document root must not be followed by other values.",
}
_LITERALS = ("true", "false", "null", "NaN", "-NaN", "Infinity", "-Infinity")
_SPACES = b" \t\n\r"
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def _first_member_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _invalid_utf8(before: str, at: int) -> Internal:
    """Return the error of a document with invalid UTF-8 at byte `at`.

    `before` is the text before it.
    """
    try:
        json.loads(before + "\0")
    except json.JSONDecodeError as error:
        if error.pos != len(before) or not error.msg.startswith("Invalid control character"):
            return _translate(error, before + "\0")
    return _syntax_error("Invalid encoding in string.", at)


def parse(
    raw: bytes | memoryview,
    make_object: Callable[[list[tuple[str, Any]]], Any] = _first_member_wins,
) -> Any:
    """Return the JSON document as plain Python values. The first of duplicate members wins.

    `make_object` converts an object from the list of all its members, in order. Raises Internal, as
    Triton does, for invalid JSON or UTF-8, and InvalidArgument if the nesting exceeds Python's
    limit.
    """
    data = bytes(raw)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _invalid_utf8(data[: error.start].decode(), error.start) from None
    if not data.strip(_SPACES):
        raise _syntax_error("The document is empty.", len(data))
    try:
        document = json.loads(text, object_pairs_hook=make_object, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _translate(error, text) from None
    except RecursionError:
        raise InvalidArgument(TOO_DEEP) from None
    except OverflowError as error:
        raise _syntax_error(
            "Number too big to be stored in double.", data.find(str(error).encode())
        ) from None
    except ValueError:  # an integer with more digits than Python converts
        raise _syntax_error("Number too big to be stored in double.", 0) from None
    _refuse_lone_surrogates(text)
    return document


def _refuse_lone_surrogates(text: str) -> None:
    # Python's parser accepts a lone surrogate, which no response could contain: it has no UTF-8
    # form.
    for escape in _ESCAPE.finditer(text):
        if escape["lone"]:
            raise _syntax_error(
                "The surrogate pair in string is invalid.", len(text[: escape.start()].encode())
            )


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise OverflowError(literal)
    return value


def _translate(error: json.JSONDecodeError, text: str) -> Internal:
    at = error.pos
    if error.msg == "Expecting ',' delimiter":
        wording, at = _missing_delimiter(text, at)
    else:
        wording = _SYNTAX.get(error.msg, "Invalid value.")
    if error.msg == "Unterminated string starting at":
        at = len(text)
    elif error.msg == "Invalid \\uXXXX escape":
        at -= 1  # the start of the escape
    elif error.msg == "Expecting value":
        at += _matched_length(text[at:])
    return _syntax_error(wording, len(text[:at].encode()))


def _matched_length(text: str) -> int:
    return max(
        size
        for literal in _LITERALS
        for size in range(len(literal) + 1)
        if text.startswith(literal[:size])
    )


def _missing_delimiter(text: str, at: int) -> tuple[str, int]:
    part = {".": "fraction part", "e": "exponent", "E": "exponent"}.get(text[at : at + 1])
    if part is not None and text[at - 1].isdigit():
        return f"Miss {part} in number.", at + 1
    inside = (
        "'}' after an object member." if _in_object(text[:at]) else "']' after an array element."
    )
    return f"Missing a comma or {inside}", at


def _in_object(text: str) -> bool:
    open_brackets: list[str] = []
    for character in _STRING.sub("", text):
        if character in "[{":
            open_brackets.append(character)
        elif character in "]}":
            open_brackets.pop()
    return open_brackets[-1:] == ["{"]


def _syntax_error(wording: str, at: int) -> Internal:
    return Internal(f"failed to parse the request JSON buffer: {wording} at {at}")


def member(document: Any, name: str) -> Any:
    """Return a member of an object. Raises Internal if it is missing."""
    if not isinstance(document, dict) or name not in document:
        raise Internal(f"attempt to access non-existing object member '{name}'")
    return document[name]


def find(document: Any, name: str) -> Any:
    """Return a member, or None if `document` is no object or lacks the member."""
    return document.get(name) if isinstance(document, dict) else None


def has(document: Any, name: str) -> bool:
    """Return whether `document` is an object with that member."""
    return isinstance(document, dict) and name in document


def as_array(value: Any) -> list[Any]:
    """Return `value` if it is an array. Raises Internal otherwise."""
    return value if isinstance(value, list) else _refuse("non-array as array")


def as_string(value: Any) -> str:
    """Return `value` if it is a string. Raises Internal otherwise."""
    return value if isinstance(value, str) else _refuse("non-string as string")


def as_bool(value: Any) -> bool:
    """Return `value` if it is true or false. Raises Internal otherwise."""
    return value if isinstance(value, bool) else _refuse("non-boolean as boolean")


def as_uint(value: Any) -> int:
    """Return `value` if it is an integer from 0 to 2^64 - 1. Raises Internal otherwise."""
    if type(value) is int and 0 <= value <= UINT64_MAX:
        return value
    return _refuse("non-unsigned-integer as unsigned-integer")


def _refuse(conversion: str) -> Never:
    raise Internal(f"attempt to access JSON {conversion}")


def with_prefix(prefix: str, error: Internal) -> Internal:
    """Return the error of an accessor with a prefix, such as `Unable to parse 'shape': …`."""
    return Internal(f"{prefix}: {error.message}")
