"""Limits of one connection."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_http2 import codes


class Http2Limits(NamedTuple):
    """Sizes in bytes, except `streams`, the number of open calls.

    `stream_window` limits unconsumed data of one call, and `window` unread data of all calls. So a
    slow call does not block others. `frame` limits the length of a frame.

    Header lists are counted as in HTTP/2, with 32 bytes per field in addition to its text. A list
    above `header_list` is refused. A list above `largest_list`, or above `header_block` encoded
    bytes, closes the connection. So does a block with more than `huffman` bytes of Huffman code,
    because decoding it would delay all connections.
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
        """Return the settings to send to the client."""
        return {
            codes.MAX_CONCURRENT_STREAMS: self.streams,
            codes.INITIAL_WINDOW_SIZE: self.stream_window,
            codes.MAX_FRAME_SIZE: self.frame,
            codes.MAX_HEADER_LIST_SIZE: self.header_list,
        }
