"""Encoding of header blocks without HPACK state, so that they are valid on every connection."""

from __future__ import annotations

from hpack import Encoder


def encode(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the block of a header list, valid on every connection."""
    return Encoder().encode([(name, value, True) for name, value in headers], huffman=False)
