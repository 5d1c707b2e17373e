"""Edits of a configuration's text at the positions of its keys; comments and layout stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonpy_checks.lint import Edit
from tritonpy_config.problem import Position
from tritonpy_config.text_tree import CLOSER, Token, TokenKind, tokens

_OPENERS = frozenset(CLOSER)
_CLOSERS = frozenset(CLOSER.values())


def offset(text: str, position: Position) -> int:
    """Return the index in `text` of a position."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return `text` after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def rename_field(file: Path, text: str, position: Position, name: str) -> Edit:
    """Return the edit that gives the field at `position` another name."""
    found = tokens(text)
    token = found[_index(found, position)]
    start = offset(text, position)
    return Edit(file, start, start + len(token.text), name)


def replace_value(file: Path, text: str, position: Position, value: str) -> Edit:
    """Return the edit that replaces a value.

    `position` is that of a value in a list, or of a field, whose value is then replaced.
    """
    found = tokens(text)
    index = _index(found, position)
    if found[index].kind is TokenKind.WORD and found[index + 1].text in {":", "{", "<", "["}:
        index += 1
        if found[index].text == ":":
            index += 1
    end = _value_end(found, index)
    return Edit(file, offset(text, found[index].position), _end(text, found[end]), value)


def remove_field(file: Path, text: str, position: Position) -> Edit:
    """Return the edit that removes the field, or the value in a list, at `position`.

    A line that holds nothing else is removed with its comment.
    """
    found = tokens(text)
    index = last = _index(found, position)
    if found[index].kind is TokenKind.WORD and found[index + 1].text in {":", "{", "<", "["}:
        last = index + 1
        if found[last].text == ":":
            last += 1
    last = _value_end(found, last)
    start = offset(text, position)
    end = _end(text, found[last])
    if found[last + 1].text in {",", ";"}:
        end = _end(text, found[last + 1])
        while text[end : end + 1] == " ":
            end += 1
    elif index and found[index - 1].text == ",":
        start = offset(text, found[index - 1].position)
    elif index > 1 and found[index - 1].text == ":":  # `dims: 1`, one value of a repeated field
        start = offset(text, found[index - 2].position)
    before = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    after = len(text) if after < 0 else after
    rest = text[end:after].strip()
    if not text[before:start].strip() and (not rest or rest.startswith("#")):
        start, end = before, min(after + 1, len(text))
    return Edit(file, start, end, "")


def insert_field(file: Path, text: str, position: Position, field: str) -> Edit:
    """Return the edit that inserts a field at the start of the message at `position`.

    `position` is that of a message in a list, or of a field whose value is a message.
    """
    found = tokens(text)
    index = _index(found, position)
    while found[index].text not in {"{", "<"}:
        index += 1
    at = _end(text, found[index])
    return Edit(file, at, at, f" {field}")


def _index(found: Sequence[Token], position: Position) -> int:
    return next(index for index, token in enumerate(found) if token.position == position)


def _end(text: str, token: Token) -> int:
    return offset(text, token.position) + len(token.text)


def _value_end(found: Sequence[Token], index: int) -> int:
    """Return the index of the last token of the value that starts at `index`."""
    if found[index].text in _OPENERS:
        depth = 0
        for number in range(index, len(found)):
            if found[number].kind is TokenKind.MARK:
                depth += (found[number].text in _OPENERS) - (found[number].text in _CLOSERS)
            if depth == 0:
                return number
        return len(found) - 2
    while found[index].kind is TokenKind.STRING and found[index + 1].kind is TokenKind.STRING:
        index += 1
    return index
