"""The list of models, versions and states that the log shows after loading."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tritonpy.api.engine import ModelIndex

_FRAME = 13  # "| " before, " | " between the four columns, " |" after
_NARROWEST = 24  # minimum width of a reason

HEADER = ("Model", "Version", "Status", "Reason")


def index_as_dicts(index: Sequence[ModelIndex]) -> list[dict[str, str]]:
    """Return the index as plain data, for structured logs."""
    return [
        {"name": line.name, "version": line.version, "state": line.state, "reason": line.reason}
        for line in index
    ]


def index_as_table(index: Sequence[ModelIndex], columns: int = 0) -> str:
    """Return the index as a text table; a reason with several lines keeps them.

    Reasons are wrapped so that the table is at most `columns` wide; 0 means no limit.
    """
    rows = [
        HEADER,
        *(
            (line.name, line.version or "-", line.state or "not loaded", line.reason)
            for line in index
        ),
    ]
    width = 0
    if columns:
        others = [max(len(row[column]) for row in rows) for column in range(len(HEADER) - 1)]
        width = max(columns - sum(others) - _FRAME, _NARROWEST)
    cells = [[*[[cell] for cell in row[:-1]], _wrapped(row[-1], width)] for row in rows]
    widths = [
        max(len(text) for row in cells for text in row[column]) for column in range(len(HEADER))
    ]
    rule = "+" + "+".join("-" * (column_width + 2) for column_width in widths) + "+"
    lines = [rule]
    for number, row in enumerate(cells):
        for line in range(max(map(len, row))):
            texts = [cell[line] if line < len(cell) else "" for cell in row]
            lines.append(
                "| "
                + " | ".join(
                    text.ljust(column_width)
                    for text, column_width in zip(texts, widths, strict=True)
                )
                + " |"
            )
        if number == 0:
            lines.append(rule)
    return "\n".join([*lines, rule])


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of `text`, wrapped to `width` if that is not 0.

    Continuation lines are indented like the first one.
    """
    lines = text.splitlines() or [""]
    if not width:
        return lines
    wrapped: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())][: width // 2]
        wrapped += textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [
            ""
        ]
    return wrapped
