"""Conversion of scalars in the text format to field values."""

from __future__ import annotations

import re

from google.protobuf.descriptor import FieldDescriptor

from tritonpy.config.name_suggestions import unknown_name
from tritonpy.config.scalars import FLOATS, INTEGER_RANGES, ScalarValue, enum_numbers, integer_in_range
from tritonpy.config.text_tokens import TokenKind
from tritonpy.config.text_tree import Scalar

_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?", re.ASCII)
_WORD_FLOAT = re.compile(r"[+-]?(?:inf|infinity|nan)f?", re.IGNORECASE | re.ASCII)
_BOOLS = {"true": True, "True": True, "t": True, "1": True, "false": False, "False": False, "f": False, "0": False}
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
        raise ValueError(f"expected one of {', '.join(names)} without quotes, got {_excerpt(scalar)}")
    if scalar.kind is TokenKind.NUMBER:
        number = _integer(scalar)
        if number not in names.values():
            raise ValueError(f"there is no value with number {number}; valid here: {', '.join(names)}")
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
        raise ValueError(f"the string is not UTF-8 after its escapes are decoded: {_excerpt(scalar)}") from None


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
        raise ValueError(f"{match[0].decode()} is not an escape sequence; write \\\\ for a backslash")
    return letter


def _excerpt(scalar: Scalar) -> str:
    text = scalar.text if len(scalar.text) <= 40 else f"{scalar.text[:40]}…"
    return text if scalar.kind is TokenKind.STRING else f"'{text}'"
