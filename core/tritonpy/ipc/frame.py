"""Frames and bytes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from .extras import read_extras, write_extras

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
        self._extras: bytes | bytearray | dict[str, Any] = extras

    @property
    def has_extras(self) -> bool:
        """Say whether there is a JSON part."""
        return bool(self._extras)

    @property
    def extras(self) -> dict[str, Any]:
        """The JSON part; empty where the frame has none. Raises ProtocolError."""
        if not self._extras:
            return {}
        if isinstance(self._extras, dict):
            return self._extras
        try:
            extras = read_extras(self._extras)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a frame of kind {self.kind} has broken JSON: {error}") from error
        if not isinstance(extras, dict):
            raise ProtocolError(f"a frame of kind {self.kind} has JSON that is no object")
        self._extras = extras  # it is read for its signatures, and by whoever handles it
        return extras

    def take_descriptors(self) -> tuple[int, ...]:
        """Return the descriptors, which are the caller's to close from now on."""
        taken, self.descriptors = self.descriptors, ()
        return taken


class LadenFrame(Frame):
    """A frame that came with descriptors: those that nobody took are closed with it."""

    __slots__ = ()

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
        text = write_extras(extras).encode()
        text += b" " * (aligned(len(text)) - len(text))
    head = _head(count).pack(kind, descriptors, count, len(text), inline, *parcel, *words)
    return b"".join([head, text, *payload])


_HEADS: dict[int, Struct] = {}
_WORDS: dict[int, Struct] = {}


def _head(count: int) -> Struct:
    """Return the layout of a header and `count` words."""
    return _HEADS.get(count) or _kept(_HEADS, count, f"{_HEADER.format}{count}Q" + ("8x" if count % 2 else ""))


def _words(count: int) -> Struct:
    """Return the layout of `count` words."""
    return _WORDS.get(count) or _kept(_WORDS, count, f"<{count}Q")


def _kept(layouts: dict[int, Struct], count: int, layout: str) -> Struct:
    made = Struct(layout)  # making one costs more than using it
    if count < _SHORT:
        layouts[count] = made
    return made


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
        frames: list[tuple[Frame, int, int]] = []
        at, end, need = 0, len(data), _HEADER.size
        while end - at >= _HEADER.size:
            need = self._cut(data, at, end, frames)
            if need > end - at:
                break
            at += need
            need = _HEADER.size
        self._have, self._need = end - at, need
        if self._have:
            self._parts.append(data[at:])
        return frames

    def close(self) -> tuple[int, ...]:
        """Return the descriptors that no frame took."""
        left = tuple(self._descriptors)
        self._descriptors.clear()
        return left

    def _cut(self, data: bytes | bytearray, at: int, end: int, frames: list[tuple[Frame, int, int]]) -> int:
        """Append the frame that begins at `at`, if it is whole; return its size."""
        kind, descriptors, count, extras, inline, parcel, used = _HEADER.unpack_from(data, at)
        if max(8 * count, extras, inline) > _LIMIT:
            raise ProtocolError("a frame announces an impossible length")
        words_at = at + _HEADER.size
        text_at = words_at + aligned(8 * count)
        payload_at = text_at + aligned(extras)
        size = payload_at + aligned(inline) - at
        if size <= end - at:
            words = _words(count).unpack_from(data, words_at)
            text = bytes(data[text_at : text_at + extras]) if extras else b""
            payload = np.frombuffer(data, np.uint8, inline, payload_at)
            if descriptors:
                frame: Frame = LadenFrame(kind, words, text, payload, self._taken(kind, descriptors))
            else:
                frame = Frame(kind, words, text, payload, ())
            frames.append((frame, parcel, used))
        return size

    def _taken(self, kind: int, count: int) -> tuple[int, ...]:
        if count > len(self._descriptors):
            raise ProtocolError(f"a frame of kind {kind} announces descriptors that did not come")
        return tuple([self._descriptors.popleft() for _ in range(count)])
