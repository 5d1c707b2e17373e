"""How much a client may ask of one connection."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_frontend_h2.http2 import codes


class Limits(NamedTuple):
    """Sizes in bytes, header lists counted as HTTP/2 does (32 bytes for each field beside its text).

    `stream_window` is what clients may send on a stream before its call took it, `window` what they may on all before we read it: calls that take
    nothing hold up no others. A header list beyond `header_list` is refused, one beyond `header_block` bytes on the wire, or `largest_list`, ends
    the connection, and so does a block with more than `huffman` bytes of Huffman code, whose decoding holds up all connections.
    """

    streams: int = 10_000
    stream_window: int = 16 * 1024 * 1024
    window: int = 64 * 1024 * 1024
    frame: int = 4 * 1024 * 1024
    header_list: int = 16 * 1024
    header_block: int = 256 * 1024
    largest_list: int = 256 * 1024
    huffman: int = 32 * 1024

    def settings(self) -> dict[int, int]:
        """Return what the client is told."""
        return {
            codes.MAX_CONCURRENT_STREAMS: self.streams,
            codes.INITIAL_WINDOW_SIZE: self.stream_window,
            codes.MAX_FRAME_SIZE: self.frame,
            codes.MAX_HEADER_LIST_SIZE: self.header_list,
        }
