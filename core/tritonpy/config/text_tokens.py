"""A tokenizer for protobuf's text format, with positions.

See https://protobuf.dev/reference/protobuf/textformat-spec.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from tritonpy.config.positions import Position


class TokenKind(enum.Enum):
    """The kinds of tokens."""

    WORD = enum.auto()
    """A field name, an enum value, `true`, `inf`."""
    NUMBER = enum.auto()
    STRING = enum.auto()
    """One quoted piece, including its quotes."""
    MARK = enum.auto()
    """One of `{}<>[]:,;`."""
    BAD = enum.auto()
    """A string without its closing quote, or an invalid character."""
    END = enum.auto()


class Token(NamedTuple):
    """The text of a token and its start position."""

    kind: TokenKind
    text: str
    position: Position


_TOKEN = re.compile(
    r"""(?P<SKIP>[^\S\n]+|\#[^\n]*)
      | (?P<NEWLINE>\n)
      | (?P<WORD>[A-Za-z_]\w*)
      | (?P<NUMBER>[+-]?\.?[0-9][\w.]*(?:(?<=[eE])[+-][0-9][\w.]*)?|[+-][A-Za-z]\w*)
      | (?P<STRING>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
      | (?P<MARK>[{}<>\[\]:,;])
      | (?P<BAD>["'][^\n]*|.)""",
    re.VERBOSE | re.ASCII,
)


_KINDS = {kind.name: kind for kind in TokenKind}  # `TokenKind[name]` takes ten times as long as a lookup here


def tokens(text: str) -> list[Token]:
    """Return all tokens of `text` and a final END token; white space and comments are omitted."""
    found: list[Token] = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "NEWLINE":
            line, line_start = line + 1, match.end()
        elif kind is not None and kind != "SKIP":
            position = Position(line, match.start() - line_start + 1)
            found.append(Token(_KINDS[kind], match.group(), position))
    found.append(Token(TokenKind.END, "", Position(line, len(text) - line_start + 1)))
    return found
