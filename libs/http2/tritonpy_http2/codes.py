"""Constants of HTTP/2 (RFC 9113): frame types, flags, settings and error codes."""

from __future__ import annotations

from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
FLOW_CONTROL_ERROR: Final = 3
STREAM_CLOSED: Final = 5
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
ENHANCE_YOUR_CALM: Final = 11

LARGEST_WINDOW: Final = 2**31 - 1
USUAL_WINDOW: Final = 65_535
USUAL_TABLE_SIZE: Final = 4096
SMALLEST_FRAME_LIMIT: Final = 16_384
LARGEST_FRAME_LIMIT: Final = 2**24 - 1
LAST_STREAM: Final = 2**31 - 1
