"""Encoding and decoding of frames."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from .extras import read_extras, write_extras

ALIGNMENT = 16  # of each part of a frame, so that frameworks can use views of the tensors
# kind, descriptors, words, bytes of JSON, bytes of tensors in the frame, segment (0: none), bytes
# used in the segment
_HEADER = Struct("<BxHIIIQQ")
_SHORT = 512  # words; layouts of longer frames are not cached
_LIMIT = 1 << 31  # no part of a frame has more bytes: a larger length is invalid


class ProtocolError(Exception):
    """The other end broke the protocol."""


def aligned(size: int) -> int:
    """Return `size` rounded up to a multiple of `ALIGNMENT`."""
    return (size + ALIGNMENT - 1) & -ALIGNMENT


class Frame:
    """One message.

    `payload` holds the bytes of the tensors as a flat uint8 array. `descriptors` are closed with
    the frame unless they are taken, so a broken peer cannot exhaust the descriptor table.
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
        """Whether the frame has a JSON part."""
        return bool(self._extras)

    @property
    def extras(self) -> dict[str, Any]:
        """The JSON part, empty if the frame has none. Raises `ProtocolError`."""
        if not self._extras:
            return {}
        if isinstance(self._extras, dict):
            return self._extras
        try:
            extras = read_extras(self._extras)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a frame of kind {self.kind} has invalid JSON: {error}") from error
        if not isinstance(extras, dict):
            raise ProtocolError(f"the JSON of a frame of kind {self.kind} is not an object")
        self._extras = extras  # decoded once: signatures and the handler both read it
        return extras

    def take_descriptors(self) -> tuple[int, ...]:
        """Return the descriptors; the caller closes them."""
        taken, self.descriptors = self.descriptors, ()
        return taken


class DescriptorFrame(Frame):
    """A frame that came with descriptors; it closes those that are not taken."""

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
    segment: tuple[int, int] = (0, 0),
    descriptors: int = 0,
) -> bytes:
    """Return the bytes of a frame.

    `payload` are buffers of `inline` bytes in total, a multiple of `ALIGNMENT`.
    """
    count = len(words)
    text = b""
    if extras:
        text = write_extras(extras).encode()
        text += b" " * (aligned(len(text)) - len(text))
    head = _head(count).pack(kind, descriptors, count, len(text), inline, *segment, *words)
    return b"".join([head, text, *payload])


_HEADS: dict[int, Struct] = {}
_WORDS: dict[int, Struct] = {}


def _head(count: int) -> Struct:
    """Return the layout of a header and `count` words."""
    return _HEADS.get(count) or _cached(
        _HEADS, count, f"{_HEADER.format}{count}Q" + ("8x" if count % 2 else "")
    )


def _words(count: int) -> Struct:
    """Return the layout of `count` words."""
    return _WORDS.get(count) or _cached(_WORDS, count, f"<{count}Q")


def _cached(layouts: dict[int, Struct], count: int, layout: str) -> Struct:
    made = Struct(layout)  # creating one costs more than using it
    if count < _SHORT:
        layouts[count] = made
    return made


class FrameReader:
    """Splits a stream of bytes into frames and assigns the received descriptors to them."""

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        self._have = 0
        self._need = _HEADER.size
        self._descriptors: deque[int] = deque()

    def feed(
        self, data: bytes | bytearray, descriptors: Sequence[int] = ()
    ) -> list[tuple[Frame, int, int]]:
        """Return the frames that `data` completes, each with its segment and the bytes used in it.

        Segment 0 stands for none. Raises `ProtocolError` for invalid bytes.
        """
        self._descriptors.extend(descriptors)
        if self._have:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = bytearray().join(self._parts)  # writable, as views of tensors may be modified
            self._parts.clear()
        frames: list[tuple[Frame, int, int]] = []
        at, end, need = 0, len(data), _HEADER.size
        while end - at >= _HEADER.size:
            need = self._read_frame(data, at, end, frames)
            if need > end - at:
                break
            at += need
            need = _HEADER.size
        self._have, self._need = end - at, need
        if self._have:
            self._parts.append(data[at:])
        return frames

    def close(self) -> tuple[int, ...]:
        """Return the descriptors that belong to no frame."""
        left = tuple(self._descriptors)
        self._descriptors.clear()
        return left

    def _read_frame(
        self, data: bytes | bytearray, at: int, end: int, frames: list[tuple[Frame, int, int]]
    ) -> int:
        """Append the frame that begins at `at` if it is complete; return its size."""
        kind, descriptors, count, extras, inline, segment, used = _HEADER.unpack_from(data, at)
        if max(8 * count, extras, inline) > _LIMIT:
            raise ProtocolError("a frame announces an invalid length")
        words_at = at + _HEADER.size
        text_at = words_at + aligned(8 * count)
        payload_at = text_at + aligned(extras)
        size = payload_at + aligned(inline) - at
        if size <= end - at:
            words = _words(count).unpack_from(data, words_at)
            text = bytes(data[text_at : text_at + extras]) if extras else b""
            payload = np.frombuffer(data, np.uint8, inline, payload_at)
            if descriptors:
                frame: Frame = DescriptorFrame(
                    kind, words, text, payload, self._take_received(kind, descriptors)
                )
            else:
                frame = Frame(kind, words, text, payload, ())
            frames.append((frame, segment, used))
        return size

    def _take_received(self, kind: int, count: int) -> tuple[int, ...]:
        if count > len(self._descriptors):
            raise ProtocolError(
                f"a frame of kind {kind} announces descriptors that were not received"
            )
        return tuple([self._descriptors.popleft() for _ in range(count)])
