"""HPACK decoding of header blocks, with limits and a cache of decoded blocks."""

from __future__ import annotations

from typing import NamedTuple

from hpack import HPACKError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from tritonpy_http2.calls import Headers
from tritonpy_http2.codes import COMPRESSION_ERROR, ENHANCE_YOUR_CALM
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.header_rules import body_length, is_request

Field = tuple[bytes, bytes]
_STATIC = HeaderTable.STATIC_TABLE
_STATIC_COUNT = len(_STATIC)
_TABLE_SIZE = 4096  # the default of HTTP/2, so that no setting is needed
_OVERHEAD = 32  # bytes per field, as counted by HPACK
# Huffman code has up to 30 bits per character. The text of longer code never fits into the table.
_NEVER_KEPT = _TABLE_SIZE * 30 // 8
_LONGEST_INTEGER = 5  # bytes after the prefix: 35 bits
_MAX_BLOCKS = 64
_MAX_BLOCK_BYTES = 1024


class DecodedBlock(NamedTuple):
    """A header list, its size as counted by HTTP/2, and whether the dynamic table changed."""

    headers: list[Field]
    size: int
    changed: bool


class HeaderDecoder:
    """Decodes the header blocks of one connection, in order.

    A block may have at most `huffman` bytes of Huffman code. A list above `limit` bytes is
    truncated, but returned with its full size. A list above `largest` bytes ends the connection.
    """

    def __init__(self, limit: int, largest: int, huffman: int) -> None:
        self._huffman = huffman
        self._huffman_left = huffman
        # Encoders use Huffman code only if it is not longer than the text.
        self._longest_code = max(limit, _NEVER_KEPT)
        self._limit = limit
        self._largest = largest
        self._table = HeaderTable()
        self._block = b""
        self._at = 0
        self._changed = False

    def decode(self, block: bytes) -> DecodedBlock:
        """Decode a complete block.

        Raises Http2ConnectionError if it is invalid or far too large.
        """
        self._block, self._at, self._changed = block, 0, False
        self._huffman_left = self._huffman
        try:
            return self._decode()
        except (HPACKError, IndexError) as error:
            raise Http2ConnectionError(COMPRESSION_ERROR, "an invalid HPACK block") from error

    def _decode(self) -> DecodedBlock:
        block, length, limit = self._block, len(self._block), self._limit
        headers: list[Field] = []
        size = 0
        while self._at < length:
            first = block[self._at]
            if first >= 0x80:
                field = self._field(self._integer(0x7F))
            elif first >= 0x40:
                field = self._literal(0x3F)
                self._table.add(*field)
                self._changed = True
            elif first >= 0x20:
                self._resize(allowed=size == 0)
                continue
            else:
                field = self._literal(0x0F)
            size += len(field[0]) + len(field[1]) + _OVERHEAD
            if size <= limit:
                headers.append(field)
            elif size > self._largest:
                raise Http2ConnectionError(ENHANCE_YOUR_CALM, "a header list that is far too large")
        return DecodedBlock(headers, size, self._changed)

    def _field(self, index: int) -> Field:
        if index > _STATIC_COUNT:
            return self._table.dynamic_entries[index - _STATIC_COUNT - 1]
        if index == 0:
            raise HPACKError("index 0 is invalid")
        return _STATIC[index - 1]

    def _literal(self, mask: int) -> Field:
        index = self._integer(mask)
        name = self._field(index)[0] if index else self._text()
        return name, self._text()

    def _resize(self, *, allowed: bool) -> None:
        size = self._integer(0x1F)
        if not allowed or size > _TABLE_SIZE:
            raise HPACKError("an invalid table size update")
        self._table.maxsize = size
        self._changed = True

    def _integer(self, mask: int) -> int:
        """Return the integer with a prefix of `mask` bits in the next byte."""
        block, at = self._block, self._at
        value = block[at] & mask
        at += 1
        if value == mask:
            for shift in range(0, 7 * _LONGEST_INTEGER, 7):
                byte = block[at]
                at += 1
                value += (byte & 0x7F) << shift
                if byte < 0x80:
                    break
            else:
                raise HPACKError("an integer that is too long")
        self._at = at
        return value

    def _text(self) -> bytes:
        is_huffman = self._block[self._at] >= 0x80
        length = self._integer(0x7F)
        text = self._block[self._at : self._at + length]
        if len(text) < length:
            raise HPACKError("a truncated string")
        self._at += length
        if not is_huffman:
            return text
        if (
            length > self._longest_code
        ):  # the list is refused and the table does not store such a field
            return bytes(length)
        self._huffman_left -= length
        if self._huffman_left < 0:
            raise Http2ConnectionError(ENHANCE_YOUR_CALM, "too much Huffman code in a header block")
        return decode_huffman(text)


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
