"""Header blocks of answers: encoded once and for all, so nothing in them refers to the state of a connection."""

from __future__ import annotations

from hpack import Encoder


def encode(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the block of a header list, which is valid on every connection."""
    return Encoder().encode([(name, value, True) for name, value in headers], huffman=False)
