"""The table of models, versions and states that the log shows after loading."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.engine import ModelIndex

HEADER = ("Model", "Version", "Status", "Reason")


def table_of(index: Sequence[ModelIndex]) -> str:
    """Return the index as a table; a reason of several lines keeps its lines."""
    rows = [HEADER, *((line.name, line.version or "-", line.state or "not loaded", line.reason) for line in index)]
    cells = [[cell.splitlines() or [""] for cell in row] for row in rows]
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
