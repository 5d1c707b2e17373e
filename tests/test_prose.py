"""Pages are written in short sentences, and their tables in short cells.

`bench/` is left out: it records measurements, whose conditions belong into one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".venv", ".test-venv", "build", "dist", "node_modules", "tests", "bench"}
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(
        part in SKIPPED or part.startswith(".") for part in path.relative_to(ROOT).parts[:-1]
    )
]
MAX_SENTENCE = 25
MAX_CELL = 20
ITEM = re.compile(r"^([-*]|\d+\.|>) ")
SENTENCE_END = re.compile(r"(?<=[.!?:;])\)?\s+")


def paragraphs(text: str) -> Iterator[str]:
    """Yield each paragraph and list item as one line, without code blocks, titles and tables."""
    lines: list[str] = []
    for line in re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S).splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "|")) or ITEM.match(stripped):
            yield " ".join(lines)
            lines = [ITEM.sub("", stripped)] if ITEM.match(stripped) else []
        elif lines or not line.startswith("    "):  # an indented block is code
            lines.append(stripped)
    yield " ".join(lines)


def words(text: str) -> int:
    """Count words; a code span and the target of a link count as one word or none."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    return sum(any(map(str.isalnum, word)) for word in plain.split())


def sentences(page: Path) -> list[str]:
    plain = (re.sub(r"`[^`]*`", "`code`", text) for text in paragraphs(page.read_text("utf-8")))
    return [sentence for text in plain for sentence in SENTENCE_END.split(text)]


def cells(page: Path) -> list[str]:
    rows = re.findall(r"^\|(.*)\|$", page.read_text("utf-8"), flags=re.M)
    return [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_and_table_cells_are_short(page: Path) -> None:
    assert [text for text in sentences(page) if words(text) > MAX_SENTENCE] == []
    assert [cell for cell in cells(page) if words(cell) > MAX_CELL] == []


def test_a_long_sentence_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "word " * (MAX_SENTENCE + 1)
    page.write_text(f"# Title\n\nShort. {long}.\n\n- {long}\n\n| {long} | b |\n", encoding="utf-8")
    assert [words(text) for text in sentences(page) if words(text) > MAX_SENTENCE] == [26, 26]
    assert [words(cell) for cell in cells(page)] == [26, 1]
