"""Cache of decoded header blocks: clients repeat the same few blocks on a connection."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_frontend_h2.http2.calls import Headers
from tritonpy_frontend_h2.http2.header_decoder import HeaderDecoder
from tritonpy_frontend_h2.http2.header_rules import body_length, is_request

_MAX_BLOCKS = 64
_MAX_BLOCK_BYTES = 1024


class DecodedHeaders(NamedTuple):
    """A header list, its HTTP/2 size, its validity as a request, and its content-length."""

    headers: Headers
    size: int
    valid: bool
    length: int | None = None


class HeaderBlockCache:
    """Decodes header blocks with a cache, which is cleared when the HPACK table changes."""

    __slots__ = ("_blocks", "_decoder", "_limit", "get")

    def __init__(self, limit: int, largest: int, huffman: int) -> None:
        self._limit = limit
        self._decoder = HeaderDecoder(limit, largest, huffman)
        self._blocks: dict[bytes, DecodedHeaders] = {}
        self.get = self._blocks.get  # returns a cached block or None

    def decode(self, block: bytes) -> DecodedHeaders:
        """Decode a block. Raises Http2ConnectionError if it is invalid or far too large."""
        headers, size, changed = self._decoder.decode(block)
        head = self._head(headers, size)
        if changed:
            self._blocks.clear()
        elif len(block) <= _MAX_BLOCK_BYTES:
            if len(self._blocks) >= _MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = head
        return head

    def _head(self, headers: Headers, size: int) -> DecodedHeaders:
        if size > self._limit:
            return DecodedHeaders(headers, size, True)
        try:
            return DecodedHeaders(headers, size, is_request(headers), body_length(headers))
        except ValueError:
            return DecodedHeaders(headers, size, False)
