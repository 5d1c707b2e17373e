"""Answers of unknown length for clients of HTTP/1.0, which know no chunks: the end of the connection is the end of the body."""

from __future__ import annotations

from typing import Any


class _Endless(int):
    """The number of bytes that are still to come, as uvicorn counts them, where nobody knows it: never too few, never too many."""

    def __lt__(self, _other: object) -> bool:
        return False

    def __sub__(self, _other: object) -> _Endless:
        return self

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    __hash__ = int.__hash__


def answer_without_chunks(cycle: Any) -> None:
    """Let a cycle of uvicorn's, which has not begun its answer, send a body without chunks."""
    cycle.chunked_encoding, cycle.expected_content_length = False, _Endless()
