"""Cache of parsed request heads: clients send the same head, or most of its lines, again.

A head that was sent before is found by its bytes. In another one, each line that was sent before is
found by its bytes, and other lines (`traceparent`, request ids, lengths) are read here. Everything
unusual is left to the parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tritonpy_http_api.infer_calls import Target

MAX_HEAD_BYTES = 2048  # bytes of a cached head
MAX_HEADS = 512  # heads; bounds the memory if heads never repeat
MAX_LINES = 1024
END = b"\r\n\r\n"
_END_SIZE = len(END)
_PRINTABLE = bytes(range(0x20, 0x7F))
_MOST_DIGITS = 15  # of a body size
# They affect the connection or the length of the body, so a new value of them goes to the parser.
_CONNECTION = frozenset({b"transfer-encoding", b"expect", b"upgrade"})
_UNREAD = _CONNECTION | {b"connection", b"host", b"keep-alive", b"proxy-connection", b"te"}


class RequestHead(NamedTuple):
    """A parsed head: target, headers with names in lower case, and body size in bytes."""

    target: Target
    headers: Mapping[bytes, bytes]
    body_size: int


class HeadCache:
    """Maps the bytes of a head to the parsed head. Used by all connections on the event loop."""

    def __init__(self) -> None:
        self._heads: dict[bytes, RequestHead] = {}
        self._targets: dict[bytes, Target] = {}  # by request line
        self._lines: dict[bytes, tuple[bytes, bytes]] = {}
        self._names: dict[bytes, bytes] = {}  # names as sent, of headers with any value
        # The limits of a connection hold for heads that are not longer than a parsed one.
        self._longest = 0
        self._most_headers = 0

    def find(self, data: bytes) -> tuple[RequestHead, int] | None:
        """Return the head and the start of the body if `data` is exactly one known request."""
        end = data.find(END, 0, MAX_HEAD_BYTES)
        if end < 0:
            return None
        start = end + _END_SIZE
        head = self._heads.get(data[:start]) or self._read(data[:end])
        if head is None or len(data) - start != head.body_size:
            return None
        return head, start

    def _read(self, text: bytes) -> RequestHead | None:
        lines = text.split(b"\r\n")
        target = self._targets.get(lines.pop(0))
        if target is None or len(text) > self._longest or len(lines) > self._most_headers:
            return None
        known, names = self._lines, self._names
        headers: dict[bytes, bytes] = {}
        for line in lines:
            pair = known.get(line)
            if pair is not None:
                headers[pair[0]] = pair[1]
                continue
            sent, _, value = line.partition(b": ")
            name = names.get(sent)
            if name is None or value.translate(None, _PRINTABLE):
                return None  # a control character, a lone line end, or a byte above ASCII
            headers[name] = value.strip()
        size = headers.get(b"content-length", b"")
        if len(headers) != len(lines) or not _is_length(size):
            return None
        return RequestHead(target, headers, int(size))

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Cache the head of request `data`, which was parsed as `target` and `headers`.

        Does nothing without a Content-Length, or with a header that affects the connection.
        """
        end = data.find(END, 0, MAX_HEAD_BYTES)
        values = dict(headers)
        size = values.get(b"content-length", b"")
        if (
            end < 0
            or not _is_length(size)
            or len(data) - end - _END_SIZE != int(size)
            or len(headers) != len(values)
            or values.keys() & _CONNECTION
            or values.get(b"connection", b"keep-alive").lower() != b"keep-alive"
            or not data.endswith(b" HTTP/1.1", 0, data.find(b"\r\n"))
        ):
            return
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        self._heads[data[: end + _END_SIZE]] = RequestHead(target, values, int(size))
        first, *lines = data[:end].split(b"\r\n")
        if len(lines) == len(headers) and all(map(_is_line_of, lines, headers)):
            self._learn_lines(first, target, lines, headers)
            self._longest = max(self._longest, end)
            self._most_headers = max(self._most_headers, len(lines))

    def _learn_lines(
        self, first: bytes, target: Target, lines: list[bytes], headers: list[tuple[bytes, bytes]]
    ) -> None:
        if len(self._lines) > MAX_LINES:
            self._lines.clear()
            self._names.clear()
        if len(self._targets) >= MAX_HEADS:
            self._targets.clear()
        self._targets[first] = target
        for line, header in zip(lines, headers, strict=True):
            self._lines[line] = header
            if header[0] not in _UNREAD:
                self._names[line[: len(header[0])]] = header[0]


def _is_length(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _MOST_DIGITS


def _is_line_of(line: bytes, header: tuple[bytes, bytes]) -> bool:
    name, value = header
    return line[: len(name) + 1].lower() == name + b":" and line[len(name) + 1 :].strip() == value
