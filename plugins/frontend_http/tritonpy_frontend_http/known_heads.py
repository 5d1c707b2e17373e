"""Heads of inference requests that were parsed before: a client that stays sends the same bytes again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tritonpy_frontend_http.infer_calls import Target

LONGEST = 2048  # bytes of a head that is remembered
MOST = 512  # heads; clients whose heads never repeat must not fill the memory
END = b"\r\n\r\n"
_END_SIZE = len(END)


class Head(NamedTuple):
    """What a head says: whom it asks, its headers with names in lower case, and how many bytes of body follow."""

    target: Target
    headers: Mapping[bytes, bytes]
    body_size: int


class KnownHeads:
    """Finds the meaning of a head by its bytes. One for all connections of a frontend, on the event loop."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def match(self, data: bytes) -> tuple[Head, int] | None:
        """Return the known head that `data` begins with and where its body starts, if `data` is exactly this one request."""
        end = data.find(END, 0, LONGEST)
        if end < 0:
            return None
        start = end + _END_SIZE
        head = self._heads.get(data[:start])
        if head is None or len(data) - start != head.body_size:
            return None
        return head, start

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Remember the head of the request that is `data`, if it is as plain as can be: a body of known length, nothing to negotiate."""
        start = data.find(END, 0, LONGEST) + len(END)
        names = [name for name, _ in headers]
        said = dict(headers)
        size = said.get(b"content-length", b"")
        if start < len(END) or not size.isdigit() or len(data) - start != int(size) or len(names) != len(said):
            return
        if said.keys() & {b"transfer-encoding", b"expect", b"connection", b"upgrade"}:
            return
        if len(self._heads) >= MOST:
            self._heads.clear()
        self._heads[data[:start]] = Head(target, said, int(size))
