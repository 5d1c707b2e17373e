"""Frames and bytes."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

ALIGNMENT = 16  # of every part of a frame, so that views on the tensors are aligned as frameworks want them
# kind, descriptors, words, bytes of JSON, bytes of tensors in the frame, parcel (0: none), bytes used of the parcel
_HEADER = Struct("<BxHIIIQQ")
_SHORT = 512  # words; layouts of longer frames are not kept
_LIMIT = 1 << 31  # no part of a frame has more bytes: a length beyond it is garbage


class ProtocolError(Exception):
    """The other end sent what it should not: it is broken, or not what it seems."""


def aligned(size: int) -> int:
    """Return `size` rounded up to the alignment."""
    return (size + ALIGNMENT - 1) & -ALIGNMENT


class Frame:
    """One message. `payload` is a flat uint8 array: the bytes of the tensors.

    `descriptors` came with it and are closed when the frame goes, unless somebody took them: an end that is broken must not fill the table.
    """

    __slots__ = ("_extras", "descriptors", "kind", "payload", "words")

    def __init__(
        self,
        kind: int,
        words: tuple[int, ...],
        extras: bytes | bytearray,
        payload: np.ndarray,
        descriptors: tuple[int, ...],
    ) -> None:
        self.kind = kind
        self.words = words
        self.payload = payload
        self.descriptors = descriptors
        self._extras = extras

    @property
    def has_extras(self) -> bool:
        """Say whether there is a JSON part."""
        return bool(self._extras)

    @property
    def extras(self) -> dict[str, Any]:
        """The JSON part; empty where the frame has none. Raises ProtocolError."""
        if not self._extras:
            return {}
        try:
            extras = json.loads(self._extras)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a frame of kind {self.kind} has broken JSON: {error}") from error
        if not isinstance(extras, dict):
            raise ProtocolError(f"a frame of kind {self.kind} has JSON that is no object")
        return extras

    def take_descriptors(self) -> tuple[int, ...]:
        """Return the descriptors, which are the caller's to close from now on."""
        taken, self.descriptors = self.descriptors, ()
        return taken

    def __del__(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def encode(
    kind: int,
    words: Sequence[int],
    extras: dict[str, Any],
    payload: Sequence[Any],
    inline: int,
    parcel: tuple[int, int] = (0, 0),
    descriptors: int = 0,
) -> bytes:
    """Return the bytes of a frame; `payload` are buffers of `inline` bytes together, an aligned number."""
    count = len(words)
    text = b""
    if extras:
        text = json.dumps(extras, separators=(",", ":")).encode()
        text += b" " * (aligned(len(text)) - len(text))
    head = _head(count).pack(kind, descriptors, count, len(text), inline, *parcel, *words)
    return b"".join([head, text, *payload])


_HEADS: dict[int, Struct] = {}


def _head(count: int) -> Struct:
    """Return the layout of a header and `count` words; making one costs more than using it."""
    head = _HEADS.get(count)
    if head is None:
        head = Struct(f"{_HEADER.format}{count}Q" + ("8x" if count % 2 else ""))
        if count < _SHORT:
            _HEADS[count] = head
    return head


class FrameReader:
    """Cuts a stream of bytes into frames; descriptors that came along are handed to the frames that announce them."""

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        self._have = 0
        self._need = _HEADER.size
        self._descriptors: deque[int] = deque()

    def feed(self, data: bytes | bytearray, descriptors: Sequence[int] = ()) -> list[tuple[Frame, int, int]]:
        """Return the frames that `data` completes, each with its parcel and the bytes used of it (0, 0: none).

        Raises ProtocolError for bytes that are no frame.
        """
        self._descriptors.extend(descriptors)
        if self._have:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = bytearray().join(self._parts)  # what tensors view may be written to
            self._parts.clear()
        frames = []
        at, end = 0, len(data)
        while True:
            size = self._size(data, at) if end - at >= _HEADER.size else _HEADER.size
            if end - at < size:
                break
            frames.append(self._frame(data, at))
            at += size
        self._have, self._need = end - at, size
        if self._have:
            self._parts.append(data[at:])
        return frames

    def close(self) -> tuple[int, ...]:
        """Return the descriptors that no frame took."""
        left = tuple(self._descriptors)
        self._descriptors.clear()
        return left

    @staticmethod
    def _size(data: bytes | bytearray, at: int) -> int:
        _, _, words, extras, inline, _, _ = _HEADER.unpack_from(data, at)
        if max(8 * words, extras, inline) > _LIMIT:
            raise ProtocolError("a frame announces an impossible length")
        return _HEADER.size + aligned(8 * words) + aligned(extras) + aligned(inline)

    def _frame(self, data: bytes | bytearray, at: int) -> tuple[Frame, int, int]:
        kind, descriptors, count, extras, inline, parcel, used = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        words = Struct(f"<{count}Q").unpack_from(data, at)
        at += aligned(8 * count)
        text = data[at : at + extras]
        payload = np.frombuffer(data, np.uint8, inline, at + aligned(extras))
        if descriptors > len(self._descriptors):
            raise ProtocolError(f"a frame of kind {kind} announces descriptors that did not come")
        taken = tuple([self._descriptors.popleft() for _ in range(descriptors)])
        return Frame(kind, words, text, payload, taken), parcel, used
