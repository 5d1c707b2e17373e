"""A parser from protobuf's text format to a syntax tree, independent of the message type."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple

from tritonpy_config.problem import ConfigProblem, Position

# A model configuration is at most 7 levels deep. The limit protects the stack from invalid input.
MAX_DEPTH = 50

CLOSER = {"{": "}", "<": ">", "[": "]"}


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


_KINDS = {
    kind.name: kind for kind in TokenKind
}  # `TokenKind[name]` takes ten times as long as a lookup here


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


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word, a number, or the quoted pieces of one string."""

    kind: TokenKind
    pieces: tuple[str, ...]
    position: Position

    @property
    def text(self) -> str:
        """The source text."""
        return " ".join(self.pieces)


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """The fields between braces."""

    fields: list[Field]
    position: Position


@dataclass(frozen=True, slots=True)
class Field:
    """`name: value`, `name { … }` or `name: [value, …]`."""

    name: str
    position: Position
    colon: bool
    listed: bool
    values: list[Scalar | MessageBlock]


def parse(text: str) -> tuple[list[Field], list[ConfigProblem]]:
    """Return the top-level fields and every syntax error; the tree omits invalid fields."""
    parser = _Parser(tokens(text))
    found: list[Field] = []
    parser.fields(found, "")
    return found, parser.problems


class _SyntaxProblem(Exception):
    def __init__(self, text: str, token: Token) -> None:
        super().__init__(text)
        self.token = token


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.index = 0
        self.token = found[0]
        self.problems: list[ConfigProblem] = []
        self.open: list[str] = []

    def take(self) -> Token:
        token = self.token
        if token.kind is not TokenKind.END:
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def take_mark(self, marks: str) -> Token | None:
        token = self.token
        if token.kind is TokenKind.MARK and token.text in marks:
            self.index += 1
            self.token = self.tokens[self.index]
            return token
        return None

    def report(self, text: str, token: Token) -> None:
        self.problems.append(ConfigProblem("", text, *token.position))

    def fields(self, found: list[Field], closer: str) -> bool:
        """Read fields into `found` up to the closing mark or the end.

        Return whether the mark was found; it is consumed.
        """
        while self.token.kind is not TokenKind.END:
            if closer and self.take_mark(closer):
                return True
            if self.closes_an_outer_block():
                return False
            if stray := self.take_mark("}>]"):
                self.report(f"unexpected '{stray.text}'", stray)
            else:
                self.field_or_problem(found)
        return not closer

    def at_a_field(self) -> bool:
        """Return whether a field starts where a value should: the previous field is incomplete."""
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        return (
            self.token.kind is TokenKind.WORD
            and following.kind is TokenKind.MARK
            and following.text in ":{<["
        )

    def closes_an_outer_block(self) -> bool:
        return self.token.kind is TokenKind.MARK and self.token.text in self.open

    def field_or_problem(self, found: list[Field]) -> None:
        start, depth = self.index, len(self.open)
        try:
            found.append(self.field())
        except _SyntaxProblem as problem:
            self.report(str(problem), problem.token)
            del self.open[depth:]
            self.recover(start)

    def field(self) -> Field:
        name = self.token
        if name.kind is not TokenKind.WORD:
            raise _SyntaxProblem(f"expected the name of a field, got {_excerpt(name)}", name)
        self.take()
        colon = self.take_mark(":") is not None
        listed = self.take_mark("[")
        if listed:
            values = self.listed_values(listed)
        elif colon or self.token.text in CLOSER:
            values = [self.value(name)]
        else:
            raise _SyntaxProblem(
                f"expected ':' or '{{' after '{name.text}', got {_excerpt(self.token)}", self.token
            )
        self.take_mark(",;")
        return Field(name.text, name.position, colon, listed is not None, values)

    def listed_values(self, opening: Token) -> list[Scalar | MessageBlock]:
        values: list[Scalar | MessageBlock] = []
        if self.take_mark("]"):
            return values
        self.open.append("]")
        while True:
            self.listed_value(values)
            if self.take_mark("]"):
                break
            if self.take_mark(","):
                continue
            if self.token.kind is TokenKind.END or self.token.text in "}>:;" or self.at_a_field():
                self.report("'[' is never closed", opening)
                break
            self.report(f"expected ',' or ']' before {_excerpt(self.token)}", self.token)
        self.open.pop()
        return values

    def listed_value(self, values: list[Scalar | MessageBlock]) -> None:
        try:
            values.append(self.value(self.tokens[self.index - 1]))
        except _SyntaxProblem as problem:
            self.report(str(problem), problem.token)
            if problem.token.text not in {",", "}", ">", "]"}:
                self.take()

    def value(self, before: Token) -> Scalar | MessageBlock:
        token = self.token
        if opening := self.take_mark("{<"):
            return self.block(opening)
        if (
            token.kind not in {TokenKind.WORD, TokenKind.NUMBER, TokenKind.STRING}
            or self.at_a_field()
        ):
            raise _SyntaxProblem(
                f"expected a value after '{before.text}', got {_excerpt(token)}", token
            )
        pieces = [self.take().text]
        while token.kind is TokenKind.STRING and self.token.kind is TokenKind.STRING:
            pieces.append(self.take().text)
        return Scalar(token.kind, tuple(pieces), token.position)

    def block(self, opening: Token) -> MessageBlock:
        if len(self.open) >= MAX_DEPTH:
            self.index = len(self.tokens) - 1
            self.token = self.tokens[self.index]
            raise _SyntaxProblem(f"nested deeper than {MAX_DEPTH} levels", opening)
        closer = CLOSER[opening.text]
        self.open.append(closer)
        found: list[Field] = []
        closed = self.fields(found, closer)
        self.open.pop()
        if not closed:
            self.report(f"'{opening.text}' is never closed", opening)
        return MessageBlock(found, opening.position)

    def recover(self, start: int) -> None:
        """Skip the rest of the line and its blocks; stop at a mark that closes an outer block."""
        depth = int(self.index == start and self.take().text in CLOSER)
        line = self.tokens[self.index - 1].position.line
        while self.token.kind is not TokenKind.END and (depth or self.token.position.line == line):
            text = self.token.text if self.token.kind is TokenKind.MARK else ""
            if not depth and text and text in "}>]":
                return
            depth += (text in CLOSER) - (text in CLOSER.values())
            self.take()


def _excerpt(token: Token) -> str:
    if token.kind is TokenKind.END:
        return "the end of the text"
    if token.kind is TokenKind.BAD and len(token.text) > 1:
        return f"a string without its closing quote: {token.text[:40]}"
    return token.text[:40] if token.kind is TokenKind.STRING else f"'{token.text[:40]}'"
