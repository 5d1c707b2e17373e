"""The table of models, versions and states that the log shows after loading."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tritonpy.api.engine import ModelIndex

_FRAME = 13  # "| " in front, " | " between the four columns, " |" behind
_NARROWEST = 24  # a reason gets so much in any case

HEADER = ("Model", "Version", "Status", "Reason")


def models_of(index: Sequence[ModelIndex]) -> list[dict[str, str]]:
    """Return the index as plain data, for logs that machines read."""
    return [{"name": line.name, "version": line.version, "state": line.state, "reason": line.reason} for line in index]


def table_of(index: Sequence[ModelIndex], columns: int = 0) -> str:
    """Return the index as a table; a reason of several lines keeps its lines.

    Reasons are wrapped, so that the table is at most `columns` wide (0: as wide as they are).
    """
    rows = [HEADER, *((line.name, line.version or "-", line.state or "not loaded", line.reason) for line in index)]
    room = 0
    if columns:
        others = [max(len(row[column]) for row in rows) for column in range(len(HEADER) - 1)]
        room = max(columns - sum(others) - _FRAME, _NARROWEST)
    cells = [[*[[cell] for cell in row[:-1]], _wrapped(row[-1], room)] for row in rows]
    widths = [max(len(text) for row in cells for text in row[column]) for column in range(len(HEADER))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [rule]
    for number, row in enumerate(cells):
        for line in range(max(map(len, row))):
            texts = [cell[line] if line < len(cell) else "" for cell in row]
            lines.append("| " + " | ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)) + " |")
        if number == 0:
            lines.append(rule)
    return "\n".join([*lines, rule])


def _wrapped(text: str, room: int) -> list[str]:
    """Return the lines of `text`, none longer than `room` where that is not 0; what continues a line is indented like it."""
    lines = text.splitlines() or [""]
    if not room:
        return lines
    wrapped: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())][: room // 2]
        wrapped += textwrap.wrap(line, room, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return wrapped
