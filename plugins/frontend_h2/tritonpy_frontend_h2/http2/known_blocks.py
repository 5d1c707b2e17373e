"""Header blocks that were met before on a connection: clients send the same few again and again."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_frontend_h2.http2.calls import Headers
from tritonpy_frontend_h2.http2.header_decoder import HeaderDecoder
from tritonpy_frontend_h2.http2.rules import body_length, is_request

_MOST = 64
_LONGEST = 1024


class Head(NamedTuple):
    """A header list as it came, its size as HTTP/2 counts it, whether it is one of a request, and how long it says that the body is."""

    headers: Headers
    size: int
    valid: bool
    length: int | None = None


class KnownBlocks:
    """Decodes blocks; one that is known costs a look-up. It is forgotten when the fields that blocks refer to change."""

    __slots__ = ("_decoder", "_known", "_limit", "get")

    def __init__(self, limit: int, largest: int, huffman: int) -> None:
        self._limit = limit
        self._decoder = HeaderDecoder(limit, largest, huffman)
        self._known: dict[bytes, Head] = {}
        self.get = self._known.get  # what a block means, None where it has to be decoded

    def decode(self, block: bytes) -> Head:
        """Return what a block means. Raises ConnectionFault where it is no HPACK or far too large."""
        headers, size, changed = self._decoder.decode(block)
        head = self._head(headers, size)
        if changed:
            self._known.clear()
        elif len(block) <= _LONGEST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[block] = head
        return head

    def _head(self, headers: Headers, size: int) -> Head:
        if size > self._limit:
            return Head(headers, size, True)
        try:
            return Head(headers, size, is_request(headers), body_length(headers))
        except ValueError:
            return Head(headers, size, False)
